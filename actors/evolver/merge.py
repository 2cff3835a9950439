"""Several analysts' edits as one list (ALGORITHM.md section 4, step 5). Pure.

One pass over the edits, whatever they are: a union, never a rewriting by a model, so that
it ends, loses nothing and gives the same list for the same edits.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

import msgspec

from actors.evolver.rejected import EditGist, edit_gist, fingerprint, same_idea
from protocol.evolver import Edit

__all__ = ["merge_edits"]


def merge_edits(
    edits: Iterable[Edit], question_ids: Set[str], similarity: float
) -> tuple[Edit, ...]:
    """The union: repetitions become one edit with united support; most supported first.

    Edits repeat each other if they do the same, or if they have the same operation and target
    and say the same in other words; the wording that came first stays. Equally supported edits
    keep the order in which they came. Support counts only ``question_ids``, the cases that were
    shown: an invented id carries no weight.
    """
    united: dict[str, Edit] = {}
    known_as: dict[str, str] = {}
    said: dict[object, list[tuple[EditGist, str]]] = {}
    for edit in edits:
        own = fingerprint(edit)
        if own not in known_as:
            mine = edit_gist(edit)
            target = "" if edit.op == "append" else mine.target.folded
            # only contents with the same turning words can be alike
            like = said.setdefault((edit.op, target, mine.content.turning), [])
            known_as[own] = next(
                (key for idea, key in like if same_idea(mine, idea, similarity)), own
            )
            if known_as[own] == own:
                like.append((mine, own))
        key = known_as[own]
        first = united.get(key, edit)
        support = dict.fromkeys((*first.support, *edit.support))
        known = tuple(name for name in support if name in question_ids)
        united[key] = msgspec.structs.replace(first, support=known)
    return tuple(sorted(united.values(), key=lambda edit: -len(edit.support)))
