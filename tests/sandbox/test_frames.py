"""The wire, with arbitrary bytes."""

import contextlib
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hl.sandbox.frames import MAX_FRAME_BYTES, FrameBuffer, ProtocolError, encode_frame, parse_frame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.binary())
@settings(deadline=None)
def test_any_bytes_give_an_object_or_a_protocol_error(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        assert isinstance(parse_frame(data), dict)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=3), st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_what_is_framed_comes_back_however_it_is_cut(messages: list[dict[str, object]], size: int) -> None:
    data = b"".join(encode_frame(message) for message in messages)
    buffer = FrameBuffer()
    payloads = [p for i in range(0, len(data), size) for p in buffer.feed(data[i : i + size])]
    assert [parse_frame(p) for p in payloads] == messages


@given(st.text(st.characters(), max_size=20))
@settings(max_examples=50, deadline=None)
def test_surrogates_are_replaced_and_nothing_else(text: str) -> None:
    parsed = parse_frame(json.dumps({"a": [text], text: 1}).encode())
    assert parsed["a"] == [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")]
    json.dumps(parsed, ensure_ascii=False).encode()


@given(st.characters(categories=["Cs"]), st.text(max_size=3))
@settings(max_examples=50, deadline=None)
def test_lone_surrogates_are_found_wherever_they_are(lone: str, rest: str) -> None:
    parsed = parse_frame(json.dumps({"a": {lone + rest: [rest + lone]}}).encode())
    json.dumps(parsed, ensure_ascii=False).encode()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_only_finite_numbers(number: str) -> None:
    with pytest.raises(ProtocolError):
        parse_frame(b'{"a": %b}' % number.encode())


def test_frame_limit() -> None:
    buffer = FrameBuffer()
    assert buffer.feed((MAX_FRAME_BYTES).to_bytes(4, "big")) == []
    with pytest.raises(ProtocolError, match="longer than"):
        FrameBuffer().feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))


def test_we_never_send_what_is_not_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_frame({"a": math.nan})
