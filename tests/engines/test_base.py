"""Opening engines by name."""

import json
import subprocess
import sys

import pytest

from hl.engines.base import EngineSpec, clean_text, open_engine
from hl.errors import EngineError, UsageError


def test_an_unknown_engine_names_those_there_are_and_the_nearest():
    with pytest.raises(UsageError, match=r"'llamacp'.*hf, llamacpp, openai, scripted, vllm") as caught:
        open_engine(EngineSpec("llamacp"))
    assert caught.value.hint == "did you mean 'llamacpp'?"


@pytest.mark.parametrize(("name", "extra", "package"), [("vllm", "vllm", "vllm"), ("hf", "train", "torch")])
def test_engines_whose_packages_are_missing_say_what_to_install(name, extra, package):
    program = (
        "import sys\n"
        "import importlib.util as u\n"
        "found = u.find_spec\n"
        f"u.find_spec = lambda name, *rest: None if name == {package!r} else found(name, *rest)\n"
        "from hl.engines.base import EngineSpec, open_engine\nfrom hl.errors import MissingExtraError\n"
        f"try: open_engine(EngineSpec({name!r}, model='org/model'))\n"
        "except MissingExtraError as error: print(error.exit_code, error.message, '|', error.hint)\n"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert child.stdout == f"8 {package} is not installed | pip install 'harness-learning[{extra}]'\n"


def test_the_catalog_is_no_engine():
    with pytest.raises(UsageError, match="proposer"):
        open_engine(EngineSpec("catalog"))


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (EngineSpec("llamacpp"), UsageError),
        (EngineSpec("llamacpp", model="no-such-model"), UsageError),
        (EngineSpec("llamacpp", path="/nowhere/x.gguf"), EngineError),
        (EngineSpec("hf"), UsageError),
        (EngineSpec("hf", model="/nowhere/model"), EngineError),
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
