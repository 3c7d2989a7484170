"""The families that reasoning-gym's own scorer grades wrongly: why, and our rule in words.

A table and nothing else: the rules are in `confined.py`. Each reason was measured, or read in the library's source.
"""

from dataclasses import dataclass

EXACT = "The exact text earns 1."
NUMBER = "The right number earns 1."
ANY = "Any valid solution earns 1."
GRID = "The exact grid earns 1."
EXPRESSION = "An expression of exactly the given numbers, + - * / and parentheses that equals"
EVALUATES = "reasoning-gym's scorer executes the answer as code"


@dataclass(frozen=True, slots=True)
class Rescore:
    """Why and how one family is graded by a rule of ours."""

    rule: str
    """How an answer is graded, in words."""
    reason: str
    """Why reasoning-gym's own scorer is not used."""
    host: str = ""
    """The rule of `text_rules.py` that grades in process, or empty: then in the sandbox."""


RESCORED: dict[str, Rescore] = {
    "binary_matrix": Rescore(f"{EXACT} The same content as a Python list earns 0.1.", EVALUATES),
    "coin_flip": Rescore(
        "The right probability, as a decimal within 0.0001 and 1 % or as a fraction, earns 1.",
        "reasoning-gym's scorer compares prefixes over the shorter text: the answer 0 averages 0.95",
    ),
    "complex_arithmetic": Rescore(
        "The right number earns 1; a near one earns exp(-distance).",
        "reasoning-gym's scorer gives the answer nan full credit",
    ),
    "countdown": Rescore(f"{EXPRESSION} the target earns 1.", EVALUATES),
    "fraction_simplification": Rescore(
        "The reduced fraction, in the question's notation, earns 1.",
        "reasoning-gym's scorer pays for repeating the question's fraction, and for no answer",
    ),
    "game_of_life": Rescore(
        GRID, "reasoning-gym's scorer pays for every dead cell: an empty board averages 0.96"
    ),
    "game_of_life_halting": Rescore(
        "True or False, as asked, earns 1 if right.",
        "reasoning-gym's scorer takes any text that is not empty for right",
    ),
    "gsm_symbolic": Rescore(
        "The right number, alone, earns 1.",
        "reasoning-gym's scorer reads the first number of any text: a question repeated can score",
    ),
    "intermediate_integration": Rescore(
        "Any formula whose derivative is the integrand earns 1; Integral(...) is not a formula.",
        f"{EVALUATES}, and takes the unevaluated integral for right",
    ),
    "knights_knaves": Rescore(
        "All roles right earns 1.", "reasoning-gym's scorer pays up to 0.65 for the question repeated"
    ),
    "mini_sudoku": Rescore(
        GRID, "reasoning-gym's scorer pays for right cells: another question's grid averages 0.29"
    ),
    "n_queens": Rescore(f"{ANY} As a Python list it earns 0.5.", EVALUATES),
    "number_sorting": Rescore(
        "The list in the right order, as asked, earns 1.",
        "reasoning-gym's scorer takes a list of NaN for right, and numbers that are off by one",
    ),
    "polynomial_equations": Rescore(
        "All roots, each within 0.001, earn 1.",
        "reasoning-gym's scorer pays 0.42 for a constant, and takes nonsense for right where there is no root",
    ),
    "polynomial_multiplication": Rescore("The expanded polynomial earns 1.", EVALUATES),
    "prime_factorization": Rescore(
        "All prime factors, with multiplicity, separated as the question asks, earn 1.",
        "reasoning-gym's scorer pays 0.5 for the number itself, and fails on malformed answers",
    ),
    "propositional_logic": Rescore(
        "Any formula that follows from the premises, is not always true and is not one of them earns 1.",
        "reasoning-gym's scorer pays for tautologies, for nonsense, and for a premise repeated",
    ),
    "puzzle24": Rescore(
        f"{EXPRESSION} 24 earns 1.",
        f"{EVALUATES}, does not compare its numbers with the question's, and truncates its value",
    ),
    "rectangle_count": Rescore(
        NUMBER, "reasoning-gym's scorer pays for distance: one constant averages 0.42", "exact"
    ),
    "rubiks_cube": Rescore(
        ANY, "reasoning-gym's scorer pays for stickers that were right before the first move"
    ),
    "simple_integration": Rescore(
        "Any formula whose derivative is the integrand earns 1; Integral(...) is not a formula.",
        f"{EVALUATES}, and takes the unevaluated integral for right",
    ),
    "spiral_matrix": Rescore(f"{EXACT} The same content as a Python list earns 0.1.", EVALUATES),
    "string_insertion": Rescore(f"{EXACT} The same content as a Python list earns 0.1.", EVALUATES),
    "time_intervals": Rescore(
        "The duration in the format that the question asks for earns 1.",
        "reasoning-gym's scorer pays for distance: another question's answer averages 0.31",
        "exact",
    ),
}
"""By family."""
