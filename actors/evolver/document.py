"""A skill file taken apart: front matter, body, regions at the tail, frozen sections.

Reading only, byte-preserving: every part is a span of the text as it stands, line
ends included. What is damaged is listed in ``problems``; a damaged document is never
edited and a damaged result never leaves the room (row P1-6, third layer).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from actors.evolver.plain import plain

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
_FROZEN_LINE = re.compile(r"^frozen[ \t]*:[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
_MARK = re.compile(  # the only lines that matter for the structure of the body
    r"^ {0,3}(?:"
    r"(?P<heading>#{1,6})(?![^ \t\r\n])(?P<title>.*)"
    r"|(?P<bullet>(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:(?P<ticks>`{3,})(?!.*`)|(?P<tildes>~{3,}))"
    r"|(?P<comment><!--)"
    r"|(?P<underline>=+|-+)[ \t]*\r?$"
    r")",
    re.MULTILINE,
)
_CLOSING_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*\r?$", re.MULTILINE)
_NO_PARAGRAPH = re.compile(r" {0,3}(?:[-*+>|<]|\d{1,9}[.)])| {4}|\t")
_NAMED = re.compile(r"appendix|momentum", re.IGNORECASE)
_LOOSE_MARKER = re.compile(
    r"<\s*!\s*-[-\s]*(?:APPENDIX|MOMENTUM)[\s_-]*(?:START|END)[-\s]*>"
    r"|(?:APPENDIX|MOMENTUM)[\s\\]*_\s*(?:START|END)",
    re.IGNORECASE,
)
_PROMPT_FENCE = re.compile(
    r"<<<\s*(?:DOCUMENT|SKILL|TRAJECTORY)|(?:DOCUMENT|SKILL|TRAJECTORY)\s*>>>", re.IGNORECASE
)
_SURROGATE = re.compile("[\ud800-\udfff]")


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
    blocks: the body's code fences and comments, in order.
    newline: the line end of what is added to it.
    open_fence: the last of the blocks does not close.
    problems: everything that is wrong with the file; empty for a sound one.
    """

    text: str
    body: Span
    regions: tuple[Region, ...]
    frozen: tuple[Span, ...]
    blocks: tuple[Span, ...]
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

    Case, spacing, invisible characters, look-alike letters and the bare name do not matter; the
    fences of the engine's own prompts count too, for they would end the block that the text is
    shown in.
    """
    seen = plain(text)
    return bool(_LOOSE_MARKER.search(seen) or _PROMPT_FENCE.search(seen))


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
    problems = _character_problems(text)
    front = _FRONT.match(text)
    if front is None and _FRONT_OPENS.match(text):
        problems.append("the front matter does not close")
    front_end = front.end() if front else 0
    regions = _regions(text, front_end, problems)
    body = Span(front_end, regions[0].span.start if regions else len(text))
    listed = _listed_titles(text[:front_end], problems)
    structure = _structure(text, body)
    lacking = listed - {heading.title for heading in structure.headings}
    problems.extend(f"no heading is titled {title!r}, as frozen: says" for title in sorted(lacking))
    newlines = text.count("\n")
    crlf = newlines > 0 and text.count("\r\n") == newlines
    return SkillDocument(
        text=text,
        body=body,
        regions=regions,
        frozen=_frozen(
            structure.headings, listed | {_fold(title) for title in frozen_headings}, body
        ),
        blocks=structure.blocks,
        newline=newline or ("\r\n" if crlf else "\n"),
        open_fence=structure.open,
        problems=tuple(problems),
    )


def _character_problems(text: str) -> list[str]:
    problems = []
    if text.count("\r") != text.count("\r\n"):
        problems.append("a carriage return without a line feed: line ends must be LF or CRLF")
    if not text.isascii() and _SURROGATE.search(text):
        problems.append("half of a surrogate pair, which is no character")
    return problems


def _listed_titles(front: str, problems: list[str]) -> set[str]:
    """The titles that the front matter freezes, folded."""
    line = _FROZEN_LINE.search(front)
    if line is None:
        return set()
    titles = {_fold(title) for title in line.group(1).split(";") if title.strip()}
    if not titles:
        problems.append("frozen: names no heading; titles go on its line, with ; between them")
    return titles


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
    seen = plain(text)
    loose = len(_LOOSE_MARKER.findall(seen)) if _NAMED.search(seen) else 0
    if loose != exact:
        problems.append("a marker is misspelt")
    if ("<<<" in seen or ">>>" in seen) and _PROMPT_FENCE.search(seen):
        problems.append("it holds a fence of the engine's own prompts")
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


class _Heading(msgspec.Struct, frozen=True):
    """``title`` is folded; ``underline`` is ``=`` or ``-``, or empty if the line begins with #."""

    start: int
    level: int
    title: str
    underline: str


class _Structure(msgspec.Struct, frozen=True):
    headings: tuple[_Heading, ...]
    blocks: tuple[Span, ...]
    open: bool


def _structure(text: str, body: Span) -> _Structure:
    """The body's headings, code fences and comments. Headings inside the latter are none."""
    headings: list[_Heading] = []
    blocks: list[Span] = []
    position = body.start
    while mark := _MARK.search(text, position, body.end):
        floor, position = position, _next_line(text, mark.end(), body.end)
        if mark["heading"]:
            headings.append(_Heading(mark.start(), len(mark["heading"]), _title(mark["title"]), ""))
        elif mark["underline"]:
            start = _paragraph(text, floor, mark.start())
            if start is not None:
                rule = mark["underline"][0]
                title = _fold(text[start : mark.start()])
                headings.append(_Heading(start, 1 if rule == "=" else 2, title, rule))
        else:
            end = _block_end(text, mark, body.end)
            blocks.append(Span(mark.start(), body.end if end < 0 else end))
            if end < 0:
                return _Structure(tuple(headings), tuple(blocks), True)
            position = _next_line(text, end, body.end)
    return _Structure(tuple(headings), tuple(blocks), False)


def _next_line(text: str, position: int, limit: int) -> int:
    line_end = text.find("\n", position, limit)
    return limit if line_end < 0 else line_end + 1


def _block_end(text: str, mark: re.Match[str], limit: int) -> int:
    """Where the fence or comment that begins at ``mark`` ends; -1: nowhere."""
    if mark["comment"]:
        closing = text.find("-->", mark.end() - 2, limit)
        return closing if closing < 0 else closing + 3
    fence = mark["ticks"] or mark["tildes"]
    if mark["bullet"]:
        return _item_fence_end(text, mark, fence, limit)
    for end in _CLOSING_FENCE.finditer(text, mark.end(), limit):
        if end[2].startswith(fence) and end[1] in ("", " ", "  ", "   "):
            return end.end()
    return -1


def _item_fence_end(text: str, mark: re.Match[str], fence: str, limit: int) -> int:
    """A fence in a list item also ends where the item does: at the first line indented less."""
    indent = mark.end() - len(fence) - mark.start()
    position = _next_line(text, mark.end(), limit)
    while position < limit:
        following = _next_line(text, position, limit)
        line = text[position:following].expandtabs(4).rstrip()
        inner = line.lstrip()
        if inner and len(line) - len(inner) < indent:
            return position - 1
        if inner.startswith(fence) and not inner.strip(fence[0]):
            return position + len(text[position:following].rstrip("\r\n"))
        position = following
    return -1


def _paragraph(text: str, floor: int, end: int) -> int | None:
    """Where the paragraph begins whose last line ends at ``end``; None: there is none."""
    start = end
    while start > floor:
        above = max(floor, text.rfind("\n", floor, start - 1) + 1)
        if not text[above:start].strip():
            break
        if _NO_PARAGRAPH.match(text, above):
            return None
        start = above
    return start if start < end else None


def _frozen(headings: Sequence[_Heading], titles: set[str], body: Span) -> tuple[Span, ...]:
    """The sections with these titles.

    A section goes from its heading to the next one of the same or a higher level. A line of
    dashes under text ends only a section whose own heading is written so: elsewhere it is more
    often meant as a rule, and what is in doubt stays frozen.
    """
    spans: list[Span] = []
    since: _Heading | None = None
    for heading in headings:
        if (
            since
            and heading.level <= since.level
            and heading.underline in ("", "=", since.underline)
        ):
            spans.append(Span(since.start, heading.start))
            since = None
        if since is None and heading.title in titles:
            since = heading
    if since is not None:
        spans.append(Span(since.start, body.end))
    return tuple(spans)
