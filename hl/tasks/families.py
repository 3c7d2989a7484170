"""The families of reasoning-gym 0.1.25: what they ask, how they are graded, and which are re-scored or refused.

A table and nothing else. `asks` and `rule` are for proposers, so they are general: no solution, no sample. `reason`
says why reasoning-gym's own scorer is not used, or why the family is refused; each was measured or read in its source.
"""

from dataclasses import dataclass

from hl.tasks.rescored import ANY, EXACT, GRID, NUMBER, RESCORED

REASONING_GYM_VERSION = "0.1.25"
GRADER_VERSION = "1"
"""Raised whenever a rule of ours changes a grade: part of the task's version, so that old scores are not compared."""

SHARE = "The exact text earns 1; an answer that only contains it earns the share of its length that is right."
DECIMAL = f"The right number earns 1, however it is written (sign, zeros, commas); else: {SHARE}"
CELLS = "The exact grid earns 1; a wrong one earns part of its share of right cells."


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


def _share(name: str, cluster: str, asks: str) -> Family:
    return Family(name, cluster, asks, SHARE, host="share")


def _rescored(
    name: str, cluster: str, asks: str, *, seconds: float = 0.0, gold_visible: bool = True
) -> Family:
    ours = RESCORED[name]
    return Family(name, cluster, asks, ours.rule, "rescored", ours.reason, seconds, gold_visible, ours.host)


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
    _share("base_conversion", "bits and formats", "asks to convert a number from one base to another"),
    _share("basic_arithmetic", "arithmetic", "asks for the value of an integer expression"),
    _share("bf", "programs", "asks what a Brainf*ck program prints"),
    _share(
        "binary_alternation",
        "bits and formats",
        "asks for the fewest swaps that make a binary string alternate",
    ),
    _rescored(
        "binary_matrix", "matrices", "asks for the distance of every cell of a binary matrix to the nearest 0"
    ),
    Family(
        "bitwise_arithmetic",
        "bits and formats",
        "asks for the value of an expression of hexadecimal numbers",
        NUMBER,
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
    _rescored("coin_flip", "probability", "asks for the probability of a number of heads"),
    Family(
        "color_cube_rotation",
        "spatial",
        "rotates a cube of coloured sides and asks for one side's colour",
        EXACT,
    ),
    _rescored("complex_arithmetic", "arithmetic", "asks for the result of an operation on complex numbers"),
    Family(
        "composite",
        "mixed",
        "mixes other families",
        "",
        "refused",
        "it only mixes other families, with seeds that overlap: name one family instead",
    ),
    _share("count_bits", "bits and formats", "asks for the number of 1 bits of a number"),
    _share("count_primes", "number theory", "asks how many primes lie in an interval"),
    _rescored("countdown", "number games", "asks for an expression of the given numbers that gives a target"),
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
    _rescored("fraction_simplification", "fractions", "asks to reduce a fraction to lowest terms"),
    Family("futoshiki", "grids", "asks to fill a grid under inequality signs", CELLS, seconds=0.25),
    _rescored("game_of_life", "automata", "asks for a Game of Life board some steps later, as JSON"),
    _rescored("game_of_life_halting", "automata", "asks whether a Game of Life board dies out in time"),
    _share("gcd", "number theory", "asks for the greatest common divisor of numbers"),
    Family("graph_color", "graphs", "asks for a colouring of a graph, as JSON", ANY, gold_visible=False),
    Family(
        "group_anagrams",
        "strings and letters",
        "asks to group anagrams, as JSON",
        "The right groups, in any order, earn 1.",
    ),
    _rescored("gsm_symbolic", "word problems", "tells a short story and asks for a number"),
    _rescored("intermediate_integration", "calculus", "asks for an antiderivative", seconds=0.06),
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
    _rescored("knights_knaves", "deduction", "asks who always lies and who never does"),
    _share("largest_island", "matrices", "asks for the largest area of connected 1s in a grid"),
    _share("lcm", "number theory", "asks for the least common multiple of numbers"),
    _share("leg_counting", "word problems", "asks how many legs a list of animals has"),
    _share("letter_counting", "strings and letters", "asks how often a letter occurs in a text"),
    Family(
        "letter_jumble",
        "reversal",
        "asks to unscramble the words of a sentence",
        "The exact text earns 1; right words in place earn a part.",
    ),
    _share(
        "list_functions", "induction", "shows lists under one rule and asks to apply the rule to another list"
    ),
    _share("mahjong_puzzle", "games", "plays rounds of a card game and asks for the last result"),
    Family("manipulate_matrix", "matrices", "asks for a matrix after a series of operations", SHARE),
    _share("maze", "paths", "draws a maze and asks for the length of the shortest way"),
    _rescored("mini_sudoku", "grids", "asks to solve a 4 x 4 sudoku"),
    _share("modulo_grid", "spatial", "asks to complete a grid of marks that follow a formula"),
    _rescored("n_queens", "grids", "asks to complete a board of queens that do not attack each other"),
    Family("needle_haystack", "reading", "lists who likes what and asks for one person", EXACT),
    _share("number_filtering", "selection", "asks to keep or remove numbers of a list by a bound"),
    Family(
        "number_format",
        "bits and formats",
        "asks for the largest or smallest of numbers in several notations",
        NUMBER,
    ),
    _share("number_sequence", "induction", "asks for the next number of a sequence"),
    _rescored("number_sorting", "selection", "asks to sort numbers"),
    Family("palindrome_generation", "strings and letters", "asks for a palindrome of the given letters", ANY),
    Family(
        "palindrome_partitioning",
        "strings and letters",
        "asks for all ways to cut a string into palindromes, as JSON",
        "All partitions, in any order, earn 1.",
    ),
    Family("path_star", "paths", "lists edges and asks for the path between two nodes", EXACT),
    _rescored("polynomial_equations", "algebra", "asks for the real roots of a polynomial"),
    _rescored("polynomial_multiplication", "algebra", "asks to expand a product of polynomials"),
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
    _rescored("prime_factorization", "number theory", "asks for the prime factors of a number"),
    Family("products", "arithmetic", "asks for a product of integers", DECIMAL, host="decimal"),
    _rescored(
        "propositional_logic",
        "logic",
        "lists premises and asks for a conclusion as a formula",
        gold_visible=False,
    ),
    _rescored(
        "puzzle24", "number games", "asks for an expression of four numbers that gives 24", seconds=0.07
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
    _rescored("rectangle_count", "spatial", "asks how many rectangles an ASCII drawing has"),
    _share("rotate_matrix", "matrices", "asks to rotate a matrix"),
    _share("rotten_oranges", "matrices", "asks how many minutes decay takes to spread over a grid"),
    _rescored("rubiks_cube", "spatial", "asks for moves that solve a scrambled cube", gold_visible=False),
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
    _rescored("simple_integration", "calculus", "asks for an antiderivative of a polynomial"),
    Family("sokoban", "planning", "asks for moves that push all boxes onto goals", ANY, seconds=0.07),
    Family(
        "spell_backward",
        "reversal",
        "asks to spell a word backward",
        "The exact word earns 1; each right letter in place earns its share.",
    ),
    _rescored("spiral_matrix", "matrices", "asks for the elements of a matrix in spiral order"),
    _rescored("string_insertion", "strings", "asks to insert characters into a string by rules"),
    _share("string_manipulation", "strings", "asks to rewrite a string by rules until nothing changes"),
    _share("string_splitting", "strings", "asks for the counts of parts after dismantling machines by rules"),
    _share("string_synthesis", "strings", "asks for the counts of blocks after combining them by rules"),
    Family("sudoku", "grids", "asks to solve a sudoku", CELLS),
    Family("survo", "grids", "asks to fill a matrix with given numbers so that sums match", GRID),
    _share("syllogism", "logic", "asks whether a conclusion follows from two statements"),
    _rescored("time_intervals", "time", "asks how long something took"),
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
