"""Several analysts' edits as one ranked list (ALGORITHM.md section 4, step 5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Set

import msgspec

from actors.evolver.rejected import fingerprint
from protocol.evolver import Edit

__all__ = ["merge_edits"]


def merge_edits(edits: Iterable[Edit], question_ids: Set[str]) -> tuple[Edit, ...]:
    """The union: repetitions become one edit with united support; most supported first.

    Equally supported edits keep the order in which they came. Support counts only
    ``question_ids``, the cases that were shown: an invented id carries no weight.
    """
    united: dict[str, Edit] = {}
    for edit in edits:
        key = fingerprint(edit)
        first = united.get(key, edit)
        support = dict.fromkeys((*first.support, *edit.support))
        known = tuple(name for name in support if name in question_ids)
        united[key] = msgspec.structs.replace(first, support=known)
    return tuple(sorted(united.values(), key=lambda edit: -len(edit.support)))
