"""The facts of a video: people, things, colours, numbers, order. Text comes later.

Every video holds the material of every class. The *kind* of a class decides which
difficulty is built in (a wrong number is spoken, a word of the archive is used, the
thing is painted once more), so that a question's lesson is needed for a real reason.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec

from seeds.demo_builder.choice import digest, draw, number, pick, shuffled
from seeds.demo_builder.themes import (
    BIG_THINGS,
    COLOURS,
    DAYS,
    GARMENTS,
    GREETINGS,
    LETTERS,
    MATERIALS,
    NAMES,
    NICKNAMES,
    NOTICES,
    PATTERNS,
    PLAIN_ACTIONS,
    SMALL_THINGS,
    THEMES,
    VENUE_WORDS,
    Theme,
)

__all__ = ["N_VIDEOS", "Facts", "Person", "facts_of", "misspellings", "venues", "video_ids"]

N_VIDEOS = 120
#: Which of four callers come by early and late; the second row's sets always overlap.
_CALLERS = (((0, 1), (2,)), ((0,), (1, 2)), ((0, 1), (2, 3)))
_RETURNING = (((0, 1), (0, 2)), ((0, 1, 2), (1, 3)), ((0, 1, 2), (0, 2)), ((0,), (0, 1, 2)))
_MIDDLE = ("count", "action", "talk", "paint")


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody, and the one piece of clothing that is told of them."""

    name: str
    colour: str
    garment: str


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is true in one video.

    beats: the events in order, by name. scenes: how many events each scene has.
    kinds: for each class the difficulty built in, ``plain`` or lesson names joined by ``+``.
    spoken: the wrong number said of the first row, 0 if none is said.
    paints: colour before, after the coat, at the end.
    """

    number: int
    video_id: str
    theme: Theme
    venue: str
    sign: str
    kinds: Mapping[str, str]
    host: Person
    helper: Person
    callers: tuple[Person, ...]
    early: tuple[int, ...]
    late: tuple[int, ...]
    beats: tuple[str, ...]
    scenes: tuple[int, ...]
    places: tuple[str, ...]
    greeting: int
    items: str
    first_row: int
    second_row: int
    spoken: int
    carried: str
    plain_action: int
    painted: str
    paints: tuple[str, str, str]
    occasion: str
    jobs: tuple[str, ...]
    deadline: str
    bells: int
    day: str
    nickname: str
    nicknamed: str
    beside_nicknamed: str
    left: str
    right: str
    things: tuple[str, ...]
    unseen: tuple[str, ...]
    patterns: tuple[str, str]
    buckles: tuple[str, str]
    tag: str
    doors: tuple[int, int]
    letter: str
    notice: int
    notice_misread: int

    def place_of(self, beat: str) -> str:
        """Where an event plays."""
        at = self.beats.index(beat)
        for scene, size in enumerate(self.scenes):
            if at < size:
                return self.places[scene]
            at -= size
        raise ValueError(f"{beat} lies in no scene of video {self.number}")


def video_ids() -> tuple[str, ...]:
    """One id per video, eleven characters as YouTube's; a few begin with ``-`` or ``_``."""
    ids = []
    for index in range(N_VIDEOS):
        body = base64.urlsafe_b64encode(digest("video", index)).decode()[:11]
        first = {17: "-", 58: "-", 93: "-", 29: "_", 71: "_", 110: "_"}.get(index, body[0])
        ids.append((first if first in "-_" else first.replace("-", "m")) + body[1:])
    return tuple(ids)


def venues() -> tuple[tuple[Theme, str], ...]:
    """Theme and proper name of each video's venue: every pair once."""
    pairs = [(theme, f"{word} {theme.venue}") for theme in THEMES for word in VENUE_WORDS]
    return tuple(shuffled(pairs, "venues"))


def misspellings(name: str) -> tuple[str, str, str]:
    """Three different wrong spellings, in capitals, of a name whose first word has 5+ letters."""
    word, rest = name.upper().split(" ", 1)
    doubled = word[:3] + word[2] + word[3:]
    dropped = word[:3] + word[4:]
    turned = word[:2] + word[3] + word[2] + word[4:]
    return (f"{doubled} {rest}", f"{dropped} {rest}", f"{turned} {rest}")


def facts_of(index: int, video_id: str, kinds: Mapping[str, str]) -> Facts:
    """Draw the facts of the video at ``index`` (from 0) under the wanted kinds."""
    key = ("facts", index)
    theme, venue = venues()[index]
    names = draw(NAMES, 6, *key, "names")
    colours = draw(COLOURS, 6, *key, "colours")
    people = tuple(
        Person(name=name, colour=colour, garment=pick(GARMENTS, *key, "garment", name))
        for name, colour in zip(names, colours, strict=True)
    )
    small = draw(SMALL_THINGS, 9, *key, "small")
    big = draw(BIG_THINGS, 3, *key, "big")
    first_row = number(3, 9, *key, "first row")
    counting, ocr = kinds["Counting Problem"], kinds["OCR Problems"]
    callers = _RETURNING if counting == "return" else _CALLERS
    early, late = pick(callers, *key, "callers")
    paints = draw(COLOURS, 3, *key, "paints")
    middle = shuffled(_MIDDLE + (("tea",) if index % 3 == 0 else ()), *key, "beats")
    scenes = ((2, 3, 2) if index % 2 else (3, 2, 2)) if len(middle) == 5 else (
        (2, 2, 2) if index % 2 else (3, 3)
    )  # fmt: skip
    door = number(1, 8, *key, "door")
    other = 1 + (door + number(0, 6, *key, "door'")) % 9
    notice, misread = draw(range(len(NOTICES)), 2, *key, "notices")
    return Facts(
        number=index + 1,
        video_id=video_id,
        theme=theme,
        venue=venue,
        sign=misspellings(venue)[number(0, 2, *key, "sign")]
        if ocr == "speech"
        else f"{venue.upper()}, EST. {number(1871, 1964, *key, 'sign')}",
        kinds=kinds,
        host=people[0],
        helper=people[1],
        callers=people[2:],
        early=early,
        late=late,
        beats=("arrival", *middle, "closing"),
        scenes=scenes,
        places=tuple(draw(theme.places, len(scenes), *key, "places")),
        greeting=number(0, len(GREETINGS) - 1, *key, "greeting"),
        items=pick(theme.items, *key, "items"),
        first_row=first_row,
        second_row=2 + (first_row + number(0, 3, *key, "second row")) % 5,
        spoken=first_row + pick((-1, 1, 2), *key, "spoken") if "spoken" in counting else 0,
        carried=pick(theme.carried, *key, "carried"),
        plain_action=number(0, len(PLAIN_ACTIONS) - 1, *key, "action"),
        painted=pick(theme.painted, *key, "painted"),
        paints=(paints[0], paints[1], paints[2])
        if kinds["Attribute Perception"] == "last"
        else (paints[0], paints[1], paints[1]),
        occasion=pick(theme.occasions, *key, "occasion"),
        jobs=tuple(draw(theme.jobs, 4, *key, "jobs")),
        deadline=pick(theme.deadlines, *key, "deadline"),
        bells=number(2, 9, *key, "bells"),
        day=pick(DAYS, *key, "day"),
        nickname=pick(NICKNAMES, *key, "nickname"),
        nicknamed=big[0],
        beside_nicknamed=small[0],
        left=big[1],
        right=big[2],
        things=tuple(small[1:5]),
        unseen=tuple(small[5:]),
        patterns=_two(PATTERNS, *key, "patterns"),
        buckles=_two(MATERIALS, *key, "buckles"),
        tag=pick(MATERIALS, *key, "tag"),
        doors=(10 * door + other, 10 * other + door),
        letter=pick(LETTERS, *key, "letter"),
        notice=notice,
        notice_misread=misread,
    )


def _two(items: tuple[str, ...], *key: object) -> tuple[str, str]:
    first, second = draw(items, 2, *key)
    return first, second
