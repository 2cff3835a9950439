"""Taking the answer out of texts that editors read: the diagnoser's door to ``prompts.withhold``.

The rules are shared, for the evolver shows trajectories of its own to an editor.
"""

from __future__ import annotations

from prompts.withhold import (
    AN_OPTION,
    THE_QUESTION,
    cleaned,
    fitted,
    without_answer,
    without_letters,
)

__all__ = [
    "AN_OPTION",
    "THE_QUESTION",
    "cleaned",
    "fitted",
    "without_answer",
    "without_letters",
]
