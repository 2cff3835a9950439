"""Search for an edit that touches a protected byte: a million hostile edits in some minutes.

    python -m tests.fuzz.patch_engine --edits 1000000 --seed 1

What must hold is read off the way the documents were made, not off the parser. Ends with the
counter-example at the first thing that does not hold; else prints how often each status came up.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from typing import get_args

from rich.markdown import Markdown

from actors.evolver.document import validate
from actors.evolver.patch import Limits, Patched, apply_edits, undo
from protocol.evolver import Edit, EditStatus
from tests.fuzz.hostile import FROZEN_TITLES, LITERALS, Hostile, hostile_document, hostile_edit

__all__ = ["check", "main", "search"]

_STATUSES = frozenset(get_args(EditStatus))
_NAME = re.compile(r"(?:appendix|momentum)_(?:start|end)", re.IGNORECASE)
_UNSEEN = re.compile("[\u0300-\u036f\u200b-\u200f\u2060-\u2064\ufeff\\\\\x00]")
_HEADING = re.compile(r" {0,3}#|(?:[ \t]*[^ \t\r\n][^\n]*\n)+? {0,3}(?:=+|-+)[ \t]*\r?(?:\n|\Z)")
_PATCHES = 12  # tried on each document


def check(
    document: Hostile, edits: list[Edit], limits: Limits, *, rendered: bool = False
) -> Patched:
    """Apply the edits and hold the result against what must be true of it.

    rendered: ask another reader of Markdown too whether the frozen headings still are headings.
    Raises AssertionError with the counter-example.
    """
    text = document.text
    patched = _apply(text, edits, limits)
    after = patched.text
    case = _Case(document, edits, after, patched)
    assert [id(report.edit) for report in patched.reports] == [id(edit) for edit in edits], case
    assert {report.status for report in patched.reports} <= _STATUSES, case
    assert patched.applied == len(patched.inverse) <= limits.edits, case
    assert undo(after, patched.inverse) == text, case
    if not document.sound:
        assert after == text, case
        assert all(report.status == "protected" for report in patched.reports), case
        return patched
    if not patched.applied:
        assert after == text, case
        assert not any(r.detail and r.detail in validate(text) for r in patched.reports), case
        return patched
    assert not validate(after), case
    assert after.startswith(document.front), case
    assert after.endswith(document.tail), case
    assert len(after) >= len(document.front) + len(document.tail), case
    body = after[len(document.front) : len(after) - len(document.tail)]
    _check_body(document, body, limits, case)
    _check_edits(document, patched, limits, case)
    if rendered:
        lost = _headings(document.body) - _headings(body)
        assert all(_lines(body, title) < _lines(document.body, title) for _, title in lost), case
    return patched


class _Case:
    """A counter-example, written out only when it is one."""

    def __init__(self, *parts: object) -> None:
        self._parts = parts

    def __str__(self) -> str:
        return "\n".join(map(repr, self._parts))


def _apply(text: str, edits: list[Edit], limits: Limits) -> Patched:
    return apply_edits(text, edits, limits, screen=lambda _: None, frozen_headings=FROZEN_TITLES)


def _check_body(document: Hostile, body: str, limits: Limits, case: _Case) -> None:
    """Frozen sections, markers, budget and line ends."""
    position = 0
    for section in document.frozen:
        behind = document.body[document.body.index(section) + len(section) :].split("\n")[0]
        place = body.find(section, position)
        while place >= 0 and not _stands(body, place, section, behind):
            place = body.find(section, place + 1)
        assert place >= 0, case
        position = place + len(section)
    for literal in LITERALS:
        assert literal not in body, case
    assert not _NAME.search(_UNSEEN.sub("", body)), case
    grown = int(len(document.body) * limits.max_growth)
    if not document.body.strip():
        grown = limits.max_chars
    assert len(body) <= max(
        len(document.body), min(limits.max_chars, len(document.body) + grown)
    ), case
    if document.body.count("\n") and document.text.count("\n") == document.text.count("\r\n"):
        assert body.count("\n") == body.count("\r\n"), case


def _stands(body: str, place: int, section: str, behind: str) -> bool:
    """Whether a frozen section stands there, and nothing was added to it: the body ends, another
    section begins, or the line that always followed."""
    rest = body[place + len(section) :]
    if place > 0 and body[place - 1] != "\n":
        return False
    return not rest.strip() or rest.split("\n")[0] == behind or bool(_HEADING.match(rest))


def _check_edits(document: Hostile, patched: Patched, limits: Limits, case: _Case) -> None:
    """No marker got in, what was refused had no part in the result, no edit applies twice."""
    edits = [report.edit for report in patched.reports if report.status == "applied"]
    for edit in edits:
        assert not _NAME.search(_UNSEEN.sub("", edit.target + " " + edit.content)), case
    assert _apply(patched.text, edits[-1:], limits).text == patched.text, case
    if len(edits) < len(patched.reports):
        again = _apply(document.text, edits, limits)
        assert again.text == patched.text, case
        assert again.applied == len(edits), case
    first = patched.reports[0].edit
    if edits[0] is first and first.op != "append" and document.text.isascii():
        assert "\r" in document.text or len(_places(document.body, first.target)) == 1, case


def _places(body: str, target: str) -> list[int]:
    target = target.replace("\r\n", "\n").replace("\r", "\n")
    return [n for n in range(len(body)) if body.startswith(target, n)]


def _headings(body: str) -> Counter[tuple[str, str]]:
    """The headings as a CommonMark parser sees them."""
    tokens = Markdown(body).parsed
    return Counter(
        (token.tag, tokens[n + 1].content)
        for n, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    )


def _lines(body: str, title: str) -> int:
    """The lines that are written as a heading of that title, wherever they stand."""
    lines = (line.strip() for line in body.split("\n"))
    return sum(line.startswith("#") and line.strip("# \t") == title for line in lines)


def search(n_edits: int, seed: int, rendered_every: int = 50) -> dict[str, int]:
    """Try ``n_edits`` hostile edits; how often each status came up."""
    rng = random.Random(seed)
    counts: dict[str, int] = {}
    tried = patches = 0
    while tried < n_edits:
        document = hostile_document(rng)
        if not document.sound:
            assert validate(document.text), document
        for _ in range(_PATCHES):
            edits: list[Edit] = []
            for _ in range(rng.choice((1, 1, 2, 3, 6))):
                edits.append(hostile_edit(rng, document, edits))
            limits = Limits(
                rng.choice((9, 9, 9, 2, 0)),
                rng.choice((60, 40_000, 40_000)),
                rng.choice((0.5, 99.0)),
            )
            patches += 1
            patched = check(document, edits, limits, rendered=patches % rendered_every == 0)
            for report in patched.reports:
                counts[report.status] = counts.get(report.status, 0) + 1
            tried += len(edits)
    return counts


def main() -> None:
    """Search, and print the counts."""
    parser = argparse.ArgumentParser(description="Fuzz the patch engine.")
    parser.add_argument("--edits", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begun = time.perf_counter()
    counts = search(options.edits, options.seed)
    seconds = time.perf_counter() - begun
    print(f"{sum(counts.values())} edits in {seconds:.0f} s, seed {options.seed}: nothing found")
    for status, count in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"  {status:18} {count}")


if __name__ == "__main__":
    main()
