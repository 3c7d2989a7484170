"""A trained adapter as proposer, as typed: which one it was stands on the commits that it proposed."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("peft")

from hl.engines.adapters import read_adapter
from scripts.tiny_model import write_adapter, write_tiny


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    base = write_tiny(tmp_path / "tiny")
    return base, write_adapter(base, tmp_path / "sft")


def test_name_and_digest_of_the_adapter_are_in_the_trailers(hl, git, tmp_path: Path, models) -> None:
    base, adapter = models
    options = (
        *("-c", "solver.engine=scripted", "-c", "solver.model=reader"),
        *("-c", "proposer.engine=hf", "-c", f"proposer.path={base}", "-c", f"proposer.adapter={adapter}"),
        *("-c", "proposer.max_tokens=24", "-c", "proposer.threads=1"),
    )
    counts = ("round.proposals=2", "round.feedback=2", "round.scoring=2", "round.confirmation=2")
    small = [word for text in (*counts, "round.repair=0") for word in ("-c", text)]
    assert hl(*options, *small, "init", "agent", "--task", "qa:tiny").code == 0
    done = hl(*options, *small, "-C", "agent", "revise", "--rounds", "1")
    assert done.code == 0, done.err
    label = read_adapter(adapter).label
    shown = git("log", "--all", "--format=%(trailers:key=HL-Proposer,valueonly)", cwd=tmp_path / "agent")
    assert set(shown.split("\n")) - {""} == {f"llm hf tiny@{label}"}
    assert len(label.partition(":")[2]) == 16


def test_an_adapter_needs_trust_and_must_be_one(hl, tmp_path: Path) -> None:
    reader = ("-c", "solver.engine=scripted", "-c", "solver.model=reader")
    done = hl(*reader, "init", "agent", "--task", "qa:tiny")
    assert done.code == 0, done.err
    agent = tmp_path / "agent"
    assert hl("-C", "agent", "config", "trust").code == 0
    text = (agent / "hl.toml").read_text()
    (agent / "hl.toml").write_text(text + '\n[proposer]\nadapter = "sft"\nengine = "hf"\nmodel = "smollm2"\n')
    refused = hl("-C", "agent", "revise", "--rounds", "1")
    assert refused.code == 4 and 'proposer.adapter = "sft"' in refused.err
    assert hl("-C", "agent", "config", "trust").code == 0
    done = hl("-C", "agent", "revise", "--rounds", "1")
    assert done.code == 7 and "no LoRA adapter" in done.err


def test_the_proposers_name_leaves_the_digest_in_the_trailer(tmp_path: Path) -> None:
    """Whatever the folders are called."""
    from hl.ledger.messages import clean_line

    base = write_tiny(tmp_path / ("b" * 90))
    adapter = write_adapter(base, tmp_path / ("a" * 90))
    program = (
        "from hl.engines.base import EngineSpec, open_engine; import sys\n"
        "print(open_engine(EngineSpec('hf', path=sys.argv[1], adapter=sys.argv[2])).name)"
    )
    command = [sys.executable, "-c", program, str(base), str(adapter)]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert clean_line(f"llm {name}".replace(" hf ", " vllm ")).endswith(read_adapter(adapter).digest[:16])


def test_a_bench_run_holds_its_adapter(hl, tmp_path: Path) -> None:
    import json

    from tests.loop import write_loop
    from tests.training.tiny import write_tiny as write_editor

    base = write_editor(tmp_path / "editor")
    adapter = write_adapter(base, tmp_path / "tuned")
    write_loop(tmp_path)
    settings = "adapter=tuned&prompt=brief&max_tokens=16&context_tokens=2048&threads=1"
    asked = (
        *("bench", "reasoning-gym", "--track", "tiny", "--families", "gcd", "--seed", "seed.py"),
        *("--contexts", "1", "--proposals", "4", "--feedback", "2", "--scoring", "2", "--evaluation", "2"),
        *("--solver", "s=scripted:solver.json", "--proposer", f"p=hf:editor?{settings}", "--out", "run"),
    )
    done = hl(*asked)
    assert done.code == 0, done.err
    label = read_adapter(adapter).label
    made = json.loads((tmp_path / "run" / "manifest.json").read_text())["proposers"]["p"]
    assert made["identity"]["name"] == f"hf editor@{label}" and len(made["identity"]["digest"]) > 15
    assert (made["prompt"], made["max_tokens"], made["context_tokens"]) == ("brief", 16, 2048)
    (cell,) = (tmp_path / "run" / "cells").iterdir()
    command = ["git", "log", "--all", "--format=%(trailers:key=HL-Proposer,valueonly)"]
    shown = subprocess.run(command, cwd=cell, capture_output=True, text=True, check=True).stdout
    assert set(shown.split("\n")) - {""} == {f"llm hf editor@{label}"}
    rows = (tmp_path / "run" / "rows.jsonl").read_bytes()
    assert rows.count(b'"kind": "proposal"') == 4
    # The same goes on and writes the same; another adapter in the same folder is another run.
    assert hl(*asked).code == 0 and (tmp_path / "run" / "rows.jsonl").read_bytes() == rows
    write_adapter(base, adapter, seed=2)
    refused = hl(*asked)
    assert refused.code in (1, 2) and "proposers.p.identity" in refused.err, refused.err
    assert (tmp_path / "run" / "rows.jsonl").read_bytes() == rows
