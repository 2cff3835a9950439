"""Facts to a video tree in the owner's format: scenes, events, two key frames each.

The tree tells a house word or a house convention but never explains it: that is for
the skills to know.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from seeds.demo_builder.choice import number, pick
from seeds.demo_builder.themes import GREETINGS, HOUSE_ACTIONS, NOTICES, PLAIN_ACTIONS
from seeds.demo_builder.videos import Facts, Person

__all__ = ["Node", "Tree", "a", "build_tree", "encode_tree", "label", "node_id", "number_word"]

Card = dict[str, str | list[str]]
_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
_LIGHT = ("soft morning light", "hard midday sun", "grey, even light", "low evening sun")


class Node(msgspec.Struct, frozen=True):
    """One node as the file has it."""

    level: int
    time_range: tuple[int, int]
    card: Card
    subtitle: str
    children_ids: list[str]


class Tree(msgspec.Struct, frozen=True):
    """One file; the nodes are in depth-first order."""

    video_id: str
    duration_seconds: int
    domain: str
    nodes: dict[str, Node]


class _Frame(msgspec.Struct, frozen=True):
    card: Card
    subtitle: str


def a(noun: str) -> str:
    """The noun with its indefinite article."""
    vowel = noun[0] in "aeiou" or noun.startswith("hour")
    return f"{'an' if vowel else 'a'} {noun}"


def number_word(value: int) -> str:
    """A small number as English says it."""
    return _WORDS[value]


def label(facts: Facts, beat: str) -> str:
    """An event in a clause, without a full stop; it stands verbatim in the event's node."""
    host, helper = facts.host.name, facts.helper.name
    return {
        "arrival": f"{host} meets {helper} at the entrance",
        "count": f"{host} sets out the {facts.items}",
        "action": f"{helper} {_deed(facts)}",
        "talk": f"{helper} and {host} talk at the chalkboard",
        "paint": f"{helper} paints the {facts.painted}",
        "tea": f"{host} and {helper} share a pot of tea",
        "closing": f"{host} brings more {facts.items}",
    }[beat]


def node_id(facts: Facts, beat: str, frame: int | None = None) -> str:
    """The id of an event's node, or of one of its two key frames (0 or 1)."""
    at = facts.beats.index(beat)
    level, index = (2, at) if frame is None else (3, 2 * at + frame)
    return f"{facts.video_id}_L{level}_{index:03d}"


def build_tree(facts: Facts) -> Tree:
    """Lay the events out in time and write every node."""
    nodes: dict[str, Node] = {}
    beats = iter(facts.beats)
    clock = 0
    for scene, size in enumerate(facts.scenes):
        inside = [next(beats) for _ in range(size)]
        began = clock
        events: dict[str, Node] = {}
        for beat in inside:
            lasts = number(38, 76, "lasts", facts.number, beat)
            events |= dict(_event(facts, beat, clock, clock + lasts))
            clock += lasts
        nodes[f"{facts.video_id}_L1_{scene:03d}"] = Node(
            1,
            (began, clock),
            _scene_card(facts, scene, inside),
            "",
            [node_id(facts, beat) for beat in inside],
        )
        nodes |= events
    return Tree(facts.video_id, clock, facts.theme.domain, nodes)


def encode_tree(tree: Tree) -> bytes:
    """The file's bytes: one node a line."""
    encode = msgspec.json.encode
    lines = [encode(name) + b": " + encode(node) for name, node in tree.nodes.items()]
    head = b", ".join(
        encode(name) + b": " + encode(value)
        for name, value in (
            ("videoID", tree.video_id),
            ("duration_category", "medium"),
            ("duration_seconds", float(tree.duration_seconds)),
            ("domain", tree.domain),
        )
    )
    return b"{" + head + b', "nodes": {\n' + b",\n".join(lines) + b"\n}}\n"


def _scene_card(facts: Facts, scene: int, beats: list[str]) -> Card:
    place = facts.places[scene]
    told = ". ".join(label(facts, beat) for beat in beats)
    people = [facts.host.name, facts.helper.name]
    for beat in beats:
        people += [who.name for who in _callers(facts, beat) if who.name not in people]
    return {
        "scene_summary": f"At {facts.venue}, {place}. {told}.",
        "location": place,
        "people": people,
        "light": pick(_LIGHT, "light", facts.number, scene),
    }


def _event(facts: Facts, beat: str, start: int, end: int) -> Iterator[tuple[str, Node]]:
    frames = _FRAMES[beat](facts)
    ids = [node_id(facts, beat, which) for which in (0, 1)]
    spoken = " ".join(frame.subtitle for frame in frames if frame.subtitle)
    callers = _callers(facts, beat)
    card: Card = {
        "event_description": f"{label(facts, beat)}. {_more(facts, beat)}".strip(),
        "people": [facts.host.name, facts.helper.name, *(who.name for who in callers)],
        "location": facts.place_of(beat),
    }
    yield node_id(facts, beat), Node(2, (start, end), card, spoken, ids)
    middle = (start + end) // 2
    for name, frame, span in zip(ids, frames, ((start, middle), (middle, end)), strict=True):
        yield name, Node(3, span, frame.card, frame.subtitle, [])


def _callers(facts: Facts, beat: str) -> tuple[Person, ...]:
    indexes = {"count": facts.early, "closing": facts.late}.get(beat, ())
    return tuple(facts.callers[index] for index in indexes)


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _dressed(person: Person) -> str:
    return f"{person.name} in {a(person.colour)} {person.garment}"


def _deed(facts: Facts) -> str:
    kind = facts.kinds["Action Recognition"]
    fill = {"thing": facts.carried, "other": facts.host.name}
    if kind == "plain":
        return PLAIN_ACTIONS[facts.plain_action][0].format(**fill)
    first, *rest = kind.split("+")
    said = HOUSE_ACTIONS[first][0].format(**fill)
    fill["thing"] = "same thing"
    for name in rest:
        said += f" and then {HOUSE_ACTIONS[name][0].format(**fill)}"
    return said


def _more(facts: Facts, beat: str) -> str:
    host, helper = facts.host, facts.helper
    callers = _and([who.name for who in _callers(facts, beat)] or [""])
    return {
        "arrival": f"{host.name} wears {a(host.colour)} {host.garment}, {helper.name} "
        f"{a(helper.colour)} {helper.garment}.",
        "count": f"They are for the {facts.occasion}. Visitors who stop by: {callers}.",
        "action": f"{host.name} is close by.",
        "talk": f"The talk is about the {facts.occasion} and the work that is left.",
        "paint": f"It was {facts.paints[0]} before and gets a coat of {facts.paints[1]}. While "
        f"the paint dries, {helper.name} hands {host.name} {a(facts.things[3])}.",
        "tea": "Both sit down on the steps for a while.",
        "closing": f"They join the first ones. Visitors who stop by: {callers}.",
    }[beat]


def _arrival(facts: Facts) -> list[_Frame]:
    host, helper, (left, right) = facts.host.name, facts.helper.name, facts.patterns
    texts = [facts.sign]
    if facts.kinds["OCR Problems"] == "numbers":
        texts.append(f"DOOR {facts.doors[0]}")
    board: Card = {
        "frame_summary": f"A painted board hangs over the entrance; {a(facts.things[0])} stands "
        "below it.",
        "objects": ["painted board", facts.things[0]],
        "visible_text": texts,
    }
    bags: Card = {
        "frame_summary": f"{host} and {helper} {GREETINGS[facts.greeting][0]}. {host}'s satchel "
        f"is {left}, {helper}'s satchel is {right}.",
        "objects": ["two satchels"],
        "details": [
            f"{host}'s satchel: buckle of {facts.buckles[0]}",
            f"{helper}'s satchel: buckle of {facts.buckles[1]}",
        ],
    }
    return [
        _Frame(board, f"{host}: Is this {facts.venue}?"),
        _Frame(bags, f"{helper}: It is! The {facts.occasion} is not far off, so come in."),
    ]


def _count(facts: Facts) -> list[_Frame]:
    host, many = facts.host.name, facts.first_row
    row: Card = {
        "frame_summary": f"{number_word(many).capitalize()} {facts.items} form a row.",
        "objects": [f"{many} {facts.items}", "trestle table"],
    }
    if facts.kinds["OCR Problems"] == "numbers":
        row["visible_text"] = [f"DOOR {facts.doors[1]}"]
    visit: Card = {
        "frame_summary": f"{_and([_dressed(who) for who in _callers(facts, 'count')])} "
        f"{'looks' if len(facts.early) == 1 else 'look'} at the {facts.items}.",
        "objects": [facts.items, "trestle table"],
    }
    said = "Careful with the first one."
    if facts.spoken:
        said = f"There, all {number_word(facts.spoken)} {facts.items}, in a row."
    return [_Frame(row, f"{host}: {said}"), _Frame(visit, "")]


def _action(facts: Facts) -> list[_Frame]:
    helper, host, thing = facts.helper.name, facts.host.name, facts.carried
    near: Card = {
        "frame_summary": f"{helper} and {host}, with the {thing} between them.",
        "objects": [thing],
    }
    close: Card = {
        "frame_summary": f"A close view of the {thing}.",
        "objects": [thing],
        "details": [f"tag on the {thing}: made of {facts.tag}"],
    }
    return [_Frame(near, f"{host}: You have done that before."), _Frame(close, "")]


def _talk(facts: Facts) -> list[_Frame]:
    helper, host = facts.helper.name, facts.host.name
    board: Card = {
        "frame_summary": "A chalk list of four jobs, one under the other.",
        "objects": ["chalkboard"],
        "visible_text": list(facts.jobs),
    }
    wide: Card = {
        "frame_summary": f"{helper} and {host} step back from the chalkboard.",
        "objects": [facts.left, "chalkboard", facts.right],
        "layout": f"{facts.left} on the left, chalkboard in the middle, {facts.right} on the right",
    }
    many = number_word(facts.bells)
    said, reply = {
        "bell": (f"Listen, {facts.deadline} in {many} bells.", "Then we must be quick."),
        "forenight": (
            f"The {facts.occasion} is on {facts.day}, the trial run on its forenight.",
            "I will be there.",
        ),
        "list": ("We do one job after the other, the way our list goes.", "All four today?"),
        "bell+forenight": (
            f"The trial run is on the forenight of {facts.day} and takes {many} bells.",
            "I will be there.",
        ),
        "plain": ("It all goes well so far.", "We are even a little early."),
    }[facts.kinds["Temporal Reasoning"]]
    return [_Frame(board, f"{helper}: {said}"), _Frame(wide, f"{host}: {reply}")]


def _paint(facts: Facts) -> list[_Frame]:
    helper = facts.helper.name
    work: Card = {
        "frame_summary": f"{helper} kneels before the {facts.painted} with a brush.",
        "objects": [facts.painted, "paint pot", facts.things[1]],
    }
    if facts.kinds["OCR Problems"] == "plain":
        work["visible_text"] = [facts.letter]
        work["details"] = [f"the letter {facts.letter} is stencilled on the paint pot"]
    steady: Card = {
        "frame_summary": f"{helper} steadies the {facts.nicknamed} with one hand.",
        "objects": [facts.nicknamed, facts.beside_nicknamed],
    }
    return [
        _Frame(work, ""),
        _Frame(steady, f"{helper}: Mind the {facts.nickname}, or we will both be sorry!"),
    ]


def _tea(facts: Facts) -> list[_Frame]:
    host, helper = facts.host.name, facts.helper.name
    pour: Card = {"frame_summary": f"{host} pours, {helper} laughs.", "objects": ["pot of tea"]}
    rest: Card = {"frame_summary": "Steam rises from two cups.", "objects": ["two cups"]}
    return [_Frame(pour, f"{host}: The best tea in town."), _Frame(rest, "")]


def _closing(facts: Facts) -> list[_Frame]:
    helper, more = facts.helper.name, facts.second_row
    row: Card = {
        "frame_summary": f"{number_word(more).capitalize()} more {facts.items} are by the wall; "
        f"{_and([who.name for who in _callers(facts, 'closing')])} "
        f"{'helps' if len(facts.late) == 1 else 'help'}.",
        "objects": [f"{more} {facts.items}", facts.things[2]],
    }
    coat = "after one more coat" if facts.paints[1] != facts.paints[2] else "dry at last"
    last: Card = {
        "frame_summary": f"A last look at the {facts.painted}: {facts.paints[2]}, {coat}.",
        "objects": [facts.painted],
    }
    said = "Now everything is in its place."
    kind = facts.kinds["OCR Problems"]
    if "split" in kind:
        row["visible_text"], last["visible_text"] = (
            [f"{NOTICES[facts.notice][0]} …"],
            [f"… {NOTICES[facts.notice][1]}"],
        )
    if kind == "split+speech":
        wrong = f"{NOTICES[facts.notice][0]} {NOTICES[facts.notice_misread][1]}".lower()
        said = f"Look at the notice: {wrong}."
    return [_Frame(row, ""), _Frame(last, f"{helper}: {said}")]


_FRAMES = {
    "arrival": _arrival,
    "count": _count,
    "action": _action,
    "talk": _talk,
    "paint": _paint,
    "tea": _tea,
    "closing": _closing,
}
