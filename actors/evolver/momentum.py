"""The momentum region: what the last epoch taught a class, written anew each time.

The only writer of that region. It stands at the tail, behind the appendix. Where it is there
already, only what lies between its markers changes; where it is not, it is put behind the whole
text. Nothing else moves, and the finished document is parsed and compared before it is handed
out (row P1-6, third layer). A region that is emptied keeps its markers, so that emptying and
filling it again never adds a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from actors.evolver.document import (
    APPENDIX,
    MARKERS,
    MOMENTUM,
    SkillDocument,
    holds_marker,
    parse,
)
from actors.evolver.likeness import Gist, alike, folded, gist
from actors.evolver.patch import Refusal
from actors.evolver.regions import put_behind
from actors.evolver.screen import holds_fence, holds_unseen
from protocol.evolver import Edit, EditReport

__all__ = [
    "HEADING",
    "MAX_LINE_CHARS",
    "Momentum",
    "Screen",
    "momentum_of",
    "new_rules",
    "objection_to_rule",
    "room_for_lines",
    "with_rules",
    "without_momentum",
    "write_momentum",
]

HEADING = "## Priorities"
MAX_LINE_CHARS = 400
_LEAD = re.compile(r"^(?:[-*+•]\s+|#{1,6}\s+|\d{1,2}[.)]\s+)+")
_WORD = re.compile(r"[^\W_]+")
_COMMENT = re.compile(r"<!--|-->")
_FEWEST_WORDS = 4  # fewer in a row are met by chance

Screen = Callable[[str], Refusal | None]


class Momentum(msgspec.Struct, frozen=True):
    """The text with its new region.

    momentum: what stands in the region, with plain line ends; empty if nothing does.
    lines: the rules that were written. refused: a report for every other one that came.
    """

    text: str
    momentum: str
    lines: tuple[str, ...]
    refused: tuple[EditReport, ...]


def momentum_of(text: str) -> str:
    """What stands in a document's momentum region, with plain line ends; empty without one."""
    region = parse(text).region(MOMENTUM)
    inner = "" if region is None else text[region.inner.start : region.inner.end]
    return inner.replace("\r\n", "\n").strip()


def without_momentum(text: str) -> str:
    """The document without what stands in the region: all that a new one must not repeat."""
    region = parse(text).region(MOMENTUM)
    return text if region is None else text[: region.inner.start] + text[region.inner.end :]


def room_for_lines(max_chars: int) -> int:
    """Characters that the rules may have together when the region may have ``max_chars``."""
    return max(0, max_chars - len(f"{HEADING}\n"))


def write_momentum(
    text: str, lines: Sequence[str], *, max_chars: int, similarity: float, screen: Screen
) -> Momentum:
    """Replace the region by these rules, one bullet each; without any rule it is emptied.

    max_chars: of what stands in the region. Rules that do not fit are left out whole.
    similarity: from this share of common words on, two lines say the same.
    screen: gets the region's rules, one a line, and says why the last must not be written.
    If every rule is refused the region stays as it is: that is not the same as no rules.
    """
    document = parse(text)
    if document.problems:
        damage = Refusal("protected", "; ".join(document.problems))
        return _unchanged(text, [_report(line, damage) for line in lines])

    def fits(kept: Sequence[str]) -> Refusal | None:
        full = len(_inner(kept, document.newline)) > max_chars
        return (
            Refusal("over_budget", f"the region may have {max_chars} characters") if full else None
        )

    kept, refused = _chosen(without_momentum(text), lines, similarity, screen, fits)
    if lines and not kept:
        return _unchanged(text, refused)
    written = _written(document, kept)
    damage_done = _damage(document, written)
    if damage_done is not None:
        refusal = Refusal("protected", damage_done)
        return _unchanged(text, [*refused, *(_report(line, refusal) for line in kept)])
    return Momentum(written, momentum_of(written), tuple(kept), tuple(refused))


def new_rules(
    text: str,
    standing: Sequence[str],
    lines: Sequence[str],
    *,
    most: int,
    max_chars: int,
    similarity: float,
    screen: Screen,
) -> tuple[tuple[str, ...], tuple[EditReport, ...]]:
    """Rules to add to a sound document, each of which may stand there alone; and the refused ones.

    standing: rules that are not in the text and may stand in the region beside the new ones.
    most: rules. The rest as of ``write_momentum``, but what the region says is not said again.
    """

    def fits(kept: Sequence[str]) -> Refusal | None:
        if len(kept) > most:
            return Refusal("over_budget", f"there is room for {most}")
        size = len(momentum_of(with_rules(text, (*standing, *kept))))
        if size > max_chars:
            return Refusal("over_budget", f"the region may have {max_chars} characters")
        return None

    kept, refused = _chosen("\n".join((text, *standing)), lines, similarity, screen, fits)
    return tuple(kept), tuple(refused)


def with_rules(text: str, rules: Sequence[str], newline: str | None = None) -> str:
    """The text with these rules behind what stands in its region; they were screened before.

    newline: the line end of what is added; None: as the text has it. Raises ValueError if they
    cannot stand there.
    """
    if not rules:
        return text
    document = parse(text, newline=newline)
    region = document.region(MOMENTUM)
    if region is None or not text[region.inner.start : region.inner.end].strip():
        written = _written(document, rules)
    else:
        written = put_behind(document, region, rules)
    wrong = "; ".join(document.problems) or _damage(document, written)
    if wrong:
        raise ValueError(wrong)
    return written


def objection_to_rule(rule: str) -> Refusal | None:
    """Why a rule may not stand in any region, as it is; None: it may."""
    ((raw, line), *more) = _parts(rule)
    if more or raw != line:
        return _foreign(rule) or Refusal("marker", "it is not one plain line")
    return _malformed(raw, line)


def _unchanged(text: str, refused: Sequence[EditReport]) -> Momentum:
    return Momentum(text, momentum_of(text), (), tuple(refused))


def _report(line: str, refusal: Refusal) -> EditReport:
    edit = Edit(op="momentum", target="", content=line, support=(), reason="momentum")
    return EditReport(edit=edit, status=refusal.status, detail=refusal.detail)


# -- which rules ------------------------------------------------------------------------


def _chosen(
    elsewhere: str,
    lines: Sequence[str],
    similarity: float,
    screen: Screen,
    fits: Callable[[Sequence[str]], Refusal | None],
) -> tuple[list[str], list[EditReport]]:
    """elsewhere: what must not be said again. fits: why so many rules are too much, or None."""
    said = [gist(_bare(line)) for line in elsewhere.splitlines() if line.strip()]
    running = _words(elsewhere)
    kept: list[str] = []
    refused: list[EditReport] = []
    for raw, line in (pair for text in lines for pair in _parts(text)):
        mine = gist(line)
        refusal = _malformed(raw, line)
        if refusal is None and _repeats(mine, said, running, similarity):
            refusal = Refusal("noop", "the document, or a rule before it, already says it")
        if refusal is None:
            refusal = screen("\n".join((*kept, line)))
        if refusal is None:
            refusal = fits((*kept, line))
        if refusal is None:
            kept.append(line)
            said.append(mine)
        else:
            refused.append(_report(raw, refusal))
    return kept, refused


def _parts(text: str) -> Sequence[tuple[str, str]]:
    """One rule a line, also where several came as one text: as it came, and as it would stand.

    A text with a marker anywhere stays one, so that all of it is refused.
    """
    parts = [part for part in re.split(r"[\r\n]+", text) if part.strip()]
    if not parts or _foreign(text) is not None:
        parts = [text]
    return [(part, _LEAD.sub("", " ".join(part.split()))) for part in parts]


def _foreign(raw: str) -> Refusal | None:
    if holds_marker(raw) or holds_fence(raw) or _COMMENT.search(raw):
        return Refusal("marker", "it holds a region marker, a comment or a fence")
    if holds_unseen(raw):
        return Refusal("marker", "it holds control or invisible characters")
    return None


def _malformed(raw: str, line: str) -> Refusal | None:
    foreign = _foreign(raw)
    if foreign is not None:
        return foreign
    if not any(character.isalpha() for character in line):
        return Refusal("empty", "it says nothing")
    if len(line) > MAX_LINE_CHARS:
        return Refusal("too_long", f"a rule may have {MAX_LINE_CHARS} characters")
    return None


def _repeats(line: Gist, said: Sequence[Gist], running: str, similarity: float) -> bool:
    words = _words(line.folded)
    quoted = words.count(" ") > _FEWEST_WORDS and words in running
    return quoted or any(alike(line, other, similarity) for other in said)


def _bare(line: str) -> str:
    return _LEAD.sub("", line.strip())


def _words(text: str) -> str:
    """The words, folded, each between single spaces."""
    return f" {' '.join(_WORD.findall(folded(text)))} "


# -- the text ---------------------------------------------------------------------------


def _inner(kept: Sequence[str], newline: str) -> str:
    """What stands between the markers, without the line ends next to them."""
    bullets = newline.join(f"- {line}" for line in kept)
    return f"{HEADING}{newline}{newline}{bullets}" if kept else ""


def _written(document: SkillDocument, kept: Sequence[str]) -> str:
    text, newline = document.text, document.newline
    inner = _inner(kept, newline)
    between = newline + inner + newline if inner else newline
    region = document.region(MOMENTUM)
    if region is not None:
        if not kept and not text[region.inner.start : region.inner.end].strip():
            return text
        return text[: region.inner.start] + between + text[region.inner.end :]
    if not kept:
        return text
    if not text or text.endswith(newline * 2):
        gap = ""
    else:
        gap = newline if text.endswith("\n") else newline * 2
    opening, closing = MARKERS[MOMENTUM]
    return text + gap + opening + between + closing + newline


def _damage(before: SkillDocument, text: str) -> str | None:
    """What is wrong with the finished text: unsound, or changed outside the region."""
    if text == before.text:
        return None
    after = parse(text, newline=before.newline)
    if after.problems:
        return "; ".join(after.problems)
    region, old = after.region(MOMENTUM), before.region(MOMENTUM)
    if region is None:
        return "the region is lost"
    if old is None:
        sound = text[: region.span.start].startswith(before.text)
    else:
        sound = _outside(before) == _outside(after)
    if not sound or before.front != after.front or _notes(before) != _notes(after):
        return "the text outside the region would change"
    return None


def _outside(document: SkillDocument) -> tuple[str, str]:
    region = document.region(MOMENTUM)
    if region is None:
        return document.text, ""
    return document.text[: region.inner.start], document.text[region.inner.end :]


def _notes(document: SkillDocument) -> str:
    region = document.region(APPENDIX)
    return "" if region is None else document.text[region.span.start : region.span.end]
