#!/usr/bin/env bash
# Checks what a fresh machine must have before anything is installed: Linux on x86-64, git, make, a C compiler, and a
# Python 3.11+ with venv and headers. Prints one message with the line to type, and exits 1; silent when all is there.
#
#   scripts/preflight.sh [PYTHON]
#
# The C compiler and the headers are needed by pycosat, a dependency of reasoning-gym that publishes no wheels.
set -u

python=${1:-python3}
missing=()   # what is wrong, a sentence each
packages=()  # what apt-get would install

need() { missing+=("$1"); shift; packages+=("$@"); }

system=$(uname -s) machine=$(uname -m)
if [ "$system" != Linux ] || [ "$machine" != x86_64 ]; then
    echo "hl runs on Linux on x86-64 for now; this is $system on $machine." >&2
    exit 1
fi

command -v git >/dev/null || need "git is not installed" git
command -v make >/dev/null || need "make is not installed" make

# A version such as 3.12 where the interpreter is one; empty where there is no such program.
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
if [ -z "$version" ]; then
    need "there is no usable Python interpreter called '$python'" python3 python3-venv python3-dev
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    others=
    for name in python3.13 python3.12 python3.11; do
        if path=$(command -v "$name") && "$path" -c pass 2>/dev/null; then others+=" $path"; fi
    done
    need "$(command -v "$python") is Python $version, and hl needs 3.11 or newer${others:+; found here:$others (type: make PYTHON=PATH ...)}"
    [ -n "$others" ] || packages+=(python3.11 python3.11-venv python3.11-dev)
else
    where=$("$python" -c 'import sys; print(sys.executable)')
    prefix=python$version
    case $("$python" -c 'import sys; print(sys.base_prefix)') in
        /usr) venv_package=$prefix-venv dev_package=$prefix-dev ;;
        *) venv_package= dev_package= ;;  # not Debian's: apt-get cannot complete it
    esac
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        need "$where (Python $version) cannot create virtual environments: its venv module is missing" $venv_package
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    [ -f "$include/Python.h" ] ||
        need "$where (Python $version) has no C headers: $include/Python.h is missing" $dev_package
fi

compiler=
for name in ${CC:-} cc gcc clang; do
    if command -v "$name" >/dev/null; then compiler=$name; break; fi
done
if [ -z "$compiler" ]; then
    need "there is no C compiler" gcc libc6-dev
elif ! printf '#include <stdio.h>\nint main(void) { return 0; }\n' | "$compiler" -x c -fsyntax-only - 2>/dev/null; then
    need "the C compiler $(command -v "$compiler") cannot find the C library's headers" libc6-dev
fi

[ ${#missing[@]} -eq 0 ] && exit 0

{
    echo "hl cannot be set up here yet:"
    printf '  - %s\n' "${missing[@]}"
    if [ ${#packages[@]} -gt 0 ]; then
        sudo=
        [ "$(id -u)" -eq 0 ] || sudo="sudo "
        echo "On Debian or Ubuntu, type:"
        echo "  ${sudo}apt-get install ${packages[*]}"
    elif [ -n "$version" ]; then
        echo "Or name a complete interpreter, such as: make PYTHON=/usr/bin/python3 ..."
    fi
} >&2
exit 1
