"""The simulated editor: what it is asked, and by whom of its parts that is answered.

Pure. Edits come from ``editing``, a choice among them from ``ranking``, compacted notes and
momentum from ``regions``; with ``hostile`` a share of the replies are attacks instead.
"""

from __future__ import annotations

from actors.twin.briefs import (
    Brief,
    DocumentBrief,
    EditorBrief,
    MomentumBrief,
    NotesBrief,
    RankBrief,
    brief_of,
)
from actors.twin.catalog import Catalog
from actors.twin.editing import edits_reply
from actors.twin.hostile import attack_of
from actors.twin.layout import LayoutError
from actors.twin.ranking import rank_reply
from actors.twin.regions import momentum_reply, notes_reply
from actors.twin.shares import UNREAD, Shares
from actors.twin.wire import Reply, Turn

__all__ = ["editor_reply"]


def editor_reply(
    catalog: Catalog,
    world_seed: int,
    shares: Shares,
    turns: tuple[Turn, ...],
    seed: int | None,
    *,
    hostile: float,
) -> Reply:
    """The editor's reply. hostile: the share of replies that are attacks, in [0, 1].

    Raises LayoutError or NotPlanted for a request that is not an editor's.
    """
    asked = next((turn.text for turn in turns if turn.role == "user"), None)
    if asked is None:
        raise LayoutError("an editor's request has a user message")
    brief = brief_of(asked)
    again = turns[-1].role == "user" and turns[-1].text.startswith(UNREAD)
    key = ("editor", world_seed, asked, seed)
    sound = _sound(catalog, brief, shares, key, mend=again)
    # A second try is a reply of its own: it may be an attack where the first was none.
    attack = attack_of(catalog, brief, sound, hostile, "again" if again else "first", *key)
    return Reply(sound) if attack is None else attack.reply


def _sound(
    catalog: Catalog, brief: Brief, shares: Shares, key: tuple[object, ...], *, mend: bool
) -> str:
    """What an editor says that is not hostile; now and then it is malformed all the same."""
    match brief:
        case EditorBrief() | DocumentBrief():
            return edits_reply(catalog, brief, shares, key, mend=mend)
        case RankBrief():
            return rank_reply(catalog, brief, shares, key, mend=mend)
        case NotesBrief():
            return notes_reply(catalog, brief, shares, key, mend=mend)
        case MomentumBrief():
            return momentum_reply(catalog, brief, shares, key, mend=mend)
