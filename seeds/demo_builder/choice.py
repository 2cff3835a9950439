"""Choices that are the same on every machine: each one is a hash of a readable key."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

__all__ = ["bell_curve", "digest", "draw", "fraction", "number", "pick", "shuffled"]

T = TypeVar("T")
_SEED = "demo-2026"


def digest(*key: object) -> bytes:
    """32 bytes that depend on the key's printed parts and on nothing else."""
    return hashlib.sha256("/".join([_SEED, *map(str, key)]).encode()).digest()


def fraction(*key: object) -> float:
    """Uniform in [0, 1)."""
    return int.from_bytes(digest(*key)[:6], "big") / 2.0**48


def bell_curve(*key: object) -> float:
    """Mean 0, deviation 1, within -3 and 3: six uniforms summed, exact everywhere."""
    total = sum(fraction(*key, part) for part in range(6))
    return (total - 3.0) * math.sqrt(2.0)


def number(low: int, high: int, *key: object) -> int:
    """A whole number from low to high, both included."""
    return low + int(fraction(*key) * (high - low + 1))


def pick(items: Sequence[T], *key: object) -> T:
    """One of the items."""
    return items[number(0, len(items) - 1, *key)]


def shuffled(items: Iterable[T], *key: object) -> list[T]:
    """The items in an order that hangs on the key and on each item's place."""
    return [item for _, item in sorted(enumerate(items), key=lambda at: digest(*key, at[0]))]


def draw(items: Sequence[T], count: int, *key: object) -> list[T]:
    """``count`` different items. Raises ValueError if there are fewer."""
    if count > len(items):
        raise ValueError(f"{count} of {len(items)} items asked for at {key}")
    return shuffled(items, *key)[:count]
