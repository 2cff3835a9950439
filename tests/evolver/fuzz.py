"""A long search for an edit that touches a protected byte: ``python -m tests.evolver.fuzz 200000``.

The documents are put together from known parts, so that what must survive is known without
the parser. The suite runs a short stretch of the same search.
"""

from __future__ import annotations

import random
import sys

from actors.evolver.document import MARKERS, validate
from actors.evolver.patch import Limits, Patched, apply_edits, undo
from protocol.evolver import Edit, Op

__all__ = ["check", "search"]

_LITERALS = [marker for pair in MARKERS.values() for marker in pair]
_FRONTS = ["", "---\nname: a\ntask_type: T\n---", "---\n---", "\ufeff---\nfrozen: Kept\n---  "]
_LINES = [
    "# Title", "## Steps", "## Kept", "- look", "- look twice", "- caf\u00e9", "- cafe\u0301 bar",
    "", "   ", "```", "~~~", "```python", "x", "- aaa", "---", "text: a", "## Kept ##", "\u2028y",
    "<!-- note -->", "- e\u0301e", "APPENDIX", "\U0001f469\u200d\U0001f680 crew", "<!--", "-->",
]  # fmt: skip
_PIECES = [
    *_LINES, *_LITERALS, "<!-- APPENDIX_", "START -->", "APPENDIX_END", "<!--momentum_start-->",
    "_END", "MOMENTUM", "\n", "\r\n", "\r", "\u0301", "- new rule", "- other\n- rule", " ",
    "```\nfence\n```", "## Kept\n- more", "\x00",
]  # fmt: skip
_INNERS = ["\n", "\n- note\n", "", "\n## Reminders\n\n- look\n- note\n", "\n---\n## Kept\n"]
_OPS: tuple[Op, ...] = ("append", "insert_after", "replace", "delete")


def _document(rng: random.Random) -> tuple[str, str, str]:
    front = rng.choice(_FRONTS)
    body = "".join(
        rng.choice(_LINES) + rng.choice(["\n", "\n", "\n", "\r\n", ""])
        for _ in range(rng.randrange(9))
    )
    if front or body.startswith("---"):
        body = "\n" + body
    tail = ""
    for opening, closing in MARKERS.values():
        if rng.random() < 0.5:
            tail += opening + rng.choice(_INNERS) + closing + rng.choice(["", "\n", "\n\n"])
    if rng.random() < 0.25:
        front, body, tail = (part.replace("\n", "\r\n") for part in (front, body, tail))
    return front, body, tail


def _target(rng: random.Random, text: str) -> str:
    if text and rng.random() < 0.75:
        start = rng.randrange(len(text))
        return text[start : start + rng.randrange(1, 40)]
    return "".join(rng.choice(_PIECES) for _ in range(rng.randrange(3)))


def _edit(rng: random.Random, text: str) -> Edit:
    content = "".join(rng.choice(_PIECES) for _ in range(rng.randrange(4)))
    return Edit(
        op=rng.choice(_OPS), target=_target(rng, text), content=content, support=(), reason=""
    )


def check(front: str, body: str, tail: str, edits: list[Edit], limits: Limits) -> Patched:
    """Apply the edits and hold the result against what must be true of it.

    Raises AssertionError with the counter-example.
    """
    text = front + body + tail
    patched = apply_edits(text, edits, limits, screen=lambda _: None)
    case = repr((text, edits, patched.text))
    after = patched.text
    assert undo(after, patched.inverse) == text, case
    assert patched.applied == len(patched.inverse) <= limits.edits, case
    if validate(text):
        assert after == text, case
        return patched
    assert not validate(after), case
    assert after.startswith(front), case
    assert after.endswith(tail), case
    for literal in _LITERALS:
        assert after.count(literal) == text.count(literal), case
    new_body = after[len(front) : len(after) - len(tail)]
    ceiling = max(len(body), min(limits.max_chars, len(body) + int(len(body) * limits.max_growth)))
    assert not body.strip() or len(new_body) <= ceiling, case
    if "frozen: Kept" in front and "```" not in body and "~~~" not in body and "Kept" in body:
        assert _kept(body) == _kept(new_body), case
    if text.count("\n") and text.count("\n") == text.count("\r\n"):
        assert after.count("\n") == after.count("\r\n"), case
    return patched


def _kept(body: str) -> str:
    """The lines of the sections titled Kept, read without the parser."""
    lines: list[str] = []
    inside, fenced = 0, False
    for line in body.split("\n"):
        plain = line.rstrip("\r")
        fenced ^= plain.startswith(("```", "~~~"))
        level = len(plain) - len(plain.lstrip("#"))
        if not fenced and level:
            title = plain.strip("# ").rstrip()
            if not inside or level <= inside:
                inside = level if title == "Kept" else 0
        if inside:
            lines.append(plain)
    return "\n".join(lines).rstrip()


def search(n_edits: int, seed: int) -> dict[str, int]:
    """Try ``n_edits`` random edits; how often each status came up."""
    rng = random.Random(seed)
    counts: dict[str, int] = {}
    tried = 0
    while tried < n_edits:
        front, body, tail = _document(rng)
        text = front + body + tail
        edits = [_edit(rng, text) for _ in range(rng.randrange(1, 6))]
        limits = Limits(rng.choice([2, 9]), rng.choice([60, 10_000]), rng.choice([0.5, 20.0]))
        for report in check(front, body, tail, edits, limits).reports:
            counts[report.status] = counts.get(report.status, 0) + 1
        tried += len(edits)
    return counts


if __name__ == "__main__":
    print(search(int(sys.argv[1]), seed=20260716))
