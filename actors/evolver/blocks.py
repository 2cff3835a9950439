"""How a case stands in a prompt of the editor: a head, and everything else indented. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from prompts.trajectory import neutral

__all__ = ["case_block"]


def case_block(question_id: str, kind: str, parts: Iterable[str]) -> str:
    """``Case <id> [<kind>]`` and the parts below it; empty parts are left out.

    Indented line by line, so that nothing a video says can begin a block of the prompt.
    """
    body = neutral("\n".join(part for part in parts if part))
    # splitlines knows every line break that there is, form feeds and U+2028 among them.
    return "\n  ".join((f"Case {question_id} [{kind}]", *body.splitlines()))
