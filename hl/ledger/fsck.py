"""`hl fsck`: everything in the ledger that does not add up. Reads only; git's own objects are for `git fsck`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from hl.errors import RepositoryError
from hl.git import Batch
from hl.ledger import log as reading
from hl.ledger.lines import from_json, render_line
from hl.ledger.messages import parse_trailers, render_score
from hl.ledger.names import NOTES, parse_candidate, round_ref
from hl.ledger.notes import listing
from hl.ledger.revisions import digests
from hl.ledger.rounds import FILE, ProposalRecord, RoundRecord, parse_round
from hl.types import Measurement, Outcome

if TYPE_CHECKING:
    from hl.ledger.repository import Ledger
    from hl.records import Records


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that does not add up."""

    where: str
    """A reference, commit, record or file."""
    message: str
    hint: str = ""
    """The next command to type, where there is one."""
    serious: bool = True
    """False for lost detail and for states that the next command mends: scores and history are whole."""


def check(ledger: "Ledger", files: Sequence[str], entry: str, records: "Records | None") -> Iterator[Problem]:
    """See `Ledger.fsck`."""
    rounds: list[RoundRecord] = []
    with ledger.git.batch() as batch:
        for lineage, number, commit in ledger.round_refs():
            ref = round_ref(lineage, number)
            record, problems = _check_round(batch, ref, lineage, number, commit)
            yield from problems
            if record is not None:
                rounds.append(record)
                yield from _check_candidates(batch, ref, record, files, entry)
        lines: dict[str, set[str]] = {}
        yield from _check_notes(ledger, batch, lines)
    for record in rounds:
        yield from _check_measured(record, lines)
    yield from _check_history(ledger, rounds, files, entry)
    if records is not None:
        yield from _check_records(rounds, lines, records)
    yield from _check_leftovers(ledger)


def _check_round(
    batch: Batch, ref: str, lineage: str, number: int, commit: str
) -> tuple[RoundRecord | None, list[Problem]]:
    found = batch.get(commit)
    data = batch.get(f"{commit}:{FILE}")
    if found is None or found[1] != "commit" or data is None:
        return None, [Problem(ref, f"it is not a round: there is no {FILE}")]
    try:
        record = parse_round(commit, data[2])
    except ValueError as error:
        return None, [Problem(ref, f"{FILE} cannot be read: {error}")]
    problems: list[Problem] = []
    if (record.lineage, record.number) != (lineage, number):
        problems.append(Problem(ref, f"it holds round {record.number} of {record.lineage}"))
    head = found[2].decode("utf-8", "replace").partition("\n\n")[0]
    parents = [line[7:] for line in head.split("\n") if line.startswith("parent ")]
    if parents != ([p.commit for p in record.proposals] or [record.parent]):
        problems.append(Problem(ref, f"its parents are not the candidates that {FILE} names"))
    return record, problems


def _check_candidates(
    batch: Batch, ref: str, record: RoundRecord, files: Sequence[str], entry: str
) -> Iterator[Problem]:
    commits = [record.parent, *(p.commit for p in record.proposals)]
    expected = [record.parent_harness, *(p.harness or record.parent_harness for p in record.proposals)]
    # hl.toml may list other files by now; then digests of that time cannot be made again.
    actual = list(digests(batch, commits, files, entry))
    if actual[0] == expected[0]:
        for commit, want, got in zip(commits, expected, actual, strict=True):
            if want != got:
                yield Problem(
                    ref, f"the tree of {commit[:12]} is not the harness {want[:12]} that was recorded"
                )
    messages = batch.get_many(p.commit for p in record.proposals)
    for p, commit in zip(record.proposals, messages, strict=True):
        said = parse_trailers(commit[2].decode("utf-8", "replace")).get("HL-Score") if commit else None
        if commit is not None and said != _score_of(record, p):
            yield Problem(
                ref, f"the score in the message of {p.commit[:12]} is not the one that was recorded"
            )
        if p.outcome is Outcome.SCORED and p.scoring is None:
            yield Problem(ref, f"candidate {p.index} is scored but has no measurement")
        if p.scoring is not None and p.scoring.harness != p.harness:
            yield Problem(ref, f"the measurement of candidate {p.index} is another harness's")


def _score_of(record: RoundRecord, p: ProposalRecord) -> str | None:
    """What the trailer of a proposal's commit must say."""
    if p is record.accepted and len(record.confirmation) == 2 and record.confirmation[1].score.n:
        return render_score(record.confirmation[1].score, "confirmation")
    return render_score(p.scoring.score, "scoring") if p.scoring is not None else None


def _check_notes(ledger: "Ledger", batch: Batch, lines: dict[str, set[str]]) -> Iterator[Problem]:
    """Fills in harness digest -> readable lines."""
    tip = ledger.git.ref(NOTES)
    if tip is None:
        return
    notes = list(listing(ledger.git, tip))
    texts = batch.get_many(oid for _, _, oid in notes)
    for (annotated, _, _), blob in zip(notes, texts, strict=True):
        for number, line in enumerate(blob[2].split(b"\n") if blob else (), start=1):
            if not line.strip():
                continue
            where = f"{NOTES} {annotated[:12]} line {number}"
            try:
                raw: Any = json.loads(line)
                m = from_json(raw)
            except (ValueError, RecursionError) as error:
                yield Problem(where, f"it cannot be read and is ignored: {error}", serious=False)
                continue
            lines.setdefault(m.harness, set()).add(render_line(m))
            yield from (Problem(where, text) for text in _contradictions(m, cast("dict[str, Any]", raw)))
    with_objects = batch.get_many(annotated for annotated, _, _ in notes)
    for (annotated, _, _), found in zip(notes, with_objects, strict=True):
        if found is None:
            yield Problem(
                f"{NOTES} {annotated[:12]}",
                "its commit is not here; its scores still count for the harness they name",
                hint="hl fetch",
                serious=False,
            )


def _contradictions(m: Measurement, raw: dict[str, Any]) -> Iterator[str]:
    score = m.score
    if isinstance(n := raw.get("n"), int) and n != score.n:
        yield f"it says n={n}, but {score.n} grades were given"
    if isinstance(mean := raw.get("mean"), (int, float)) and abs(mean - score.mean) > 1e-4:
        yield f"it says mean={mean}, but its grades have {score.mean:.6f}"


def _check_measured(record: RoundRecord, lines: dict[str, set[str]]) -> Iterator[Problem]:
    for commit, measured in record.measured().items():
        for m in measured:
            if not _is_noted(m, lines.get(m.harness, set())):
                yield Problem(
                    round_ref(record.lineage, record.number),
                    f"the {m.role.value} score of {commit[:12]} is missing from the notes",
                    hint="hl fetch, or hl revise --continue",
                )


def _is_noted(m: Measurement, lines: set[str]) -> bool:
    # The same result may have been noted at another time.
    undated = render_line(m).partition(",")[2]
    return any(line.partition(",")[2] == undated for line in lines)


def _check_history(
    ledger: "Ledger", rounds: Sequence[RoundRecord], files: Sequence[str], entry: str
) -> Iterator[Problem]:
    if ledger.head is None:
        return
    known = {(r.lineage, r.number) for r in rounds}
    source = reading.Reading(ledger.git, files, entry, ledger.measurements_of)
    for e in reading.read_log(source, ["HEAD"], limit=None, branches=True):
        name = parse_candidate(e.trailers.get("HL-Round", ""))
        if e.genuine or name is None or name.lineage is None:
            continue
        if (name.lineage, name.round) in known:
            yield Problem(
                e.commit[:12],
                f"its trailers were copied from round {name.round} of {name.lineage}; they are not believed",
                serious=False,
            )
        else:
            yield Problem(
                e.commit[:12],
                f"it names round {name.round} of {name.lineage}, which is not here",
                hint="hl fetch",
                serious=False,
            )


def _check_records(
    rounds: Sequence[RoundRecord], lines: dict[str, set[str]], records: "Records"
) -> Iterator[Problem]:
    named = {line for texts in lines.values() for line in texts}
    addresses = {r.report for r in rounds} | {p.reply for r in rounds for p in r.proposals}
    addresses |= {json.loads(line).get("rec", "") for line in named}
    missing = 0
    for address in sorted(addresses - {""}):
        try:
            missing += not records.holds(address)
        except RepositoryError as error:
            yield Problem(f"record {address[:16]}", error.message, hint=f"rm {records.path(address)}")
    if missing:
        yield Problem(
            "records", f"{missing} transcripts, replies or reports are not here", "hl fetch --records", False
        )
    for address in records.addresses():
        if address not in addresses:
            try:
                records.holds(address)
            except RepositoryError as error:
                yield Problem(f"record {address[:16]}", error.message, f"rm {records.path(address)}", False)


def _check_leftovers(ledger: "Ledger") -> Iterator[Problem]:
    if ledger.unfinished():
        yield Problem("hl/unfinished", "a round was not recorded to its end", "hl status", False)
    for folder in ("refs/hl", "refs/notes/hl"):
        for path in (ledger.common_dir / folder).rglob("*.lock"):
            where = str(path.relative_to(ledger.common_dir))
            yield Problem(where, "a reference lock of a dead process, or of one at work", serious=False)
