"""Which revisions to propose for a report, best first.

Single ideas come before combinations; combinations come where the chain's history shows that one idea alone was not
enough: an interpreter loop that was rejected because its programs lacked imports is proposed again with imports.
"""

from collections.abc import Iterator

from hl.proposer.catalog import steps
from hl.proposer.catalog.compact import compact_loops
from hl.proposer.catalog.demonstrations import GENERAL, bootstrapped, solved_questions
from hl.proposer.catalog.evidence import NAME_ERRORS, SYNTAX_ERRORS, Evidence
from hl.proposer.catalog.steps import Step
from hl.proposer.catalog.synthesis import synthesised
from hl.types import FailureClass, HistoryEntry

Revision = tuple[Step, ...]
"""Steps applied one after another, as one proposal."""


def revisions(evidence: Evidence, *, compact: bool = False) -> Iterator[Revision]:
    """Revisions by expected worth, repeats of what this parent was already given last.

    Args:
        evidence: What the report says.
        compact: Whether short interpreter loops come first.
    """
    # A search whose passages the answering call never sees is the plainest broken hand-over there is.
    plan: list[Revision] = [(steps.PASSAGES,)] if evidence.writes_notes else []
    if compact and not evidence.runs_code:
        plan += [(step,) for step in compact_loops(synthesised(evidence.context.report))]
    plan += list(_loop_first(evidence) if not evidence.runs_code else _improve_loop(evidence))
    plan += _weaker(evidence)
    first: dict[frozenset[str], Revision] = {}
    for revision in plan:
        first.setdefault(_names(revision), revision)
    plan = list(first.values())
    fresh = [r for r in plan if _names(r) not in evidence.tried]
    stale = [r for r in plan if _names(r) in evidence.tried and any(step.drawn for step in r)]
    # An idea that failed on an earlier parent of the chain is worth less than one that was never tried.
    yield from sorted(fresh, key=lambda r: min(2, evidence.rejected_before[_names(r)]) if len(r) == 1 else 0)
    yield from stale


def _names(revision: Revision) -> frozenset[str]:
    return frozenset(step.name for step in revision)


def _loop_first(e: Evidence) -> Iterator[Revision]:
    """For a harness that runs no programs."""
    loop = steps.interpreter()
    variants = [
        steps.interpreter(GENERAL["loops"], "interpreter loop on loops"),
        steps.interpreter(GENERAL["texts"], "interpreter loop on texts"),
    ]
    # The loop does not depend on what else changed: what it was rejected for on any parent is worth knowing.
    earlier = e.entries_with(loop.name, *(v.name for v in variants))
    hand_over = e.failures(FailureClass.EXTRACTION, FailureClass.FORMAT)
    if hand_over * 2 > e.failed:
        yield (steps.FINAL,)
    if earlier:
        repairs = _asked_for(e, earlier)
        if repairs:
            yield (loop, *repairs)
        for step in _synthesised(e):
            yield (loop, step, *repairs)
        yield (loop, *ALL_REPAIRS)
        for variant in variants:
            yield (variant, *repairs)
    else:
        yield (loop,)
        for variant in variants:
            yield (variant,)
    if pairs := solved_questions(e.context.report):
        yield (steps.examples(pairs),)
    if hand_over:
        yield (steps.FINAL,)


def _asked_for(e: Evidence, entries: tuple[HistoryEntry, ...]) -> tuple[Step, ...]:
    """The repairs that the failures of rejected loops ask for."""
    found: list[Step] = []
    if e.count(entries, NAME_ERRORS, of="tool_errors"):
        found.append(steps.IMPORTS)
    if e.count(entries, SYNTAX_ERRORS, of="tool_errors"):
        found.append(steps.BRACKETS)
    if e.count(entries, frozenset({str(FailureClass.FORMAT)}), of="classes"):
        found.append(steps.NUMBERS)
    return tuple(found)


ALL_REPAIRS = (steps.IMPORTS, steps.NAMES, steps.BRACKETS, steps.FENCES, steps.NUMBERS)
"""The whole hand-over mended at once."""


def _improve_loop(e: Evidence) -> Iterator[Revision]:
    """For a harness that runs programs: mend the hand-over first, then show better programs."""
    # What the parent's own failures show comes before what only its rejected siblings showed.
    siblings = e.siblings
    wrong_format = frozenset({str(FailureClass.FORMAT)})
    wanted: list[tuple[int, int, Step]] = [
        (e.tool_errors(NAME_ERRORS), e.count(siblings, NAME_ERRORS, of="tool_errors"), steps.IMPORTS),
        (e.failures(FailureClass.FORMAT), e.count(siblings, wrong_format, of="classes"), steps.NUMBERS),
        (e.tool_errors(SYNTAX_ERRORS), e.count(siblings, SYNTAX_ERRORS, of="tool_errors"), steps.BRACKETS),
        (e.unfenced, 0, steps.FENCES),
    ]
    wanted = [w for w in wanted if w[0] or w[1]]
    repairs = [step for _, _, step in sorted(wanted, key=lambda w: (-w[0], -w[1]))]
    drawn = _drawn(e)
    # One repair, one set of demonstrations, the next repair ...: a round shows whether hand-over or wording counts.
    for i in range(max(len(repairs), len(drawn))):
        if i < len(repairs):
            yield (repairs[i],)
        if i < len(drawn):
            yield (drawn[i],)
    if len(repairs) > 1:
        yield tuple(repairs)
    for step in drawn[:1]:
        if repairs:
            yield (*repairs, step)
    if e.tool_errors(NAME_ERRORS):
        yield (steps.NAMES,)
        yield (steps.IMPORTS, steps.NAMES)
    if not e.has_demonstrations:
        yield (steps.interpreter(),)
        yield (steps.interpreter(GENERAL["loops"], "interpreter loop on loops"),)
    yield (steps.NEAREST,)
    yield (steps.GENERAL_DEMONSTRATIONS, steps.NEAREST)
    for name in ("loops", "texts"):
        # The loop that started with this set was measured: the same program again would be a duplicate.
        if e.entries_with(f"interpreter loop on {name}"):
            continue
        yield (steps.demonstrations(GENERAL[name], f"demonstrations of {name}", keep=False, drawn=False),)
    if e.failures(FailureClass.EXTRACTION, FailureClass.UNKNOWN):
        yield (steps.FINAL,)
    if e.failures(FailureClass.EMPTY):
        yield (steps.FALLBACK,)
    if any(e.context.report.tool_errors.values()):
        yield (steps.RETRY,)
    yield (steps.IMPORTS, steps.NUMBERS)


def _drawn(e: Evidence) -> list[Step]:
    """Demonstrations drawn from the feedback runs, for a harness that keeps a list of them."""
    if not e.has_demonstrations:
        return []
    pairs = bootstrapped(e.context.report)
    found = [steps.demonstrations(pairs, "bootstrapped demonstrations")] if pairs else []
    found += _synthesised(e)
    if pairs:
        found.append(steps.demonstrations(pairs, "only bootstrapped demonstrations", keep=False))
    return found


def _synthesised(e: Evidence) -> list[Step]:
    pairs = synthesised(e.context.report)
    return [steps.demonstrations(pairs, "synthesised demonstrations")] if pairs else []


def _weaker(e: Evidence) -> Iterator[Revision]:
    """What is left: ideas that help larger models more than small ones, and repairs without a sign of need."""
    singles = [
        steps.VOTE,
        steps.NUMBERS,
        steps.VERIFY,
        steps.PLAN,
        steps.FALLBACK,
        steps.IMPORTS,
        steps.BRACKETS,
    ]
    singles += [steps.NAMES, steps.FENCES, steps.RETRY]
    if not e.runs_code:
        singles = [steps.FINAL, steps.STEPWISE, steps.TERSE, steps.LAST_NUMBER, *singles]
    for step in (*singles, steps.WARM):
        yield (step,)
    yield (steps.STEPWISE, steps.FINAL)
    yield (steps.TERSE, steps.FINAL)
    yield (steps.VOTE, steps.NUMBERS)
    yield (steps.PLAN, steps.VOTE)
