"""Every message encodes and decodes unchanged, so that a channel can cross a process (P16)."""

from __future__ import annotations

import functools
import operator

import msgspec
import pytest

from protocol.base import Message
from tests.protocol.samples import message_types, sample

KINDS = message_types()
ANY = functools.reduce(operator.or_, KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_message_round_trip(kind: type[Message]) -> None:
    """JSON there and back gives an equal message of the same type."""
    message = sample(kind)
    decoded = msgspec.json.decode(msgspec.json.encode(message), type=ANY)
    assert type(decoded) is kind
    assert decoded == message


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_message_is_frozen_and_tagged(kind: type[Message]) -> None:
    """No actor can change what another one sent."""
    config = kind.__struct_config__
    assert config.frozen
    assert config.tag == kind.__name__
    with pytest.raises(AttributeError):
        setattr(sample(kind), kind.__struct_fields__[0] if kind.__struct_fields__ else "x", 1)


def test_all_topics_are_covered() -> None:
    """The walk over the package finds what it should."""
    names = {kind.__name__ for kind in KINDS}
    assert {"Chat", "Rollout", "Trial", "Record", "Train", "GetSnapshot"} <= names
