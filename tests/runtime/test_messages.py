"""P16: messages are frozen, hold nothing mutable, and survive their own encoding."""

from __future__ import annotations

import importlib
import pkgutil

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import protocol
from protocol.base import Event, Message, Request, Scope
from tests.runtime.support import Do, Done, DoSafely, Note


def every_kind(root: type[Message]) -> list[type[Message]]:
    """All message types of the protocol, by name."""
    for module in pkgutil.iter_modules(protocol.__path__, "protocol."):
        importlib.import_module(module.name)
    found: dict[str, type[Message]] = {}
    waiting = [root]
    while waiting:
        kind = waiting.pop()
        found[f"{kind.__module__}.{kind.__name__}"] = kind
        waiting.extend(kind.__subclasses__())
    return [
        kind
        for name, kind in sorted(found.items())
        if name.startswith("protocol.") and "[" not in name
    ]


def mutable(kind: msgspec.inspect.Type) -> bool:
    """Whether a field of this type could be changed in place by whoever holds it."""
    match kind:
        case msgspec.inspect.UnionType():
            return any(mutable(one) for one in kind.types)
        case msgspec.inspect.VarTupleType():
            return mutable(kind.item_type)
        case msgspec.inspect.TupleType():
            return any(mutable(one) for one in kind.item_types)
        case msgspec.inspect.StructType():
            return not kind.cls.__struct_config__.frozen
        case (
            msgspec.inspect.NoneType()
            | msgspec.inspect.BoolType()
            | msgspec.inspect.IntType()
            | msgspec.inspect.FloatType()
            | msgspec.inspect.StrType()
            | msgspec.inspect.BytesType()
            | msgspec.inspect.LiteralType()
            | msgspec.inspect.RawType()
        ):
            return False
    return True


@pytest.mark.parametrize("kind", every_kind(Message), ids=lambda kind: kind.__name__)
def test_p16_messages_are_frozen_and_hold_nothing_mutable(kind: type[Message]) -> None:
    """One actor cannot change what another holds."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    assert kind.__struct_config__.frozen
    assert [field.name for field in info.fields if mutable(field.type)] == []


scopes = st.builds(
    Scope,
    epoch=st.none() | st.integers(0, 99),
    step=st.none() | st.integers(0, 99),
    task_type=st.none() | st.text(),
    question_id=st.none() | st.text(),
)


@given(
    st.builds(Do, text=st.text(), scope=scopes)
    | st.builds(DoSafely, text=st.text(), scope=scopes)
    | st.builds(Note, text=st.text(), scope=scopes)
    | st.builds(Done, text=st.text(), incarnation=st.integers(1, 9))
)
def test_p16_messages_encode_and_decode_unchanged(message: Request[Done] | Event | Done) -> None:
    """As a tagged union, so that a channel can later cross a process."""
    encoded = msgspec.json.encode(message)
    assert msgspec.json.decode(encoded, type=Do | DoSafely | Note | Done) == message
