"""`hl config`: show every key with its origin and mark, change one, trust a repository."""

from pathlib import Path
from typing import Annotated

import typer

from hl.commands.context import JsonOption, find_root, invocation, new_app
from hl.errors import RepositoryError

app = new_app("""Show and change settings, and trust a repository's.

Strongest first: -c KEY=VALUE, your own file, the repository's hl.toml, the default.
Keys that name programs, addresses, key variables or prices are taken from a repository
only once you trust it.
""")

UserOption = Annotated[
    bool, typer.Option("--user", help="Your own file instead of the repository's hl.toml.")
]


@app.command("list")
def list_(
    context: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="Add where each value comes from.")] = False,
    json: JsonOption = False,
) -> None:
    """Print every key with its value.

    With --origin also where the value comes from, and the mark of its default: paper, second-hand or ours.

    \b
    Examples:
      hl config list --origin
      hl -c round.proposals=4 config list
    """
    from hl.config import KEYS, load_config
    from hl.ui import columns, open_output, write_json

    config = load_config(find_root(), invocation(context).overrides, require_trust=False)
    if json:
        for name, key in KEYS.items():
            source = config.origins[name]
            write_json(
                "config",
                {
                    "key": name,
                    "value": _plain(config.get(name)),
                    "default": _plain(key.default),
                    "origin": source.kind,
                    "place": source.place,
                    "mark": key.mark,
                    "guarded": key.guarded,
                    "help": key.help,
                },
            )
        return
    rows = [
        (f"{name} = {_show(config.get(name))}", *((str(config.origins[name]), key.mark) if origin else ()))
        for name, key in KEYS.items()
    ]
    with open_output() as out:
        for line in columns(rows):
            out.line(line)


@app.command("get")
def get(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key, such as round.proposals.")],
    describe: Annotated[bool, typer.Option("--describe", help="Say what the key means and allows.")] = False,
) -> None:
    """Print the value of one key.

    \b
    Examples:
      hl config get solver.model
      hl config get round.select --describe
    """
    from hl.config import load_config
    from hl.config.keys import find_key
    from hl.ui import open_output

    found = find_key(key, "hl config get")
    config = load_config(find_root(), invocation(context).overrides, require_trust=False)
    with open_output() as out:
        value = config.get(key)
        if not describe:
            out.line(value if isinstance(value, str) else _show(value))
            return
        out.line(f"{found.name}: {found.help}")
        out.line(f"  value    {_show(value)} ({config.origins[key]})")
        out.line(f"  default  {_show(found.default)} ({found.mark})")
        allowed = ", ".join(found.choices) if found.choices else found.kind
        if found.low is not None and found.high is not None:
            allowed += f", {found.low:g} to {found.high:g}"
        out.line(f"  allowed  {allowed}")
        if found.guarded:
            out.line("  guarded  a repository's value counts only after: hl config trust")


@app.command("set")
def set_(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key, such as round.proposals.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its new value; lists and tables as TOML.")],
    user: UserOption = False,
) -> None:
    """Write one value to hl.toml, or to your own file. Comments and layout stay.

    \b
    Examples:
      hl config set round.proposals 4
      hl config set solver.base_url http://127.0.0.1:8000/v1 --user
      hl config set solver.extra_body '{top_k = 20}'
    """
    from hl.config.edit import set_value
    from hl.ui import say

    path = set_value(key, value, root=None if user else _root())
    say(f"{key} set in {path}")


@app.command("unset")
def unset(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key, such as round.proposals.")],
    user: UserOption = False,
) -> None:
    """Remove one value, so that the next weaker one counts.

    \b
    Example:
      hl config unset round.proposals
    """
    from hl.config import user_file
    from hl.config.edit import unset_value
    from hl.errors import HlError
    from hl.ui import say

    if not unset_value(key, root=None if user else _root()):
        place = user_file() if user else "hl.toml"
        raise HlError(f"{key} is not set in {place}.", hint="hl config list --origin")
    say(f"{key} removed")


@app.command("trust")
def trust() -> None:
    """Let this repository's hl.toml name models, programs, addresses, key variables and prices.

    Prints what it trusts. The trust ends when one of these values changes by other means
    than `hl config set`.

    \b
    Example:
      git clone SOMEWHERE agent && cd agent && cat hl.toml && hl config trust
    """
    from hl.config.trust import trust as trust_values
    from hl.ui import columns, open_output, say

    root = _root()
    guarded = trust_values(root)
    if not guarded:
        say(f"{root} sets nothing that needs trust")
        return
    say(f"trusted in {root}:")
    with open_output() as out:
        for line in columns([(name, _show(value)) for name, value in guarded.items()]):
            out.line(line)


def _root() -> Path:
    root = find_root()
    if root is None:
        raise RepositoryError("there is no repository here or above.", hint="hl init DIR --task TASK")
    return root


def _plain(value: object) -> object:
    from collections.abc import Mapping

    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType]
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType]


def _show(value: object) -> str:
    import json

    return json.dumps(_plain(value), ensure_ascii=False)
