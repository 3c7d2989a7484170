"""Back-off, Retry-After, and the circuit."""

import email.utils
import time

import pytest

from hl.engines.retry import RETRY_AFTER_CAP_S, Circuit, backoff_s, is_retried, parse_retry_after
from hl.errors import EngineError


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_may_go_away_is_retried(status):
    assert is_retried(status)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_will_not_is_not(status):
    assert not is_retried(status)


def test_retry_after_as_number_milliseconds_and_date():
    assert parse_retry_after(None, "3") == 3
    assert parse_retry_after("250", "3") == 0.25
    assert parse_retry_after(None, "86400") == RETRY_AFTER_CAP_S
    later = parse_retry_after(None, email.utils.formatdate(time.time() + 60, usegmt=True))
    assert later is not None and 0 < later <= 60


@pytest.mark.parametrize("value", [None, "", "soon", "-5", "nan", "inf nonsense", "Wed, 99 Foo 2026"])
def test_a_meaningless_retry_after_falls_back_to_our_own(value):
    assert parse_retry_after(None, value) is None


def test_backoff_doubles_up_to_its_cap():
    for tries, full in [(1, 0.5), (2, 1.0), (3, 2.0), (9, 8.0), (500, 8.0)]:
        for _ in range(20):
            assert 0.75 * full <= backoff_s(tries, first_s=0.5) <= full


def test_the_circuit_fails_fast_then_lets_one_call_see():
    now = [0.0]
    circuit = Circuit(cooldown_s=10, clock=lambda: now[0])
    circuit.check()
    circuit.give_up(EngineError("down", hint="start it"), successes_before=0)
    now[0] = 9.9
    with pytest.raises(EngineError, match="down") as caught:
        circuit.check()
    assert caught.value.hint == "start it"
    now[0] = 10.1
    circuit.check()
    assert circuit.is_probe
    with pytest.raises(EngineError):
        circuit.check()
    circuit.succeed()
    circuit.check()
    assert not circuit.is_probe


def test_a_cancelled_probe_lets_another_call_see():
    now = [0.0]
    circuit = Circuit(cooldown_s=1, clock=lambda: now[0])
    circuit.give_up(EngineError("down"), successes_before=0)
    now[0] = 2.0
    circuit.check()
    circuit.abandon_probe()
    circuit.check()
    assert circuit.is_probe


def test_one_unlucky_call_does_not_stop_the_others():
    circuit = Circuit()
    circuit.succeed()
    circuit.give_up(EngineError("unlucky"), successes_before=0)
    circuit.check()
