"""What a plain `hl log` shows, read without the nouns: importing those costs more than reading twenty commits.

Promises the same entries as `hl.ledger.log` as far as one line of text shows them, and says so where it cannot: a
commit whose note, trailers or round are not exactly as we write them is `None`, for the full reader to look at.
Does not know losers, graphs, candidates' names, or scores that hang from another commit.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from hl.git import Batch, Git
from hl.ledger.names import NOTES, parse_candidate, round_ref

PAGE = 256
"""Commits looked at together, as in hl.ledger.log."""
_FORMAT = "--format=tformat:%H%x00%P%x00%B%x00%N"
_WORDS = {"accepted": True, "rejected": False}


@dataclass(frozen=True, slots=True)
class QuickScore:
    """As `hl.types.Score`."""

    mean: float
    se: float
    n: int


@dataclass(frozen=True, slots=True)
class QuickMeasurement:
    """What one line of text shows of a measurement."""

    role: str
    ablation: str
    solver: str
    mode: str
    score: QuickScore


@dataclass(frozen=True, slots=True)
class QuickVerdict:
    """What one line of text shows of a round's verdict."""

    accepted: bool
    evidence: str
    winner: int | None
    gain: float | None
    gain_se: float | None
    confirmed: bool


@dataclass(frozen=True, slots=True)
class QuickEntry:
    """What one line of text shows of a commit; the names are those of `hl.ledger.log.LogEntry`."""

    commit: str
    parents: tuple[str, ...]
    subject: str
    measurements: tuple[QuickMeasurement, ...]
    round: int = 0
    index: int = -1
    outcome: str = ""
    verdict: QuickVerdict | None = None
    accepted: bool = False
    detail: str = ""
    loser: bool = False
    graph: tuple[str, ...] = ()


class Odd(Exception):
    """Something that only the full reader can judge; never escapes this file."""


_Commit = tuple[str, tuple[str, ...], str, bytes, Mapping[str, str]]


def quick_log(
    git: Git, revs: Sequence[str], files: Sequence[str], entry: str, limit: int | None
) -> Iterator[tuple[str, QuickEntry | None]]:
    """(commit, entry or None where the full reader is needed), newest first.

    Raises:
        GitFailed: A revision is unknown; before anything was yielded.
    """
    args = ["log", "-z", _FORMAT, "--encoding=UTF-8", "--no-show-signature", "--no-patch", "--no-notes"]
    args += [f"--notes={NOTES}", *([f"--max-count={limit}"] if limit is not None else [])]
    commits = _commits(git.fields(*args, "--end-of-options", *revs, "--"))
    if not (page := list(islice(commits, PAGE))):
        return
    names = sorted(set(files))
    with git.batch() as batch:
        while page:
            digests = _digests(batch, [c[0] for c in page], names, entry)
            verdicts = _verdicts(batch, page)
            for commit, digest in zip(page, digests, strict=True):
                try:
                    yield commit[0], _entry(commit, digest, verdicts)
                except (Odd, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    yield commit[0], None
            page = list(islice(commits, PAGE))


def _commits(fields: Iterator[bytes]) -> Iterator[_Commit]:
    for commit in fields:
        parents, message, note = (next(fields, b"") for _ in range(3))
        text = message.decode("utf-8", "surrogateescape")
        yield commit.decode(), tuple(parents.decode().split()), text.partition("\n")[0], note, _trailers(text)


def _trailers(message: str) -> Mapping[str, str]:
    """The `HL-*` lines of the last paragraph, if it is not the first."""
    paragraphs = message.rstrip("\n").split("\n\n") if "HL-" in message else []
    if len(paragraphs) < 2:
        return {}
    pairs = (line.partition(": ") for line in paragraphs[-1].split("\n"))
    return {name: value for name, colon, value in pairs if colon and name.startswith("HL-")}


def _digests(batch: Batch, commits: Sequence[str], names: Sequence[str], entry: str) -> Iterator[str]:
    """`Harness.digest` of each commit; empty where a file is missing."""
    blobs = batch.get_many(f"{commit}:{name}" for commit in commits for name in names)
    for _ in commits:
        h, whole = hashlib.sha256(entry.encode()), True
        for name in names:
            found = next(blobs)
            whole = whole and found is not None and found[1] == "blob"
            for part in (name.encode(), found[2] if found else b""):
                h.update(len(part).to_bytes(8, "big"))
                h.update(part)
        yield h.hexdigest() if whole else ""


def _verdicts(batch: Batch, page: Sequence[_Commit]) -> Mapping[str, str]:
    """Commit -> message of its round's commit, for those that the round itself names."""
    named: list[tuple[str, str, int]] = []
    for oid, _, _, _, trailers in page:
        name = parse_candidate(trailers.get("HL-Round", ""))
        if name is not None and name.lineage and not name.suffix:
            named.append((oid, round_ref(name.lineage, name.round), name.index))
    found: dict[str, str] = {}
    for (oid, _, index), answer in zip(named, batch.get_many(ref for _, ref, _ in named), strict=True):
        if answer is None or answer[1] != "commit":
            continue
        head, _, message = answer[2].decode("utf-8", "replace").partition("\n\n")
        parents = [line[7:] for line in head.split("\n") if line.startswith("parent ")]
        if index < len(parents) and parents[index] == oid:
            found[oid] = message
    return found


def _entry(commit: _Commit, digest: str, verdicts: Mapping[str, str]) -> QuickEntry:
    oid, parents, subject, note, trailers = commit
    raw = [json.loads(line) for line in note.split(b"\n") if line.strip()]
    own = tuple(_measurement(line) for line in raw if line["h"] == digest)
    if digest and not own:
        raise Odd("its score may hang from another commit")
    if oid not in verdicts:
        return QuickEntry(oid, parents, subject, own)
    name = parse_candidate(trailers["HL-Round"])
    verdict = _verdict(_trailers(verdicts[oid]))
    if name is None or trailers.get("HL-Edit", "").split(" ")[0] != "scored":
        raise Odd("not an accepted candidate")
    accepted = verdict.accepted and verdict.winner == name.index
    return QuickEntry(oid, parents, subject, own, name.round, name.index, "scored", verdict, accepted)


def _measurement(line: Mapping[str, object]) -> QuickMeasurement:
    """The grades are averaged again: the mean that stands beside them is rounded."""
    raw = line["g"]
    if isinstance(raw, str):
        grades = [float("01".index(g)) for g in raw if g != "-"]
    elif isinstance(raw, list):
        grades = [float(g) for g in raw if g is not None]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    else:
        raise Odd("grades are neither text nor a list")
    n = len(grades)
    mean = sum(grades) / n if n else 0.0
    variance = sum((g - mean) ** 2 for g in grades) / (n - 1) if n > 1 else 0.0
    se = (variance / n) ** 0.5 if n else 0.0
    role = line["role"]
    solver, mode = line["sid"], line["mode"]
    if role not in ("feedback", "scoring", "confirmation", "evaluation") or not all(
        isinstance(text, str) for text in (line["t"], solver, mode)
    ):
        raise Odd("not a line of ours")
    return QuickMeasurement(
        str(role), str(line.get("abl", "")), str(solver), str(mode), QuickScore(mean, se, n)
    )


def _verdict(trailers: Mapping[str, str]) -> QuickVerdict:
    accepted, evidence = _WORDS[trailers["HL-Decision"]], trailers["HL-Evidence"]
    winner = int(trailers["HL-Winner"]) if "HL-Winner" in trailers else None
    if evidence not in ("gain", "within noise"):
        raise Odd("not a verdict of ours")
    if not (text := trailers.get("HL-Gain")):
        return QuickVerdict(accepted, evidence, winner, None, None, confirmed=False)
    mean, _, se, _, label = text.split(" ")
    return QuickVerdict(accepted, evidence, winner, float(mean), float(se), confirmed=label == "confirmation")
