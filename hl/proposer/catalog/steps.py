"""The single ideas of the catalog: each turns a harness's text into another, or answers None where it does not fit.

A step knows nothing of tasks. It finds its place by the syntax tree (`solve`, calls of `model.python`, the list of
demonstrations), so it also fits harnesses that other steps or people changed.
"""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hl.proposer.catalog.demonstrations import (
    ARITHMETIC,
    GENERAL,
    Demonstration,
    render_demonstrations,
    render_examples,
    render_pair,
)
from hl.proposer.catalog.parts import (
    add_definitions,
    add_layer,
    defined_names,
    has_definition,
    join_parts,
    load_part,
    load_seed_definitions,
    without_known,
)
from hl.proposer.catalog.source import Source

LIST_CHARS = 4000
"""All demonstrations of a harness together (ours): about 1,200 tokens."""

Change = Callable[[Source], str | None]


@dataclass(frozen=True, slots=True)
class Step:
    """One idea, ready to be applied."""

    name: str
    """Stands in summaries, and so in the history: short, without `:` and `+`."""
    words: str
    """What it does, in a few words, for people."""
    change: Change
    drawn: bool = False
    """Whether it draws on feedback runs, so that the same name can hold something new next round."""


def interpreter(pairs: Sequence[Demonstration] = ARITHMETIC, name: str = "interpreter loop") -> Step:
    """Programs instead of answers: the interpreter loop in front of the present solve."""

    def change(source: Source) -> str | None:
        definitions = load_seed_definitions("interpreter")
        if has_definition(source, definitions):
            return None
        text = _with_demonstrations(join_parts([definitions, load_part("interpreter")]), pairs)
        return add_layer(source, text, "answer_directly")

    return Step(name, "let the model write a program, run it, answer with its output", change)


def _with_demonstrations(text: str, pairs: Sequence[Demonstration]) -> str:
    node = next(
        n
        for n in ast.parse(text).body
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Name)
        and n.targets[0].id == "DEMONSTRATIONS"
    )
    lines = text.split("\n")
    lines[node.lineno - 1 : node.end_lineno] = [f"DEMONSTRATIONS = {render_demonstrations(pairs)}"]
    return "\n".join(lines)


def demonstrations(
    pairs: Sequence[Demonstration], name: str, *, keep: bool = True, drawn: bool = True
) -> Step:
    """Other demonstrations: after the present ones, or in their place."""

    def change(source: Source) -> str | None:
        node = source.definition("DEMONSTRATIONS")
        if not pairs or not isinstance(node, ast.Assign) or not isinstance(node.value, (ast.List, ast.Tuple)):
            return None
        # Those drawn earlier make room: the oldest go first, and repeats.
        new = [render_pair(pair) for pair in pairs]
        kept = [source.segment(e) for e in (node.value.elts if keep else [])]
        kept = [k for k in kept if k not in new][-len(ARITHMETIC) :]
        while kept and sum(map(len, (*kept, *new))) > LIST_CHARS:
            kept.pop(0)
        body = "".join(f"    {item},\n" for item in (*kept, *new))
        start, end = source.span(node.value)
        return source.splice([(start, end, f"[\n{body}]")])

    words = "show programs for questions like these"
    return Step(name, words, change, drawn)


def examples(pairs: Sequence[tuple[str, str]]) -> Step:
    """Solved feedback questions as earlier turns of every conversation."""

    def change(source: Source) -> str | None:
        part = load_part("examples")
        if not pairs or has_definition(source, part):
            return None
        return add_layer(source, part, "solve_unaided", {"EXAMPLES": render_examples(pairs)})

    return Step("solved examples", "show solved feedback questions before each question", change, drawn=True)


def layer(part: str, name: str, words: str, old_name: str, *, helpers: Sequence[str] = ()) -> Step:
    """A part with a `solve` of its own in front of the present one."""

    def change(source: Source) -> str | None:
        text = load_part(part)
        # A docstring tells whether the same layer is there already.
        marker = text.split('"""')[1]
        if f'"""{marker}"""' in source.text:
            return None
        parts = [without_known(source, load_part(h)) for h in helpers]
        return add_layer(source, join_parts([*parts, text]), old_name)

    return Step(name, words, change)


def code_filter(part: str, name: str, words: str) -> Step:
    """A function over every program before it runs."""

    def change(source: Source) -> str | None:
        text = load_part(part)
        calls = source.calls("python")
        if not calls or has_definition(source, text):
            return None
        changes, renames = add_definitions(source, text)
        function = defined_names(text)[-1]
        changes += source.wrap([call.args[0] for call in calls], renames.get(function, function))
        return source.splice(changes)

    return Step(name, words, change)


def code_runner(part: str, name: str, words: str) -> Step:
    """A function that runs programs in place of `model.python`."""

    def change(source: Source) -> str | None:
        text = load_part(part)
        calls = source.calls("python")
        if not calls or has_definition(source, text):
            return None
        changes, renames = add_definitions(source, text)
        function = renames.get(defined_names(text)[-1], defined_names(text)[-1])
        for call in calls:
            start, end = source.span(call.func)
            model = source.text[start:end].split(".")[0].strip()
            first = source.span(call.args[0])[0]
            changes += [(start, end, function), (first, first, f"{model}, ")]
        return source.splice(changes)

    return Step(name, words, change)


def answer_filter(part: str, name: str, words: str) -> Step:
    """A function over everything that `solve` returns."""

    def change(source: Source) -> str | None:
        text = load_part(part)
        solve = source.solve()
        if solve is None or has_definition(source, text):
            return None
        values = source.returns(solve)
        if not values:
            return None
        changes, renames = add_definitions(source, text)
        function = defined_names(text)[-1]
        changes += source.wrap(values, renames.get(function, function))
        return source.splice(changes)

    return Step(name, words, change)


def fences() -> Step:
    """A more forgiving `extract_code`."""

    def change(source: Source) -> str | None:
        text = load_part("fences")
        node = source.definition("extract_code")
        if not isinstance(node, ast.FunctionDef) or has_definition(source, text) or node.decorator_list:
            return None
        definition = text[text.index("def extract_code") :].strip("\n")
        start, end = source.span(node)
        imports = [s for s in source.insertion("import re\n") if "def " not in s[2]]
        return source.splice([(start, end, definition), *imports])

    return Step("code fences", "find the program where its fence is open or missing", change)


def nearest() -> Step:
    """The demonstrations closest to the question, the closest last."""

    def change(source: Source) -> str | None:
        text = load_part("nearest")
        if has_definition(source, text):
            return None
        for function in source.tree.body:
            if not isinstance(function, ast.FunctionDef):
                continue
            arguments = [a.arg for a in function.args.args]
            if "question" not in arguments:
                continue
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.For)
                    and isinstance(node.iter, ast.Name)
                    and node.iter.id == "DEMONSTRATIONS"
                ):
                    changes, renames = add_definitions(source, text)
                    start, end = source.span(node.iter)
                    call = renames.get("nearest", "nearest")
                    return source.splice([*changes, (start, end, f"{call}(DEMONSTRATIONS, question)")])
        return None

    return Step(
        "nearest demonstrations", "show the demonstrations closest to the question, the closest last", change
    )


def more_demonstrations() -> Step:
    """All general sets together, to choose from."""
    pairs = list(dict.fromkeys(pair for group in GENERAL.values() for pair in group))
    return demonstrations(pairs, "general demonstrations", keep=True, drawn=False)


def passages() -> Step:
    """Found passages instead of the model's words about them, wherever a later call is given those."""
    inner = layer(
        "passages", "passages handed on", "hand on found passages, not summaries of them", "solve_from_notes"
    )

    def change(source: Source) -> str | None:
        return inner.change(source) if searches(source) else None

    return Step(inner.name, inner.words, change)


def searches(source: Source) -> bool:
    """Whether the harness searches a corpus; `re.search` is something else."""
    owners = {source.segment(call.func).split(".")[0].strip() for call in source.calls("search")}
    return bool(owners - {"re", "regex"})


IMPORTS = code_filter("imports", "import prelude", "import what programs forget to import")
BRACKETS = code_filter("brackets", "bracket repair", "balance brackets before running a program")
NAMES = code_runner("names", "name repair", "take the name that Python suggests for an unknown one")
RETRY = code_runner("retry", "retry with error", "show the model the error and run its second program")
NUMBERS = answer_filter("numbers", "number format", "write numbers plainly: no rounding dust, no .0")
FINAL = answer_filter("final_answer", "answer extraction", "keep only the answer of a reply")
LAST_NUMBER = answer_filter("last_number", "last number", "answer with the last number of the reply")
FALLBACK = layer("fallback", "fallback to text", "ask plainly where there is no answer", "solve_first")
VOTE = layer("vote", "voting", "answer with what several tries agree on", "solve_once", helpers=["warmer"])
VERIFY = layer(
    "verify", "verification", "let the model check its answer", "solve_unchecked", helpers=["warmer"]
)
PLAN = layer("plan", "decomposition", "list the steps first", "solve_in_one")
STEPWISE = layer("step_by_step", "step by step", "ask for reasoning before the answer", "solve_at_once")
TERSE = layer("terse", "answer only", "ask for the answer without words around it", "solve_in_words")
WARM = layer(
    "warm",
    "warmer sampling",
    "sample a little instead of the likeliest word",
    "solve_coldly",
    helpers=["warmer"],
)
PASSAGES = passages()
FENCES = fences()
NEAREST = nearest()
GENERAL_DEMONSTRATIONS = more_demonstrations()
