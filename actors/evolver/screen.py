"""What no text of the engine may hold, whichever document it is for. Pure.

The patch engine guards the structure of a document; this is about what is said: nothing that
the gate refused before, no characters that cannot be seen, nothing that gives a question away.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from actors.evolver.leak import Exposed, find_leak, sentences_with_gold
from actors.evolver.patch import Refusal
from actors.evolver.rejected import Memory
from protocol.evolver import Edit

__all__ = ["edit_screen", "holds_fence", "holds_unseen", "narrowed"]

_FENCES = ("<<<", ">>>")


def holds_unseen(text: str) -> bool:
    """Whether a text has control or invisible characters, line breaks and tabs aside."""
    return any(unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\r\t" for c in text)


def holds_fence(text: str) -> bool:
    """Whether a text could end, or begin, a block of the prompt that it is shown in one day."""
    return any(fence in unicodedata.normalize("NFKC", text) for fence in _FENCES)


def narrowed(exposed: Sequence[Exposed]) -> tuple[Exposed, ...]:
    """The same for ``find_leak``, with only the sentences that matter: found once, not per text.

    Raises ValueError if a question has no option of its gold letter.
    """
    return tuple(Exposed(item.question, sentences_with_gold(item)) for item in exposed)


def edit_screen(
    memory: Memory, exposed: Sequence[Exposed], known: str
) -> Callable[[Edit], Refusal | None]:
    """The ``screen`` of ``apply_edits``.

    memory: of the edits that were rejected. known: the document as it stands.
    """

    def screen(edit: Edit) -> Refusal | None:
        before = memory.refusal(edit)
        if before is not None:
            return before
        if holds_unseen(edit.content):
            return Refusal("marker", "it holds control or invisible characters")
        # What a delete takes away cannot give anything away.
        leak = find_leak(edit.content, exposed, known) if edit.op != "delete" else None
        return Refusal("leak", leak) if leak else None

    return screen
