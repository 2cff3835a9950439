"""Draws of the simulator: each one is a hash of a readable key, the same on every machine.

There is no state and no stream of random numbers: whoever asks twice gets the same twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["digest", "fraction", "number", "pick", "shuffled"]

T = TypeVar("T")
_BETWEEN = "\x1f"  # stands in no text, so that ("a", "bc") and ("ab", "c") differ


def digest(*key: object) -> str:
    """64 hex digits that depend on the key's printed parts and on nothing else."""
    return hashlib.sha256(_BETWEEN.join(map(str, key)).encode()).hexdigest()


def fraction(*key: object) -> float:
    """Uniform in [0, 1)."""
    return int(digest(*key)[:13], 16) / 16.0**13


def number(low: int, high: int, *key: object) -> int:
    """A whole number from low to high, both included."""
    return low + int(fraction(*key) * (high - low + 1))


def pick(items: Sequence[T], *key: object) -> T:
    """One of the items. Raises IndexError if there is none."""
    return items[number(0, len(items) - 1, *key)]


def shuffled(items: Sequence[T], *key: object) -> list[T]:
    """The items in an order of the key's."""
    order = sorted(range(len(items)), key=lambda at: digest(*key, at))
    return [items[at] for at in order]
