"""One instance of every message, built from its types: nothing to keep up to date."""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
from typing import get_args, get_origin, get_type_hints

import protocol
from protocol.base import Message
from protocol.rows import AnyRow

__all__ = ["message_types", "sample", "sample_rows"]


def message_types() -> list[type[Message]]:
    """Every concrete message type of the package."""
    found: set[type[Message]] = set()
    for module in pkgutil.iter_modules(protocol.__path__):
        namespace = vars(importlib.import_module(f"protocol.{module.name}"))
        for value in namespace.values():
            if isinstance(value, type) and issubclass(value, Message):
                found.add(value)
    abstract = {"Message", "Request", "Event", "Row"}
    return sorted((t for t in found if t.__name__ not in abstract), key=lambda t: t.__name__)


def _value(hint: object, depth: int) -> object:
    origin = get_origin(hint)
    if origin is typing.Literal:
        return get_args(hint)[-1]
    if origin is typing.Annotated:
        return _value(get_args(hint)[0], depth)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not type(None)]
        return _value(options[depth % len(options)], depth)
    if origin is tuple:
        inner = get_args(hint)
        if inner[-1] is Ellipsis:
            return (_value(inner[0], depth + 1),)
        return tuple(_value(part, depth) for part in inner)
    if isinstance(hint, type) and issubclass(hint, Message):
        return sample(hint, depth + 1)
    scalars: dict[object, object] = {
        str: "näme\n",
        int: 7,
        float: 0.25,
        bool: True,
        bytes: b"\x00\xff",
    }
    return scalars[hint]


def sample(kind: type[Message], depth: int = 0) -> Message:
    """An instance with every field filled."""
    hints = get_type_hints(kind, include_extras=True)
    return kind(**{name: _value(hints[name], depth) for name in kind.__struct_fields__})


def sample_rows() -> list[AnyRow]:
    """One row of every table."""
    return [typing.cast("AnyRow", sample(kind)) for kind in get_args(AnyRow)]
