"""`hl doctor`, as typed, on the machine that runs the tests."""

import importlib.util
import json
from pathlib import Path


def test_every_probe_is_blocked_here_and_the_exit_code_says_so(hl) -> None:
    done = hl("doctor", "--json")
    lines = [json.loads(line) for line in done.out.splitlines()]
    checks = {line["name"]: line for line in lines if line["kind"] == "check"}
    probes = [line for line in lines if line["kind"] == "probe"]
    assert {"sandbox", "python", "git", "cores", "memory", "engine llamacpp", "configuration"} <= set(checks)
    through = [probe for probe in probes if not probe["blocked"]]
    assert (done.code == 0) == (checks["sandbox"]["state"] == "ok")
    assert done.code == 0 and len(probes) >= 5 and not through, done.err


def test_text_and_verbose(hl) -> None:
    done = hl("doctor", "--verbose")
    assert (done.code, done.err) == (0, "")
    first = done.out.splitlines()[0]
    assert first.startswith("ok") and "seccomp" in first
    assert sum(line.startswith("  blocked  ") for line in done.out.splitlines()) >= 5


def test_a_missing_key_and_a_distrusted_repository_are_shown_and_no_failure(hl, tmp_path: Path) -> None:
    done = hl("-c", "solver.api_key_env=HL_TEST_NO_SUCH_KEY", "doctor")
    assert done.code == 0 and "$HL_TEST_NO_SUCH_KEY is not set" in done.out
    (tmp_path / "hl.toml").write_text('[solver]\nmodel = "other"\n')
    done = hl("doctor")
    assert done.code == 0 and "only in a repository that you trust" in done.out


def test_extras_are_there_with_their_versions_or_say_what_to_install(hl) -> None:
    lines = [json.loads(line) for line in hl("doctor", "--json").out.splitlines()]
    checks = {line["name"]: line for line in lines if line["kind"] == "check"}
    for extra, package in (("train", "torch"), ("vllm", "vllm")):
        check = checks[f"extra {extra}"]
        if importlib.util.find_spec(package) is None:
            assert check["state"] == "missing" and f"'harness-learning[{extra}]'" in check["detail"]
        else:
            assert check["state"] == "ok" and f"{package} " in check["detail"]
