"""Bulk records by the address of their content."""

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hl.errors import RepositoryError
from hl.records import Records, unpack

JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@given(JSON)
def test_what_is_put_is_got(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    store = Records(tmp_path_factory.mktemp("records"))
    address = store.put(value)
    assert store.get(address) == value
    assert store.put(value) == address
    assert list(store.addresses()) == [address]


def test_equal_values_share_an_address_whatever_their_order(tmp_path: Path) -> None:
    store = Records(tmp_path / "deep" / "er")
    assert store.put({"a": 1, "b": 2}) == store.put({"b": 2, "a": 1}) != store.put({"a": 1, "b": 3})
    assert not [p for p in tmp_path.rglob("*.tmp")]


def test_lone_surrogates_and_size(tmp_path: Path) -> None:
    store = Records(tmp_path)
    value = {"text": "\ud800" + "x" * 2_000_000}
    assert store.get(store.put(value)) == value
    assert store.path(store.put(value)).stat().st_size < 20_000


def test_not_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Records(tmp_path).put(float("nan"))


def test_missing_is_not_damaged(tmp_path: Path) -> None:
    store = Records(tmp_path)
    assert store.find("0" * 64) is None and list(store.addresses()) == []
    with pytest.raises(RepositoryError, match="not in this clone"):
        store.get("0" * 64)


@pytest.mark.parametrize("address", ["../../etc/passwd", "", "0" * 63, "Z" * 64, "0" * 64 + "\n"])
def test_an_address_is_never_a_path(tmp_path: Path, address: str) -> None:
    store = Records(tmp_path)
    assert store.find(address) is None and not store.adopt(address, b"")
    with pytest.raises(ValueError, match="not a record address"):
        store.path(address)


def test_damage_is_told(tmp_path: Path) -> None:
    store = Records(tmp_path)
    address = store.put({"a": 1})
    path = store.path(address)
    good = path.read_bytes()
    for bad in (b"", good[:-3], b"junk", zlib.compress(b'{"schema":1,"value":{"a":2}}')):
        path.write_bytes(bad)
        with pytest.raises(RepositoryError, match="damaged"):
            store.get(address)


def test_bytes_from_elsewhere_are_checked(tmp_path: Path) -> None:
    here, there = Records(tmp_path / "here"), Records(tmp_path / "there")
    address = there.put({"a": 1})
    assert not here.adopt(address, there.packed(there.put({"a": 2})))
    assert here.find(address) is None
    assert here.adopt(address, there.packed(address)) and here.get(address) == {"a": 1}
    assert unpack(there.packed(address), "0" * 64) is None
