"""Opening engines by name."""

import json
import subprocess
import sys

import pytest

from hl.engines.base import EngineSpec, clean_text, open_engine
from hl.errors import EngineError, MissingExtraError, UsageError


def test_an_unknown_engine_names_those_there_are_and_the_nearest():
    with pytest.raises(UsageError, match=r"'llamacp'.*llamacpp, openai, scripted") as caught:
        open_engine(EngineSpec("llamacp"))
    assert caught.value.hint == "did you mean 'llamacpp'?"


@pytest.mark.parametrize("name", ["vllm", "hf"])
def test_engines_of_a_later_version_say_so_and_what_to_do_today(name):
    with pytest.raises(MissingExtraError, match=f"'{name}' is not in this version") as caught:
        open_engine(EngineSpec(name))
    assert caught.value.exit_code == 8
    assert 'engine = "openai"' in (caught.value.hint or "")


def test_the_catalog_is_no_engine():
    with pytest.raises(UsageError, match="proposer"):
        open_engine(EngineSpec("catalog"))


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (EngineSpec("llamacpp"), UsageError),
        (EngineSpec("llamacpp", model="no-such-model"), UsageError),
        (EngineSpec("llamacpp", path="/nowhere/x.gguf"), EngineError),
        (EngineSpec("scripted"), UsageError),
        (EngineSpec("scripted", path="/nowhere/rules.json"), UsageError),
        (EngineSpec("openai", model="m"), UsageError),
        (EngineSpec("openai", base_url="http://127.0.0.1:1/v1"), UsageError),
        (EngineSpec("openai", model="m", base_url="http://127.0.0.1:1/v1", concurrency=0), UsageError),
        (
            EngineSpec("openai", model="m", base_url="http://127.0.0.1:1/v1", api_key_env="HL_NO_SUCH_KEY"),
            UsageError,
        ),
    ],
)
def test_a_wrong_spec_is_refused_before_any_call(spec, error):
    with pytest.raises(error):
        open_engine(spec)


def test_price_is_per_million_tokens():
    assert EngineSpec("openai", price_in=2.0, price_out=10.0).price(500_000, 100_000) == pytest.approx(2.0)


def test_lone_surrogates_do_not_reach_a_server():
    assert clean_text("a\ud800b") == "a?b"
    assert clean_text("naïve 🙂") == "naïve 🙂"


def test_opening_an_engine_loads_no_other_engines_library(tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text("{}")
    program = (
        "import sys, json\nfrom hl.engines.base import EngineSpec, open_engine\n"
        f"open_engine(EngineSpec('scripted', path={str(rules)!r}))\n"
        "open_engine(EngineSpec('openai', model='m', base_url='http://127.0.0.1:1/v1'))\n"
        "print(json.dumps([m for m in ('xllamacpp', 'openai', 'pydantic', 'numpy', 'torch') if m in sys.modules]))"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(child.stdout) == []
