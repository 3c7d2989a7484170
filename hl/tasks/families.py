"""The families of reasoning-gym 0.1.25: what they ask, how they are graded, and which are re-scored or refused.

A table and nothing else. `asks` and `rule` are for proposers, so they are general: no solution, no sample. `reason`
says why reasoning-gym's own scorer is not used, or why the family is refused; each was measured or read in its source.
"""

from dataclasses import dataclass

REASONING_GYM_VERSION = "0.1.25"
GRADER_VERSION = "1"
"""Raised whenever a rule of ours changes a grade: part of the task's version, so that old scores are not compared."""

EXACT = "The exact text earns 1."
SHARE = "The exact text earns 1; an answer that only contains it earns the share of its length that is right."
DECIMAL = f"The right number earns 1, however it is written (sign, zeros, commas); else: {SHARE}"
NUMBER = "The right number earns 1."
ANY = "Any valid solution earns 1."
CELLS = "The exact grid earns 1; a wrong one earns part of its share of right cells."
EXPRESSION = "An expression of exactly the given numbers, + - * / and parentheses that equals"
GRID = "The exact grid earns 1."


@dataclass(frozen=True, slots=True)
class Family:
    """One family."""

    name: str
    cluster: str
    """Families of one cluster ask for related skills: training and test sets split by cluster, never within."""
    asks: str
    """What a question asks for: completes "Each question ..."."""
    rule: str
    """How an answer is graded, in words."""
    status: str = "sound"
    """`sound` (reasoning-gym's scorer) | `rescored` (a rule of ours) | `refused`."""
    reason: str = ""
    """Why it is rescored or refused."""
    seconds: float = 0.0
    """Measured seconds to make one question, where that is over 0.02 (one busy core)."""
    gold_visible: bool = True
    """False where the family has no answer text to show."""
    host: str = ""
    """`share`, `exact` or `decimal` where the host grades in process, with no code of others and in linear time."""


def _share(name: str, cluster: str, asks: str, rule: str = SHARE) -> Family:
    return Family(name, cluster, asks, rule, host="share")


EVALUATES = "reasoning-gym's scorer executes the answer as code"

_ROWS = (
    Family(
        "ab", "strings", "gives an A::B rewriting program and asks for its final state", EXACT, host="exact"
    ),
    _share(
        "acre", "induction", "shows objects that do or do not set off a detector and asks about a new case"
    ),
    Family(
        "advanced_geometry",
        "geometry",
        "asks for an angle, orthocentre or incircle radius of a triangle",
        NUMBER,
    ),
    _share(
        "aiw", "relations", "asks how many relatives, friends or colleagues somebody in a short story has"
    ),
    _share(
        "arc_1d", "arc", "shows pairs of number rows under one rule and asks to apply the rule to another row"
    ),
    Family(
        "arc_agi",
        "arc",
        "shows pairs of grids under one rule and asks to apply the rule to another grid",
        GRID,
    ),
    _share("base_conversion", "formats", "asks to convert a number from one base to another"),
    _share("basic_arithmetic", "arithmetic", "asks for the value of an integer expression"),
    _share("bf", "programs", "asks what a Brainf*ck program prints"),
    _share("binary_alternation", "bits", "asks for the fewest swaps that make a binary string alternate"),
    Family(
        "binary_matrix",
        "matrices",
        "asks for the distance of every cell of a binary matrix to the nearest 0",
        f"{EXACT} The same content as a Python list earns 0.1.",
        "rescored",
        EVALUATES,
    ),
    Family(
        "bitwise_arithmetic", "bits", "asks for the value of an expression of hexadecimal numbers", NUMBER
    ),
    Family(
        "boxnet",
        "planning",
        "asks for a plan, as JSON, that moves boxes to their targets",
        "The share of boxes brought to their targets.",
        gold_visible=False,
    ),
    _share("caesar_cipher", "ciphers", "asks to decrypt a Caesar cipher"),
    Family(
        "calendar_arithmetic",
        "time",
        "asks for weekdays, numbers of days, or leap years",
        "The right answer earns 1; a count that is close, or another weekday, earns a part.",
    ),
    Family(
        "chain_sum",
        "arithmetic",
        "asks for the result of a chain of additions and subtractions",
        DECIMAL,
        host="decimal",
    ),
    Family("circuit_logic", "logic", "draws a logic circuit and asks for its output", EXACT, host="exact"),
    Family(
        "codeio",
        "programs",
        "describes a program with its code and asks for its output, or for its input, as JSON",
        "The exact JSON earns 1; JSON that is partly right earns a part.",
    ),
    Family(
        "coin_flip",
        "probability",
        "asks for the probability of a number of heads",
        "The right probability, as a decimal within 0.0001 and 1 % or as a fraction, earns 1.",
        "rescored",
        "reasoning-gym's scorer compares prefixes over the shorter text: the answer 0 averages 0.95",
    ),
    Family(
        "color_cube_rotation",
        "spatial",
        "rotates a cube of coloured sides and asks for one side's colour",
        EXACT,
    ),
    Family(
        "complex_arithmetic",
        "arithmetic",
        "asks for the result of an operation on complex numbers",
        "The right number earns 1; a near one earns exp(-distance).",
        "rescored",
        "reasoning-gym's scorer gives the answer nan full credit",
    ),
    Family(
        "composite",
        "mixed",
        "mixes other families",
        "",
        "refused",
        "it only mixes other families, with seeds that overlap: name one family instead",
    ),
    _share("count_bits", "bits", "asks for the number of 1 bits of a number"),
    _share("count_primes", "number theory", "asks how many primes lie in an interval"),
    Family(
        "countdown",
        "number games",
        "asks for an expression of the given numbers that gives a target",
        f"{EXPRESSION} the target earns 1.",
        "rescored",
        EVALUATES,
    ),
    _share("course_schedule", "graphs", "asks whether courses can be finished under their prerequisites"),
    Family("cryptarithm", "puzzles", "asks for the digits behind the letters of a sum", ANY),
    Family(
        "decimal_arithmetic",
        "arithmetic",
        "asks for the value of a decimal expression",
        "The right number earns 1, to the precision that the question names.",
    ),
    Family(
        "decimal_chain_sum",
        "arithmetic",
        "asks for the result of a chain of decimal additions and subtractions",
        NUMBER,
    ),
    Family("dice", "probability", "asks for the odds of a sum of dice, as a reduced fraction", EXACT),
    Family(
        "emoji_mystery",
        "ciphers",
        "hides a sentence in an emoji and asks for it",
        "The exact text earns 1; one of the right length earns its share of right characters.",
    ),
    Family(
        "family_relationships", "relations", "describes a family and asks how two people are related", EXACT
    ),
    Family(
        "figlet_font",
        "spatial",
        "draws a word in large ASCII letters and asks for it",
        "The right word earns 1; each right letter in place earns 0.1.",
    ),
    Family(
        "fraction_simplification",
        "fractions",
        "asks to reduce a fraction to lowest terms",
        "The reduced fraction, in the question's notation, earns 1.",
        "rescored",
        "reasoning-gym's scorer pays for repeating the question's fraction, and for no answer",
    ),
    Family("futoshiki", "grids", "asks to fill a grid under inequality signs", CELLS, seconds=0.25),
    Family(
        "game_of_life",
        "automata",
        "asks for a Game of Life board some steps later, as JSON",
        GRID,
        "rescored",
        "reasoning-gym's scorer pays for every dead cell: an empty board averages 0.96",
    ),
    Family(
        "game_of_life_halting",
        "automata",
        "asks whether a Game of Life board dies out in time",
        "True or False, as asked, earns 1 if right.",
        "rescored",
        "reasoning-gym's scorer takes any text that is not empty for right",
    ),
    _share("gcd", "number theory", "asks for the greatest common divisor of numbers"),
    Family(
        "graph_color",
        "graphs",
        "asks for a colouring of a graph, as JSON",
        ANY,
        gold_visible=False,
    ),
    Family(
        "group_anagrams",
        "words",
        "asks to group anagrams, as JSON",
        "The right groups, in any order, earn 1.",
    ),
    Family(
        "gsm_symbolic",
        "word problems",
        "tells a short story and asks for a number",
        "The right number, alone, earns 1.",
        "rescored",
        "reasoning-gym's scorer reads the first number of any text: a question repeated can score",
    ),
    Family(
        "intermediate_integration",
        "calculus",
        "asks for an antiderivative",
        "Any formula whose derivative is the integrand earns 1; Integral(...) is not a formula.",
        "rescored",
        f"{EVALUATES}, and takes the unevaluated integral for right",
        seconds=0.03,
    ),
    _share("isomorphic_strings", "strings and letters", "asks whether two strings are isomorphic"),
    Family("jugs", "planning", "asks for moves, as JSON, that measure an amount with jugs", ANY),
    Family("kakurasu", "grids", "asks to fill a grid so that weighted sums match", ANY),
    Family(
        "knight_swap",
        "planning",
        "asks for knight moves, as JSON, that swap two sides, or No",
        "The shortest solution earns 1, a longer one its share.",
        seconds=0.6,
    ),
    Family(
        "knights_knaves",
        "deduction",
        "asks who always lies and who never does",
        "All roles right earns 1.",
        "rescored",
        "reasoning-gym's scorer pays up to 0.65 for the question repeated",
    ),
    _share("largest_island", "matrices", "asks for the largest area of connected 1s in a grid"),
    _share("lcm", "number theory", "asks for the least common multiple of numbers"),
    _share("leg_counting", "word problems", "asks how many legs a list of animals has"),
    _share("letter_counting", "strings and letters", "asks how often a letter occurs in a text"),
    Family(
        "letter_jumble",
        "words",
        "asks to unscramble the words of a sentence",
        "The exact text earns 1; right words in place earn a part.",
    ),
    _share(
        "list_functions", "induction", "shows lists under one rule and asks to apply the rule to another list"
    ),
    _share("mahjong_puzzle", "games", "plays rounds of a card game and asks for the last result"),
    Family("manipulate_matrix", "matrices", "asks for a matrix after a series of operations", SHARE),
    _share("maze", "paths", "draws a maze and asks for the length of the shortest way"),
    Family(
        "mini_sudoku",
        "grids",
        "asks to solve a 4 x 4 sudoku",
        GRID,
        "rescored",
        "reasoning-gym's scorer pays for right cells: another question's grid averages 0.29",
    ),
    _share("modulo_grid", "spatial", "asks to complete a grid of marks that follow a formula"),
    Family(
        "n_queens",
        "grids",
        "asks to complete a board of queens that do not attack each other",
        f"{ANY} As a Python list it earns 0.5.",
        "rescored",
        EVALUATES,
    ),
    Family("needle_haystack", "reading", "lists who likes what and asks for one person", EXACT),
    _share("number_filtering", "selection", "asks to keep or remove numbers of a list by a bound"),
    Family(
        "number_format", "formats", "asks for the largest or smallest of numbers in several notations", NUMBER
    ),
    _share("number_sequence", "induction", "asks for the next number of a sequence"),
    Family(
        "number_sorting",
        "selection",
        "asks to sort numbers",
        "The list in the right order, as asked, earns 1.",
        "rescored",
        "reasoning-gym's scorer takes a list of NaN for right, and numbers that are off by one",
    ),
    Family("palindrome_generation", "strings and letters", "asks for a palindrome of the given letters", ANY),
    Family(
        "palindrome_partitioning",
        "strings and letters",
        "asks for all ways to cut a string into palindromes, as JSON",
        "All partitions, in any order, earn 1.",
    ),
    Family("path_star", "paths", "lists edges and asks for the path between two nodes", EXACT),
    Family(
        "polynomial_equations",
        "algebra",
        "asks for the real roots of a polynomial",
        "All roots, each within 0.001, earn 1.",
        "rescored",
        "reasoning-gym's scorer pays 0.42 for a constant, and takes nonsense for right where there is no root",
    ),
    Family(
        "polynomial_multiplication",
        "algebra",
        "asks to expand a product of polynomials",
        "The expanded polynomial earns 1.",
        "rescored",
        EVALUATES,
    ),
    Family(
        "pool_matrix",
        "matrices",
        "asks for the max or average pooling of a matrix",
        "The right matrix earns 1; another of the right shape earns 0.1.",
    ),
    Family(
        "power_function",
        "arithmetic",
        "asks for a power of a number",
        "The right value to 3 significant figures earns 1.",
    ),
    Family(
        "prime_factorization",
        "number theory",
        "asks for the prime factors of a number",
        "All prime factors, with multiplicity, separated as the question asks, earn 1.",
        "rescored",
        "reasoning-gym's scorer pays 0.5 for the number itself, and fails on malformed answers",
    ),
    Family("products", "arithmetic", "asks for a product of integers", DECIMAL, host="decimal"),
    Family(
        "propositional_logic",
        "logic",
        "lists premises and asks for a conclusion as a formula",
        "Any formula that follows from the premises, is not always true and is not one of them earns 1.",
        "rescored",
        "reasoning-gym's scorer pays for tautologies, for nonsense, and for a premise repeated",
        gold_visible=False,
    ),
    Family(
        "puzzle24",
        "number games",
        "asks for an expression of four numbers that gives 24",
        f"{EXPRESSION} 24 earns 1.",
        "rescored",
        f"{EVALUATES}, does not compare its numbers with the question's, and truncates its value",
        seconds=0.05,
    ),
    Family(
        "quantum_lock",
        "planning",
        "asks for the shortest sequence of buttons that reaches a number",
        "A shortest sequence earns 1, a longer one that works 0.5.",
    ),
    _share("ransom_note", "strings and letters", "asks whether a text can be made of the letters of another"),
    Family(
        "rearc", "arc", "shows pairs of grids under one rule and asks to apply the rule to another grid", GRID
    ),
    Family(
        "rectangle_count",
        "spatial",
        "asks how many rectangles an ASCII drawing has",
        NUMBER,
        "rescored",
        "reasoning-gym's scorer pays for distance: one constant averages 0.42",
        host="exact",
    ),
    _share("rotate_matrix", "matrices", "asks to rotate a matrix"),
    _share("rotten_oranges", "matrices", "asks how many minutes decay takes to spread over a grid"),
    Family(
        "rubiks_cube",
        "spatial",
        "asks for moves that solve a scrambled cube",
        ANY,
        "rescored",
        "reasoning-gym's scorer pays for stickers that were right before the first move",
        gold_visible=False,
    ),
    Family("rush_hour", "planning", "asks for car moves that free the red car", ANY, gold_visible=False),
    Family(
        "self_reference",
        "deduction",
        "asks how many assignments satisfy statements about each other",
        EXACT,
        host="exact",
    ),
    Family(
        "sentence_reordering",
        "words",
        "asks for the right order of a sentence's words",
        "The exact text earns 1; words in their right places earn their share.",
    ),
    Family(
        "shortest_path",
        "paths",
        "asks for the shortest way through a grid as directions, or infeasible",
        "A shortest way earns 1, another way that arrives 0.5.",
    ),
    _share("simple_equations", "algebra", "asks to solve a linear equation"),
    _share("simple_geometry", "geometry", "asks for the missing angle of a polygon"),
    Family(
        "simple_integration",
        "calculus",
        "asks for an antiderivative of a polynomial",
        "Any formula whose derivative is the integrand earns 1; Integral(...) is not a formula.",
        "rescored",
        f"{EVALUATES}, and takes the unevaluated integral for right",
    ),
    Family("sokoban", "planning", "asks for moves that push all boxes onto goals", ANY, seconds=0.05),
    Family(
        "spell_backward",
        "reversal",
        "asks to spell a word backward",
        "The exact word earns 1; each right letter in place earns its share.",
    ),
    Family(
        "spiral_matrix",
        "matrices",
        "asks for the elements of a matrix in spiral order",
        f"{EXACT} The same content as a Python list earns 0.1.",
        "rescored",
        EVALUATES,
    ),
    Family(
        "string_insertion",
        "strings",
        "asks to insert characters into a string by rules",
        f"{EXACT} The same content as a Python list earns 0.1.",
        "rescored",
        EVALUATES,
    ),
    _share("string_manipulation", "strings", "asks to rewrite a string by rules until nothing changes"),
    _share("string_splitting", "strings", "asks for the counts of parts after dismantling machines by rules"),
    _share("string_synthesis", "strings", "asks for the counts of blocks after combining them by rules"),
    Family("sudoku", "grids", "asks to solve a sudoku", CELLS),
    Family("survo", "grids", "asks to fill a matrix with given numbers so that sums match", GRID),
    _share("syllogism", "logic", "asks whether a conclusion follows from two statements"),
    Family(
        "time_intervals",
        "time",
        "asks how long something took",
        "The duration in the format that the question asks for earns 1.",
        "rescored",
        "reasoning-gym's scorer pays for distance: another question's answer averages 0.31",
        host="exact",
    ),
    Family(
        "tower_of_hanoi",
        "planning",
        "asks for the moves of a Tower of Hanoi",
        "A shortest solution earns 1, a longer one its share.",
    ),
    Family(
        "tsumego",
        "games",
        "asks for the move that captures the most stones in Go",
        "The right point earns 1; an answer that only contains it earns its share of the length.",
    ),
    Family(
        "word_ladder",
        "words",
        "asks for words that lead from one word to another, one letter at a time",
        "A ladder of known words earns 1; each unknown word halves it.",
    ),
    _share("word_sequence_reversal", "reversal", "asks to reverse a list of words"),
    Family(
        "word_sorting",
        "selection",
        "asks to sort words by character code",
        "The exact order earns 1; words in their right places earn their share.",
    ),
    Family("zebra_puzzles", "deduction", "asks who lives in a house, from clues", EXACT, seconds=0.08),
)

FAMILIES: dict[str, Family] = {row.name: row for row in _ROWS}
"""By name, refused ones included."""
