"""Names of references and of losing candidates. The one place that knows the layout of `refs/hl` and `refs/notes/hl`.

    refs/notes/hl/evals                     the score of record
    refs/hl/rounds/<lineage>/<round>        one commit a round, its parents the round's candidates
    refs/hl/records                         bulk records, only where they were pushed
    refs/hl/remotes/<remote>/...            what the last fetch saw there

A candidate is called `<lineage>/<round>/<k>`, or `<round>/<k>` on the current branch; k counts from 0, as in the
proposal's index. Lineages may hold slashes: `feature/x/3/0`.
"""

import hashlib
import re
from dataclasses import dataclass

NOTES = "refs/notes/hl/evals"
ROUNDS = "refs/hl/rounds"
RECORDS = "refs/hl/records"
REMOTES = "refs/hl/remotes"
_CANDIDATE = re.compile(
    r"(?:(?P<lineage>.+)/)?(?P<round>[1-9]\d{0,8})/(?P<index>0|[1-9]\d{0,5})(?P<suffix>[~^].*)?"
)


@dataclass(frozen=True, slots=True)
class CandidateName:
    """A parsed candidate name."""

    lineage: str | None
    """None for the current branch."""
    round: int
    index: int
    suffix: str
    """What git is to do with the commit: `~1`, `^{tree}`."""


def escape(lineage: str) -> str:
    """A branch name as one component of a reference."""
    return lineage.replace("%", "%25").replace("/", "%2F")


def unescape(component: str) -> str:
    """The branch name again."""
    return component.replace("%2F", "/").replace("%25", "%")


def round_ref(lineage: str, number: int) -> str:
    """The reference of a round."""
    return f"{ROUNDS}/{escape(lineage)}/{number}"


def parse_round_ref(ref: str) -> tuple[str, int] | None:
    """(lineage, round) of a reference, or None if it is not a round's."""
    parts = ref.removeprefix(f"{ROUNDS}/").split("/")
    if not ref.startswith(f"{ROUNDS}/") or len(parts) != 2 or not re.fullmatch(r"[1-9]\d{0,8}", parts[1]):
        return None
    return unescape(parts[0]), int(parts[1])


def tracking_ref(remote: str, name: str) -> str:
    """Where the last fetch from a remote, given by name, path or URL, keeps what it saw."""
    component = re.sub(r"[^A-Za-z0-9_-]", lambda m: f"%{ord(m[0]):02X}", remote)
    if len(component) > 100:
        component = hashlib.sha256(remote.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{REMOTES}/{component}/{name}"


def render_candidate(lineage: str, number: int, index: int) -> str:
    """The name of a candidate."""
    return f"{lineage}/{number}/{index}"


def parse_candidate(text: str) -> CandidateName | None:
    """A candidate name, or None if the text is not one."""
    found = _CANDIDATE.fullmatch(text)
    if found is None:
        return None
    return CandidateName(found["lineage"], int(found["round"]), int(found["index"]), found["suffix"] or "")
