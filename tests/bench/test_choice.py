"""Which tasks a benchmark of question answering takes, from what was typed."""

from pathlib import Path

import pytest

from hl.bench.choice import FULL, SMALL, qa_tasks, sizes_of
from hl.errors import UsageError


def test_the_paper_s_datasets_are_one_run_with_roles_and_a_cluster_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = ["hotpotqa=my dev.json?corpus=wiki.jsonl", "musique=dev.jsonl?metric=f1", "2wiki?path=a.json"]
    hotpot, musique, wiki = qa_tasks(typed)
    assert hotpot.name == f"qa:hotpotqa?path=my%20dev.json&corpus={tmp_path}/wiki.jsonl"
    assert musique.name == "qa:musique?path=dev.jsonl&metric=f1" and wiki.name == "qa:2wiki?path=a.json"
    assert [t.role for t in (hotpot, musique, wiki)] == ["rl", "unseen", "unseen"]
    assert [t.cluster for t in (hotpot, musique, wiki)] == ["hotpotqa", "musique", "2wiki"]
    (tiny,) = qa_tasks(["tiny"])
    assert (tiny.name, tiny.family, tiny.role) == ("qa:tiny", "tiny", "")
    assert sizes_of("tiny") is SMALL and sizes_of("hotpotqa-musique-2wiki") is FULL


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("muzique", "did you mean 'musique'"),
        ("musique=", "parameter 'path' of qa:musique is empty"),
        ("tiny=a.json", "qa:tiny has no parameter 'path'"),
        ("musique=a.jsonl?path=b.jsonl", "'path' .*is given twice"),
        ("musique=a.jsonl?corpus", "are not key=value pairs"),
        ("musique=a.jsonl?metric=bleu", "must be em or f1"),
    ],
)
def test_what_is_no_dataset_is_refused_before_anything_is_made(typed: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        qa_tasks([typed])
