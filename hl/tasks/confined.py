"""The text that grades reasoning-gym answers inside the sandbox. Sent there as source; also used to make questions.

Self-contained on purpose: the standard library at the top, reasoning_gym and sympy inside functions, of ours only
`codec.py` and `parameters.py`, whose texts are sent in front of this one. It promises a float for any answer. It does
not bound time or memory (the sandbox does), and it never evaluates an answer: where reasoning-gym's own scorer would
(`eval`, `sympy.parse_expr`), or pays for wrong work, a stricter rule of ours stands in `RULES`. Confinement alone would
not do: code in an answer could forge the grade that the child reports.
"""

import ast
import fractions
import functools
import itertools
import json
import math
import operator
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from hl.tasks.codec import decode
from hl.tasks.parameters import typed_params

Entry = dict[str, Any]


# --- parsing answers without evaluating them ---------------------------------------------------------------------

NUMBER = re.compile(r"[+-]?(\d{1,60}(\.\d{0,60})?|\.\d{1,60})(/\d{1,60}|[eE][+-]?\d{1,2})?")


def number(text: str) -> fractions.Fraction:
    """A plain number: digits, a decimal point or a slash, thousands commas, an exponent of two digits.

    Raises:
        ValueError: Anything else; larger exponents too, which could name numbers too large to hold.
    """
    text = text.replace(",", "").strip()
    if not NUMBER.fullmatch(text) or ("." in text and "/" in text):
        raise ValueError("not a number")
    try:
        return fractions.Fraction(text.removesuffix("."))
    except ZeroDivisionError:
        raise ValueError("division by zero") from None


ARITHMETIC: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def arithmetic(text: str) -> tuple[fractions.Fraction, list[int]]:
    """Value and integers of an expression of integers, `+ - * /` and parentheses.

    Raises:
        ValueError: Anything else, division by zero included.
    """
    if len(text) > 500:
        raise ValueError("too long")
    used: list[int] = []

    def walk(node: ast.AST) -> fractions.Fraction:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            used.append(node.value)
            return fractions.Fraction(node.value)
        if isinstance(node, ast.UnaryOp) and type(node.op) in ARITHMETIC:
            return ARITHMETIC[type(node.op)](walk(node.operand))
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return ARITHMETIC[type(node.op)](walk(node.left), walk(node.right))
        raise ValueError("not arithmetic")

    try:
        return walk(ast.parse(text.strip(), mode="eval").body), used
    except (SyntaxError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise ValueError("not arithmetic") from error


FUNCTIONS = frozenset(("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan")) | frozenset(
    ("sinh", "cosh", "tanh", "exp", "log", "ln", "sqrt")
)


def formula(text: str, symbols: set[str]) -> Any:
    """The sympy expression that a text spells with these symbols, numbers, `+ - * / **` and elementary functions.

    Built node by node: sympy's own parser would evaluate the text as Python.

    Raises:
        ValueError: Anything else, such as `Integral(...)`, attributes, or powers large enough to hang.
    """
    import sympy

    if len(text) > 4000:
        raise ValueError("too long")

    def walk(node: ast.AST) -> Any:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, int | float)
            and abs(node.value) < 10**30
        ):
            return sympy.Integer(node.value) if isinstance(node.value, int) else sympy.Float(node.value)
        if isinstance(node, ast.Name) and (node.id in symbols or node.id in ("pi", "E")):
            return sympy.Symbol(node.id) if node.id in symbols else getattr(sympy, node.id)
        if isinstance(node, ast.UnaryOp) and type(node.op) in ARITHMETIC:
            return ARITHMETIC[type(node.op)](walk(node.operand))
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return ARITHMETIC[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.BinOp) and type(node.op) is ast.Pow:
            base, power = walk(node.left), walk(node.right)
            if power.is_number and not (power.is_real and abs(power) <= 100):
                raise ValueError("power too large")
            if base.is_Rational and max(abs(base.p), base.q) > 10**40:
                raise ValueError("power of a large number")
            return base**power
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in FUNCTIONS
            and len(node.args) == 1
            and not node.keywords
        ):
            return getattr(sympy, node.func.id)(walk(node.args[0]))
        raise ValueError("not a formula")

    try:
        return walk(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError("not a formula") from error


def literal(text: str) -> Any:
    """The Python literal that a short text spells; ValueError for anything else."""
    if len(text) > 10_000:
        raise ValueError("too long")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError("not a literal") from error


# --- rules of ours, by family ------------------------------------------------------------------------------------


def same(answer: str, gold: str) -> float:
    """Full credit for the same text, ends stripped."""
    return float(answer.strip() == gold.strip())


def as_rows(text: str, gold: str, render: Callable[[Any], str]) -> float:
    """Exact text, or a tenth for the same content written as a Python list (reasoning-gym's credit, without `eval`)."""
    if text.strip() == gold.strip():
        return 1.0
    return 0.1 if render(literal(text)).strip() == gold.strip() else 0.0


def matrix_text(rows: Any) -> str:
    return "\n".join(" ".join(str(x) for x in row) for row in rows)


def n_queens(answer: str, entry: Entry) -> float:
    valid = entry["metadata"]["valid_answers"]
    if answer in valid:
        return 1.0
    return 0.5 if matrix_text(literal(answer)) in valid else 0.0


def exact_numbers(answer: str, target: fractions.Fraction, numbers: list[int]) -> float:
    value, used = arithmetic(answer)
    return float(value == target and Counter(used) == Counter(numbers))


def coin_flip(answer: str, entry: Entry) -> float:
    value, gold = number(answer), number(entry["answer"])
    return float(abs(value - gold) <= min(fractions.Fraction(1, 10_000), abs(gold) / 100))


def integration(answer: str, entry: Entry) -> float:
    import sympy

    metadata = entry["metadata"]
    name = metadata["variable"]
    integrand = sympy.parse_expr(metadata["integrand"], local_dict={name: sympy.Symbol(name)})
    derivative = sympy.diff(formula(answer, {name, "C"}), sympy.Symbol(name))
    return float(sympy.simplify(derivative - integrand) == 0)


def polynomial_multiplication(answer: str, entry: Entry) -> float:
    letters = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return float(formula(answer, letters) == formula(entry["answer"], letters))


def polynomial_equations(answer: str, entry: Entry) -> float:
    values = sorted(number(part) for part in answer.split(","))
    gold = sorted(number(part) for part in entry["answer"].split(","))
    close = fractions.Fraction(1, 1000)
    return float(
        len(values) == len(gold) and all(abs(a - b) <= close for a, b in zip(values, gold, strict=True))
    )


def number_sorting(answer: str, entry: Entry) -> float:
    values, gold = (json.loads(text.replace("'", '"')) for text in (answer, entry["answer"]))
    if not isinstance(values, list) or len(values) != len(gold):
        return 0.0
    return float(all(number(str(a)) == number(str(b)) for a, b in zip(values, gold, strict=True)))


def knights_knaves(answer: str, entry: Entry) -> float:
    normalise = dataset("knights_knaves", "{}")._normalize_answer
    return float(normalise(answer) == normalise(entry["answer"]))


def prime_factorization(answer: str, entry: Entry) -> float:
    def factors(text: str) -> list[fractions.Fraction]:
        return sorted(number(part) for part in re.split("[×*]", text))

    return float(factors(answer) == factors(entry["answer"]))


def propositional_logic(answer: str, entry: Entry) -> float:
    """1 for a conclusion that follows, is not a tautology, and is not merely one of the premises again."""
    from reasoning_gym.logic.propositional_logic import Expression

    names = sorted(entry["metadata"]["variables"])
    if len(answer) > 1000 or set(re.findall(r"\w+", answer)) - set(names):
        return 0.0
    rows = [
        dict(zip(names, bits, strict=True)) for bits in itertools.product((False, True), repeat=len(names))
    ]

    def table(text: str) -> list[bool]:
        parsed = Expression.from_string(text)
        return [bool(parsed.evaluate(row)) for row in rows]

    conclusion, premises = table(answer), [table(p) for p in entry["metadata"]["premises"]]
    given = [all(p[i] for p in premises) for i in range(len(rows))]
    if not any(given) or all(conclusion) or conclusion in premises:
        return 0.0
    return float(all(c for c, g in zip(conclusion, given, strict=True) if g))


def complex_arithmetic(answer: str, entry: Entry) -> float:
    value = dataset("complex_arithmetic", "{}").parse_string_to_complex(answer)
    distance = abs(value - complex(*entry["metadata"]["result"]))
    return math.exp(-distance) if math.isfinite(distance) else 0.0


def rubiks_cube(answer: str, entry: Entry) -> float:
    if len(answer) > 2000 or re.search(r"\d\d", answer):
        return 0.0
    return float(dataset("rubiks_cube", "{}").score_answer(answer, entry) == 1.0)


RULES: dict[str, Callable[[str, Entry], float]] = {
    "binary_matrix": lambda a, e: as_rows(a, e["answer"], matrix_text),
    "coin_flip": coin_flip,
    "complex_arithmetic": complex_arithmetic,
    "countdown": lambda a, e: exact_numbers(
        a, fractions.Fraction(e["metadata"]["target"]), e["metadata"]["numbers"]
    ),
    "game_of_life": lambda a, e: float(json.loads(a) == json.loads(e["answer"])),
    "game_of_life_halting": lambda a, e: same(a.lower(), e["answer"].lower()),
    "gsm_symbolic": lambda a, e: float(number(a.lstrip("$")) == number(e["answer"])),
    "intermediate_integration": integration,
    "knights_knaves": knights_knaves,
    "mini_sudoku": lambda a, e: float(a.split() == e["answer"].split()),
    "n_queens": n_queens,
    "number_sorting": number_sorting,
    "polynomial_equations": polynomial_equations,
    "polynomial_multiplication": polynomial_multiplication,
    "prime_factorization": prime_factorization,
    "propositional_logic": propositional_logic,
    "puzzle24": lambda a, e: exact_numbers(a, fractions.Fraction(24), e["metadata"]["numbers"]),
    "rectangle_count": lambda a, e: same(a, e["answer"]),
    "rubiks_cube": rubiks_cube,
    "simple_integration": integration,
    "spiral_matrix": lambda a, e: as_rows(a, e["answer"], lambda row: " ".join(str(x) for x in row)),
    "string_insertion": lambda a, e: as_rows(a, e["answer"], "".join),
    "time_intervals": lambda a, e: same(a, e["answer"]),
}
"""What replaces reasoning-gym's scorer; `families.py` says why. A ValueError or any other exception means 0."""


@functools.cache
def dataset(family: str, params: str) -> Any:
    """The family's data set as far as its scorer needs it: initialising some takes a second."""
    from reasoning_gym.factory import DATASETS

    cls: Any
    cls, config_cls = DATASETS[family]
    config = config_cls(**typed_params(family, config_cls, json.loads(params)), seed=0, size=10)
    if family == "sokoban":
        return cls(config)
    bare: Any = object.__new__(cls)
    bare.config = config
    if family in ("arc_agi", "rearc"):
        bare.board_format_opts = config.board_format_opts
    if family == "word_ladder":
        bare.word_sets = cls._load_words_from_csv(config.min_word_length, config.max_word_length)
    return bare


def score(family: str, params: str, entry: str, answer: str) -> float:
    """Raw grade of one answer in [0, 1].

    Args:
        family: Family name.
        params: Parameters as a JSON object of texts, as the user wrote them.
        entry: The question's entry as tagged JSON.
        answer: Stripped, not empty.
    """
    typed = decode(json.loads(entry))
    scorer = dataset(family, params)  # outside: a library that does not load is not a wrong answer
    try:
        raw = RULES[family](answer, typed) if family in RULES else float(scorer.score_answer(answer, typed))
    except Exception:  # malformed text makes several scorers raise; an answer that cannot be read is wrong
        return 0.0
    return min(1.0, max(0.0, raw)) if math.isfinite(raw) else 0.0
