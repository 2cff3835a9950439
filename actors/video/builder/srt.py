"""Subtitle files as cues. Pure, and tolerant: what players show is what is read.

SubRip as it is found: with and without a byte order mark, any line ends, numbers missing or
wrong, comma or dot before the milliseconds, hours left out, font tags, cues out of order,
overlapping or rolling (each cue repeats the line before it). WebVTT differs by little of that
and is read too.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence

import msgspec

from actors.video.text import clean

__all__ = ["Cue", "SubtitleError", "Subtitles", "parse_srt"]

_TIME = r"(?:(\d{1,4}):)?(\d{1,3}):(\d{1,2})(?:[,.](\d{1,6}))?"
_TIMING = re.compile(rf"^\s*{_TIME}\s*-{{1,2}}>\s*{_TIME}(?:\s.*)?$")
_NUMBER = re.compile(r"^\s*\d{1,9}\s*$")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OLD = "cp1252"


class SubtitleError(ValueError):
    """A file that cannot be read as subtitles; the message says why and what to do."""


class Cue(msgspec.Struct, frozen=True):
    """What is said from ``start_s`` to ``end_s``, without mark-up, as one line."""

    start_s: float
    end_s: float
    text: str


class Subtitles(msgspec.Struct, frozen=True):
    """All cues by time. notes: what was guessed, one sentence each."""

    cues: tuple[Cue, ...]
    notes: tuple[str, ...]


def parse_srt(data: bytes, encoding: str | None = None) -> Subtitles:
    """Read a subtitle file.

    encoding: None: by the byte order mark, else UTF-8, else Windows-1252, which a note says.

    Raises SubtitleError for a file without any cue, and for an encoding that does not fit.
    """
    text, notes = _decoded(data, encoding)
    raw = sorted(_cues(text.splitlines()), key=lambda cue: (cue[0], cue[1]))
    cues = tuple(_without_repeats(raw))
    if not raw:
        raise SubtitleError("holds no cue (a line like 00:00:01,000 --> 00:00:02,500)")
    return Subtitles(cues, tuple(notes))


def _decoded(data: bytes, encoding: str | None) -> tuple[str, list[str]]:
    if encoding is None:
        for bom, name in _BOMS:
            if data.startswith(bom):
                encoding = name
    try:
        return data.decode(encoding or "utf-8").removeprefix("\ufeff"), []
    except LookupError as error:
        raise SubtitleError(f"there is no encoding {encoding!r}") from error
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise SubtitleError(f"is not {encoding}: {error}") from error
    note = "is not UTF-8 and was read as Windows-1252; name its encoding if letters look wrong"
    return data.decode(_OLD, "replace"), [note]


_Raw = tuple[float, float, list[str]]


def _cues(lines: Sequence[str]) -> Iterator[_Raw]:
    """Start, end and clean lines of each cue, in the order of the file."""
    timings = [(place, match) for place, line in enumerate(lines) if (match := _TIMING.match(line))]
    ends = [*[place for place, _ in timings], len(lines)][1:]
    for (place, match), following in zip(timings, ends, strict=bool(timings)):
        block = list(lines[place + 1 : following])
        # The number of the next cue stands right above its times, below a blank line or nothing.
        numbered = following < len(lines) and block and _NUMBER.match(block[-1])
        if numbered and (len(block) == 1 or not block[-2].strip()):
            block.pop()
        start = _seconds(match.groups()[:4])
        end = max(start, _seconds(match.groups()[4:]))
        said = clean("\n".join(block)).splitlines()
        if said:
            yield start, end, said


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = (part or "0" for part in parts)
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    return round(whole + float(f"0.{fraction}"), 3)


def _without_repeats(raw: Sequence[_Raw]) -> Iterator[Cue]:
    """Cues as single lines. What a rolling cue repeats of the one before it is said once."""
    before: _Raw | None = None
    for start, end, said in raw:
        fresh = said
        if before is not None and start <= before[1]:
            if said == before[2] and start < before[1]:
                fresh = []
            elif len(said) > 1:
                fresh = _beyond(before[2], said)
        before = (start, max(end, before[1]) if before and not fresh else end, said)
        if fresh:
            yield Cue(start, end, " ".join(fresh))


def _beyond(before: Sequence[str], said: list[str]) -> list[str]:
    """The lines of a cue after those that the cue before it ended with."""
    for size in range(min(len(before), len(said) - 1), 0, -1):
        if list(before[-size:]) == said[:size]:
            return said[size:]
    return said
