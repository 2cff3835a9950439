"""A skill file taken apart: front matter, body, regions at the tail, frozen sections.

Reading only, byte-preserving: every part is a span of the text as it stands, line
ends included. What is damaged is listed in ``problems``; a damaged document is never
edited and a damaged result never leaves the room (row P1-6, third layer).
"""

from __future__ import annotations

import re
import unicodedata

import msgspec

__all__ = [
    "APPENDIX",
    "MARKERS",
    "MOMENTUM",
    "Region",
    "SkillDocument",
    "Span",
    "holds_marker",
    "parse",
    "validate",
]

APPENDIX = "appendix"
MOMENTUM = "momentum"
MARKERS = {
    APPENDIX: ("<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"),
    MOMENTUM: ("<!-- MOMENTUM_START -->", "<!-- MOMENTUM_END -->"),
}
"""The regions in the order that they must have at the tail."""

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(?:.*\n)*?---[ \t]*(?=\r?\n|\Z)")
_FRONT_OPENS = re.compile(r"\ufeff?---[ \t]*(?:\r?\n|\Z)")
_FROZEN_LINE = re.compile(r"^frozen:[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])(.*)")
_LOOSE_MARKER = re.compile(
    r"<\s*!\s*-[-\s]*(?:APPENDIX|MOMENTUM)[\s_-]*(?:START|END)[-\s]*>"
    r"|(?:APPENDIX|MOMENTUM)\s*_\s*(?:START|END)",
    re.IGNORECASE,
)
_PROMPT_FENCE = re.compile(r"<<<\s*(?:SKILL|TRAJECTORY)|(?:SKILL|TRAJECTORY)\s*>>>", re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


class Span(msgspec.Struct, frozen=True):
    """Characters ``start`` to ``end`` (exclusive) of the text."""

    start: int
    end: int

    def meets(self, other: Span) -> bool:
        """Whether the two have a character in common."""
        return self.start < other.end and other.start < self.end


class Region(msgspec.Struct, frozen=True):
    """A marked region; ``span`` holds the markers, ``inner`` is what lies between them."""

    name: str
    span: Span
    inner: Span


class SkillDocument(msgspec.Struct, frozen=True):
    """A parsed skill file.

    body: what may be edited, from behind the front matter to the first region.
    frozen: sections inside the body that may not be.
    newline: the line end of what is added to it.
    open_fence: the body ends inside a code fence.
    problems: everything that is wrong with the file; empty for a sound one.
    """

    text: str
    body: Span
    regions: tuple[Region, ...]
    frozen: tuple[Span, ...]
    newline: str
    open_fence: bool
    problems: tuple[str, ...]

    @property
    def front(self) -> str:
        """The front matter, without the line end behind it; empty if there is none."""
        return self.text[: self.body.start]

    @property
    def body_text(self) -> str:
        """The editable part."""
        return self.text[self.body.start : self.body.end]

    @property
    def tail(self) -> str:
        """The regions and what stands between and behind them."""
        return self.text[self.body.end :]

    @property
    def frozen_texts(self) -> tuple[str, ...]:
        """The frozen sections' texts, in order."""
        return tuple(self.text[span.start : span.end] for span in self.frozen)

    def region(self, name: str) -> Region | None:
        """The region of that name."""
        return next((region for region in self.regions if region.name == name), None)


def holds_marker(text: str) -> bool:
    """Whether a text holds a region marker, or what a reader or model could take for one.

    Case, spacing, invisible characters and the bare name do not matter; the fences of the
    engine's own prompts count too, for they would end the block that the text is shown in.
    """
    plain = _plain(text)
    return bool(_LOOSE_MARKER.search(plain) or _PROMPT_FENCE.search(plain))


def validate(text: str) -> tuple[str, ...]:
    """What is wrong with a finished skill: markers must be exact, paired, ordered, at most
    one pair each and at the tail; the front matter must close (row P1-6)."""
    return parse(text).problems


def parse(
    text: str, frozen_headings: tuple[str, ...] = (), newline: str | None = None
) -> SkillDocument:
    """Take a document apart.

    frozen_headings: titles of sections that stay as they are, beside those that the front
    matter lists itself (``frozen: Output format; Video tree``).
    newline: the line end of what is added; None: as the text has it.
    """
    problems: list[str] = []
    front = _FRONT.match(text)
    if front is None and _FRONT_OPENS.match(text):
        problems.append("the front matter does not close")
    front_end = front.end() if front else 0
    regions = _regions(text, front_end, problems)
    body = Span(front_end, regions[0].span.start if regions else len(text))
    listed = _FROZEN_LINE.search(text, 0, front_end)
    titles = {_fold(title) for title in frozen_headings}
    if listed:
        titles |= {_fold(title) for title in listed.group(1).split(";") if title.strip()}
    frozen, open_fence = _sections(text, body, titles)
    newlines = text.count("\n")
    crlf = newlines > 0 and text.count("\r\n") == newlines
    return SkillDocument(
        text=text,
        body=body,
        regions=regions,
        frozen=frozen,
        newline=newline or ("\r\n" if crlf else "\n"),
        open_fence=open_fence,
        problems=tuple(problems),
    )


def _plain(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _fold(title: str) -> str:
    return " ".join(title.split()).casefold()


def _title(rest: str) -> str:
    """A heading's title, without a closing run of ``#``."""
    folded = _fold(rest)
    bare = folded.rstrip("#")
    return bare.rstrip() if not bare or bare.endswith(" ") else folded


def _regions(text: str, front_end: int, problems: list[str]) -> tuple[Region, ...]:
    """The well-formed regions in the order of the text; problems are appended."""
    found: list[Region] = []
    exact = 0
    for name, (opening, closing) in MARKERS.items():
        counts = (text.count(opening), text.count(closing))
        exact += sum(counts)
        if counts == (0, 0):
            continue
        if counts != (1, 1):
            problems.append(f"the {name} markers are not one pair: {counts[0]} and {counts[1]}")
            continue
        start, end = text.index(opening), text.index(closing)
        if end < start:
            problems.append(f"the {name} markers are in the wrong order")
            continue
        found.append(
            Region(
                name=name,
                span=Span(start, end + len(closing)),
                inner=Span(start + len(opening), end),
            )
        )
    if len(_LOOSE_MARKER.findall(_plain(text))) != exact:
        problems.append("a marker is misspelt")
    _check_places(text, front_end, found, problems)
    return tuple(sorted(found, key=lambda region: region.span.start))


def _check_places(text: str, front_end: int, found: list[Region], problems: list[str]) -> None:
    if not found:
        return
    if found[0].span.start < front_end:
        problems.append("a region begins in the front matter")
    if len(found) == 2 and found[1].span.start < found[0].span.end:
        problems.append("the regions overlap or are in the wrong order")
        return
    between = text[found[0].span.end : found[-1].span.start] if len(found) == 2 else ""
    if between.strip() or text[found[-1].span.end :].strip():
        problems.append("there is text behind a region")


def _sections(text: str, body: Span, titles: set[str]) -> tuple[tuple[Span, ...], bool]:
    """The frozen sections of the body, and whether it ends inside a code fence.

    A section goes from its heading to the next heading of the same or a higher level.
    Headings inside fences are not headings.
    """
    spans: list[Span] = []
    fence = ""
    frozen_from, frozen_level = -1, 0
    position = body.start
    for raw in _LINE.findall(text, body.start, body.end):
        line = raw.rstrip("\r\n")
        mark = _FENCE.fullmatch(line)
        if fence:
            closes = mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence)
            if closes and mark and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        elif heading := _HEADING.fullmatch(line):
            level = len(heading[1])
            if frozen_from >= 0 and level <= frozen_level:
                spans.append(Span(frozen_from, position))
                frozen_from = -1
            if frozen_from < 0 and _title(heading[2]) in titles:
                frozen_from, frozen_level = position, level
        position += len(raw)
    if frozen_from >= 0:
        spans.append(Span(frozen_from, body.end))
    return tuple(spans), bool(fence)
