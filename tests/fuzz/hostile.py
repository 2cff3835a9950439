"""Documents and edits that want to break the patch engine.

A document is put together from parts whose meaning is known, so that what must survive is
known without the parser: its front matter, its frozen sections, its tail, whether it is sound.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from protocol.evolver import Edit, Op

__all__ = ["FROZEN_TITLES", "LITERALS", "Hostile", "hostile_document", "hostile_edit"]

LITERALS = (
    "<!-- APPENDIX_START -->",
    "<!-- APPENDIX_END -->",
    "<!-- MOMENTUM_START -->",
    "<!-- MOMENTUM_END -->",
)
FROZEN_TITLES = ("Kept", "Also kept")
_OPS: tuple[Op, ...] = ("append", "insert_after", "replace", "delete")
_NAMED = "---\nname: a\ntask_type: T\n---"
_FRONTS = ("", _NAMED, "---\n---", "---\nfrozen: kept ;Also  Kept\n---  ", "\ufeff" + _NAMED)

_BLOCKS = (
    "- look", "- look twice", "- look twice at it", "- aaa", "- aa\n- aaaa", "1. first\n2. second",
    "plain text", "text that goes\non and on", "- caf\u00e9", "- cafe\u0301 bar", "- e\u0301e",
    "\U0001f469\u200d\U0001f680 crew", "\U0001f44d\U0001f3fd yes", "\U0001f1eb\U0001f1f7\U0001f1e9",
    "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937\u093f",
    "\u1112\u1161\u11ab \ud55c", "\uff33\uff34\uff25\uff30 one", "\u041f\u0440\u0438",
    "", "", "   ", "***", "| a | b |\n|---|---|\n| 1 | 2 |", "> quoted\n> more", "    ##  Kept",
    "```\n##  Kept\n```", "~~~md\n#  Kept\n```\n~~~", "````\n```\n````", "- ```\n  ##  Kept\n  ```",
    "<!-- note -->", "<!-- note\n##  Kept\n-->", "<!--> odd", "see the appendix", "APPENDIX",
    "text: a", "a\u2028b", "\ttab", "x" * 300, "`code` and ``` ticks", "#hashtag",
)  # fmt: skip
_TITLES = ("Steps", "Checks", "Keep", "Kept not", "**Kept**")
_HEADS = ("# {}", "## {}", "### {}", "## {} ##", "##\t{}  ", " ## {}")
_INNERS = (
    "\n",
    "\n- note\n",
    "",
    "\n## Reminders\n\n- look\n- note\n",
    "\n---\n## Kept\n",
    "\n```\n",
)
_DAMAGE = (
    "<!-- appendix_start -->", "<!--MOMENTUM_END-->", "<!-- APPENDIX_END -->", "APPENDIX_START",
    "<!-- MOMENTUM_START -->\n<!-- APPENDIX_START -->\n<!-- APPENDIX_END -->",
    "\uff1c!-- APPENDIX_START --\uff1e", "MOMENT\u200bUM_START", "\u0410PPENDIX_END", "a\rb",
    "<!-- MOMENTUM_END -->\n<!-- MOMENTUM_START -->", "SKILL>>>", "<<< trajectory",
)  # fmt: skip
_PIECES = (
    *_BLOCKS, *LITERALS, *_DAMAGE, "<!-- APPENDIX_", "START -->", "_END", "MOMENTUM", "\n", "\r\n",
    "\r", "\u0301", "\u200d", "\u200b", "\ufe0f", "\u00a0", "- new rule", "- other\n- rule", " ",
    "```\nfence\n```", "```", "~~~", "````", "<!--", "-->", "---", "===", "Kept\n===", "Kept\n---",
    "## Kept\n- more", "# New", "## ", "## Kept", "Kept", "---\nname: b\n---", "\x00", "-", "`",
    "<!-- APPEND\u0406X_START -->", "APPENDIX\\_END", "\uff2d\uff2f\uff2dENTUM_END", "\U0001f1f7",
)  # fmt: skip


@dataclass(frozen=True)
class Hostile:
    """A document and what is known of it.

    frozen: the bytes of each section that must stay; sound: the engine may edit it at all.
    """

    front: str
    body: str
    tail: str
    frozen: tuple[str, ...]
    sound: bool

    @property
    def text(self) -> str:
        """The whole."""
        return self.front + self.body + self.tail


def hostile_document(rng: random.Random) -> Hostile:
    """A document; one in eight is damaged."""
    front = rng.choice(_FRONTS)
    titles = list(FROZEN_TITLES) if "frozen" in front or rng.random() < 0.5 else []
    sections: list[tuple[bool, str]] = []
    if rng.random() < 0.7:
        sections.append((False, _blocks(rng, 5)))
    for _ in range(rng.randrange(4)):
        if titles and rng.random() < 0.5:
            sections += _frozen_section(rng, titles.pop(0))
        head = rng.choice(_HEADS[:2]).format(rng.choice(_TITLES))
        sections.append((False, head + "\n" + _blocks(rng, 4)))
    if "frozen" in front or rng.random() < 0.3:
        sections += [part for title in titles for part in _frozen_section(rng, title)]
    elif rng.random() < 0.1:
        sections.append((False, rng.choice(("```\nopen", "<!-- open", "~~~\n## Kept", "x"))))
    sound = True
    if rng.random() < 0.1:
        sections.insert(rng.randrange(len(sections) + 1), (False, rng.choice(_DAMAGE) + "\n"))
        sound = False
    regions = [
        LITERALS[2 * n] + rng.choice(_INNERS) + LITERALS[2 * n + 1] + rng.choice(("", "\n", "\n\n"))
        for n in range(2)
        if rng.random() < 0.5
    ]
    if regions and rng.random() < 0.03:
        regions.insert(rng.randrange(1, len(regions) + 1), rng.choice(("a", "\u200b", "## Kept")))
        sound = False
    tail = "".join(regions)
    if front:
        sections.insert(0, (False, "\n"))
    return _with_line_ends(rng, front, sections, tail, sound)


def _with_line_ends(
    rng: random.Random, front: str, sections: list[tuple[bool, str]], tail: str, sound: bool
) -> Hostile:
    mode = rng.random()
    if mode < 0.2:
        front, tail = front.replace("\n", "\r\n"), tail.replace("\n", "\r\n")
        sections = [(kept, text.replace("\n", "\r\n")) for kept, text in sections]
    elif mode < 0.3:
        sections = [
            (kept, "".join(c if c != "\n" else rng.choice(("\n", "\r\n")) for c in text))
            for kept, text in sections
        ]
    return Hostile(
        front=front,
        body="".join(text for _, text in sections),
        tail=tail,
        frozen=tuple(text for kept, text in sections if kept),
        sound=sound,
    )


def _blocks(rng: random.Random, most: int) -> str:
    return "".join(rng.choice(_BLOCKS) + "\n" for _ in range(rng.randrange(most)))


def _frozen_section(rng: random.Random, title: str) -> list[tuple[bool, str]]:
    """Its own headings are deeper, and every block in it closes."""
    shape = rng.randrange(4)
    if shape == 0:  # the blank line makes the title a paragraph of its own
        return [(False, "\n"), (True, f"{title}\n---\n" + _blocks(rng, 3))]
    head = rng.choice(_HEADS[:2] + _HEADS[3:]).format(title.upper() if shape == 1 else title)
    deeper = "#### Deeper\n" + _blocks(rng, 2) if shape == 2 else ""
    return [(True, head + "\n" + _blocks(rng, 3) + deeper)]


def hostile_edit(rng: random.Random, document: Hostile, before: list[Edit]) -> Edit:
    """An edit; targets are mostly cut out of the document, some out of an earlier edit's text."""
    op = rng.choice(_OPS)
    target = "" if op == "append" and rng.random() < 0.8 else _target(rng, document, before)
    return Edit(op=op, target=target, content=_content(rng, target), support=(), reason="")


def _target(rng: random.Random, document: Hostile, before: list[Edit]) -> str:
    text, kind = document.text, rng.random()
    if before and kind < 0.1:
        text = before[-1].content
    if not text or kind > 0.93:
        return "".join(rng.choice(_PIECES) for _ in range(rng.randrange(3)))
    if kind < 0.55:  # whole lines
        lines = (document.body or text).split("\n")
        first = rng.randrange(len(lines))
        return "\n".join(lines[first : first + rng.choice((1, 1, 1, 2, 3))])
    if kind < 0.65 and document.tail:  # over the border of a region
        border = len(text) - len(document.tail)
        return text[max(0, border - rng.randrange(1, 20)) : border + rng.randrange(1, 40)]
    start = rng.randrange(len(text))
    return text[start : start + rng.choice((1, 3, 12, 40, 400))]


def _content(rng: random.Random, target: str) -> str:
    kind = rng.random()
    if kind < 0.5:
        return f"- rule {rng.randrange(10_000)}"
    if kind < 0.6:
        return target + rng.choice((" and more", "\n- more", "", target, "\u0301"))
    if kind < 0.605:
        return rng.choice(("x" * 20_000, "- a\n" * 5_000, "\u0301" * 10_000, "```" * 3_000))
    return rng.choice(("", "\n", " ")).join(
        rng.choice(_PIECES) for _ in range(rng.choice((0, 1, 1, 2, 3, 4)))
    )
