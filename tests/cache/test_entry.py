"""An entry is the answer of its key, or it is recognised as something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cache.entry import CorruptEntry, decode_entry, encode_entry
from tests.cache.support import answer, key

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(text=_TEXTS)
def test_an_answer_survives(text: str) -> None:
    """Every field comes back as it was."""
    assert decode_entry(key("a"), encode_entry(key("a"), answer(text))) == answer(text)


@given(st.data())
def test_every_change_of_a_byte_is_seen(data: st.DataObject) -> None:
    """Flipped, cut or lengthened: never an answer with other words in it."""
    entry = encode_entry(key("a"), answer("B"))
    at = data.draw(st.integers(0, len(entry) - 1))
    if at == 64:  # the line break between digest and body says nothing
        at = 65
    flipped = bytes([entry[at] ^ data.draw(st.integers(1, 255))])
    for damaged in (entry[:at], entry[:at] + flipped + entry[at + 1 :], entry + b" "):
        with pytest.raises(CorruptEntry):
            decode_entry(key("a"), damaged)


def test_an_entry_under_another_key_is_corrupt() -> None:
    """A store that mixes up two replies does not mix up two questions."""
    with pytest.raises(CorruptEntry, match="digest"):
        decode_entry(key("b"), encode_entry(key("a"), answer("B")))


def test_an_entry_of_another_version_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, but with other fields than an answer has today."""
    monkeypatch.setattr("msgspec.json.encode", lambda _: b'{"type":"ChatAnswer","words":"B"}')
    entry = encode_entry(key("a"), answer("B"))
    with pytest.raises(CorruptEntry, match="missing required field"):
        decode_entry(key("a"), entry)


def test_half_a_surrogate_pair_cannot_be_stored() -> None:
    """Refused whole rather than written changed."""
    with pytest.raises(UnicodeEncodeError):
        encode_entry(key("a"), answer("\ud83d"))
