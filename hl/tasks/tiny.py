"""`qa:tiny`: a small invented world of people, places and works, as passages and as questions over two of them.

Everything is drawn from one seed: the same passages and questions on every machine. Passages speak of their subject as
Wikipedia's first paragraphs do after the first word ("she", "this novel"), so that the title is needed to read them: a
passage under another title says something else. Nothing here is real, so that no model can know it.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

VERSION = "1"
T = TypeVar("T")
COUNTRIES, TOWNS, RIVERS, PEOPLE, TEACHERS, WORKS = 12, 100, 40, 200, 24, 300
COMPARED = 250
"""Questions of each kind of comparison."""

_ONSETS = tuple(re.findall(r"[a-z]+", "b br d dr f g gr h k kl l m n p pr r s sk st t tr v w z"))
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "io"]
_ENDS = ["n", "r", "l", "s", "th", "m", "nd", "rk", "st", "ld"]
_PLACE = ["Port", "Upper", "Lower", "Old", "New", "East", "West", "North", "Saint", "Great"]
_TRADES = (
    ("novelist", "novel", "author"),
    ("director", "film", "director"),
    ("painter", "painting", "painter"),
    ("composer", "opera", "composer"),
)
"""(trade, kind of work, what its maker is called)."""
_KNOWN = (
    "long patience",
    "a quick temper",
    "early mornings",
    "careful letters",
    "a love of chess",
    "bright scarves",
)
_CROPS = ["apples", "barley", "hops", "flax", "walnuts", "beans", "pears", "honey", "salt", "wool"]


@dataclass(frozen=True, slots=True)
class World:
    """The passages, and the questions over them."""

    passages: tuple[tuple[str, str], ...]
    """(title, text); titles are distinct."""
    questions: tuple[tuple[str, str, str], ...]
    """(kind, question, answer): kind is `bridge` or `comparison`."""


@dataclass(frozen=True, slots=True)
class _Person:
    name: str
    trade: int
    born: int
    town: int
    teacher: int
    she: bool


@dataclass(frozen=True, slots=True)
class _Work:
    title: str
    trade: int
    maker: int
    year: int
    town: int


def make_world(seed: str = "0") -> World:
    """The world of a seed."""
    rng = random.Random(f"qa:tiny {VERSION} {seed}")
    names = _names(rng)
    countries = [next(names) + "ia" for _ in range(COUNTRIES)]
    towns = [f"{rng.choice(_PLACE)} {next(names)}" for _ in range(TOWNS)]
    rivers = [next(names) for _ in range(RIVERS)]
    lies = [rng.randrange(COUNTRIES) for _ in towns]
    flows = [rng.randrange(RIVERS) for _ in towns]
    firsts = [next(names) for _ in range(40)]
    people = [
        _Person(
            f"{rng.choice(firsts)} {next(names)}",
            rng.randrange(len(_TRADES)),
            rng.randrange(1840, 1960),
            rng.randrange(TOWNS),
            # The first are the teachers of all others, and of each other.
            (i + 1) % TEACHERS if i < TEACHERS else rng.randrange(TEACHERS),
            rng.random() < 0.5,
        )
        for i in range(PEOPLE)
    ]
    works = [_draw_work(rng, f"{next(names)} {next(names)}", people) for _ in range(WORKS)]
    passages = [
        *_describe_people(rng, people, towns),
        *_describe_works(works, people, towns),
        *_describe_towns(rng, towns, countries, rivers, lies, flows),
        *((c, f"This country has {rng.choice(towns)} as its largest town. It grows {_crops(rng)}.") for c in countries),
        *((r, f"This river is {rng.randrange(20, 900)} km long. It rises in hills where people grow {_crops(rng)}.")
          for r in rivers),
    ]  # fmt: skip
    rng.shuffle(passages)
    questions = [
        *(("bridge", *q) for q in _bridges(works, people, towns, countries, rivers, lies, flows)),
        *(("comparison", *q) for q in _comparisons(rng, works, people)),
    ]
    once: dict[tuple[str, ...], tuple[str, str, str]] = {}
    for found in questions:
        # "A or B?" and "B or A?" have the same words, and are one question.
        once.setdefault(tuple(sorted(re.findall(r"\w+", found[1]))), found)
    return World(tuple(passages), tuple(once.values()))


def shuffled(passages: Sequence[tuple[str, str]], seed: int = 0) -> list[tuple[str, str]]:
    """The same titles and the same texts, none with its own: a corpus that reads well and says nothing true."""
    order = list(range(len(passages)))
    random.Random(seed).shuffle(order)
    after = {a: b for a, b in zip(order, [*order[1:], *order[:1]], strict=True)}
    return [(title, passages[after[i]][1]) for i, (title, _) in enumerate(passages)]


# --- drawing -------------------------------------------------------------------------------------------------------


def _names(rng: random.Random) -> Iterator[str]:
    """Invented names, none twice."""
    seen: set[str] = set()
    while True:
        name = (
            rng.choice(_ONSETS)
            + rng.choice(_VOWELS)
            + rng.choice(_ONSETS)
            + rng.choice(_VOWELS)
            + rng.choice(_ENDS)
        )
        if name not in seen:
            seen.add(name)
            yield name.capitalize()


def _draw_work(rng: random.Random, title: str, people: Sequence[_Person]) -> _Work:
    maker = rng.randrange(len(people))
    year = people[maker].born + rng.randrange(20, 60)
    return _Work(title, people[maker].trade, maker, year, rng.randrange(TOWNS))


def _crops(rng: random.Random) -> str:
    return " and ".join(rng.sample(_CROPS, 2))


def _describe_people(
    rng: random.Random, people: Sequence[_Person], towns: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for p in people:
        she = "She" if p.she else "He"
        trade = _TRADES[p.trade][0]
        article = "an" if trade[0] in "aeiou" else "a"
        yield (
            p.name,
            f"{she} was {article} {trade} known for {rng.choice(_KNOWN)}. {she} was born in {p.born} in "
            f"{towns[p.town]}. {she} studied under {people[p.teacher].name}.",
        )


def _describe_works(
    works: Sequence[_Work], people: Sequence[_Person], towns: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for w in works:
        noun = _TRADES[w.trade][1]
        yield (
            w.title,
            f"This {noun} is a work of {people[w.maker].name}. It appeared in {w.year}. It is set in {towns[w.town]}.",
        )


def _describe_towns(
    rng: random.Random,
    towns: Sequence[str],
    countries: Sequence[str],
    rivers: Sequence[str],
    lies: Sequence[int],
    flows: Sequence[int],
) -> Iterator[tuple[str, str]]:
    for i, town in enumerate(towns):
        yield (
            town,
            f"This town has {rng.randrange(2, 90)} thousand inhabitants who grow {_crops(rng)}. It lies in "
            f"{countries[lies[i]]}. The river {rivers[flows[i]]} flows through it.",
        )


# --- asking --------------------------------------------------------------------------------------------------------


def _bridges(
    works: Sequence[_Work],
    people: Sequence[_Person],
    towns: Sequence[str],
    countries: Sequence[str],
    rivers: Sequence[str],
    lies: Sequence[int],
    flows: Sequence[int],
) -> Iterator[tuple[str, str]]:
    """Two passages joined by a name that the question does not say."""
    for i, w in enumerate(works):
        _, noun, role = _TRADES[w.trade]
        maker = people[w.maker]
        yield f"In which town was the {role} of the {noun} {w.title} born?", towns[maker.town]
        yield f"In which year was the {role} of the {noun} {w.title} born?", str(maker.born)
        yield f"Under whom did the {role} of the {noun} {w.title} study?", people[maker.teacher].name
        if i % 3 == 0:
            yield f"In which country is the {noun} {w.title} set?", countries[lies[w.town]]
    for p in people[::3]:
        yield f"Which river flows through the birthplace of {p.name}?", rivers[flows[p.town]]


def _comparisons(
    rng: random.Random, works: Sequence[_Work], people: Sequence[_Person]
) -> Iterator[tuple[str, str]]:
    """Two passages whose facts are compared."""
    for a, b in _pairs(rng, people):
        if a.born != b.born:
            yield f"Who was born earlier, {a.name} or {b.name}?", a.name if a.born < b.born else b.name
    for a, b in _pairs(rng, works):
        if a.year != b.year:
            nouns = _TRADES[a.trade][1], _TRADES[b.trade][1]
            question = f"Which appeared first, the {nouns[0]} {a.title} or the {nouns[1]} {b.title}?"
            yield question, a.title if a.year < b.year else b.title
    for i, (a, b) in enumerate(_pairs(rng, people)):
        if i % 2 == 0:
            pupils = [p for p in people if p.teacher == a.teacher and p is not a]
            b = rng.choice(pupils) if pupils else b
        same = "yes" if a.teacher == b.teacher else "no"
        yield f"Did {a.name} and {b.name} study under the same teacher?", same


def _pairs(rng: random.Random, things: Sequence[T]) -> Iterator[tuple[T, T]]:
    for _ in range(COMPARED):
        first, second = rng.sample(range(len(things)), 2)
        yield things[first], things[second]
