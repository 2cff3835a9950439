"""The simulated editor as an enemy: every attack occurs, and each is what it says."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any, get_args

import msgspec
import pytest

from actors.twin.briefs import brief_of
from actors.twin.document import frozen_headings, shape_of
from actors.twin.editing import DocumentOut, EditOut, ReplyOut
from actors.twin.editor import editor_reply
from actors.twin.hostile import HUGE_CHARS, Attack, AttackKind, attack_of, kinds_for
from actors.twin.layout import body_of
from actors.twin.ranking import RankOut
from actors.twin.regions import MomentumOut, NotesOut
from actors.twin.shares import Shares
from actors.twin.wire import Reply, Turn
from tests.twin.conversations import SHARES, demo, editor_turns, entries_of, skill_of
from tests.twin.requests import (
    compact_turns,
    document_turns,
    momentum_turns,
    prompt_text,
    rank_turns,
)
from tests.twin.test_editor import COMPLAINT

TASK_TYPE = "Information Synopsis"
NAMES = [entry.row.question_id for entry in entries_of(TASK_TYPE)[:4]]
REGION = "<!-- APPENDIX_START -->\n- A note.\n<!-- APPENDIX_END -->\n"
SKILL = f"{skill_of(TASK_TYPE).rstrip()}\n\n{REGION}"
REQUESTS: dict[str, tuple[tuple[Turn, ...], type[msgspec.Struct]]] = {
    "skill": (editor_turns(SKILL, [(name, "defect") for name in NAMES]), ReplyOut),
    "rank": (rank_turns(SKILL, [("append", "", f"- Rule {n}.", n) for n in range(5)], 2), RankOut),
    "notes": (compact_turns(SKILL, ["One thing.", "Another thing."], 1), NotesOut),
    "momentum": (momentum_turns(SKILL, [(name, "persistent") for name in NAMES]), MomentumOut),
    "system": (document_turns("system", [(name, "no_answer") for name in NAMES]), DocumentOut),
    "tool": (document_turns("view_node", [(name, "failing") for name in NAMES]), DocumentOut),
}
SOUND = Shares(1.0, 0.0, 0.0, 0.0)
Json = Any  # an attack may be anything


@cache
def replies(layout: str, n: int = 300) -> dict[AttackKind, list[Reply]]:
    """All attacks of n seeds."""
    turns, _ = REQUESTS[layout]
    brief = brief_of(turns[0].text)
    sound = editor_reply(demo(), 7, SOUND, turns, None, hostile=0.0).text
    found: defaultdict[AttackKind, list[Reply]] = defaultdict(list)
    for seed in range(n):
        attack = attack_of(demo(), brief, sound, 1.0, seed)
        assert isinstance(attack, Attack)
        found[attack.kind].append(attack.reply)
    return found


@pytest.mark.parametrize("layout", REQUESTS)
def test_every_attack_of_a_layout_occurs(layout: str) -> None:
    """About equally often."""
    found = Counter({kind: len(all_of) for kind, all_of in replies(layout).items()})
    kinds = kinds_for(demo(), brief_of(REQUESTS[layout][0][0].text))
    assert set(found) == set(kinds)
    assert min(found.values()) > 300 / len(kinds) / 3


def test_every_attack_has_a_layout() -> None:
    """None is forgotten."""
    kinds = {
        k for turns, _ in REQUESTS.values() for k in kinds_for(demo(), brief_of(turns[0].text))
    }
    assert kinds == set(get_args(AttackKind))


@pytest.mark.parametrize("hostile", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("layout", REQUESTS)
def test_the_share_is_the_stated_one(layout: str, hostile: float) -> None:
    """The others are what they would be without it; equal requests, equal replies."""
    turns, _ = REQUESTS[layout]
    attacked = 0
    for seed in range(80):
        sound = editor_reply(demo(), 7, SHARES, turns, seed, hostile=0.0)
        reply = editor_reply(demo(), 7, SHARES, turns, seed, hostile=hostile)
        assert reply == editor_reply(demo(), 7, SHARES, turns, seed, hostile=hostile)
        attacked += reply != sound
    assert attacked / 80 == pytest.approx(hostile, abs=0.13)


def test_a_second_try_is_drawn_anew() -> None:
    """So that a re-ask may be answered well, or by another attack."""
    turns, _ = REQUESTS["skill"]
    again = (*turns, Turn("assistant", "?"), COMPLAINT)
    pairs = set()
    for seed in range(60):
        sound = [editor_reply(demo(), 7, SHARES, t, seed, hostile=0.0) for t in (turns, again)]
        said = [editor_reply(demo(), 7, SHARES, t, seed, hostile=0.5) for t in (turns, again)]
        pairs.add((said[0] == sound[0], said[1] == sound[1]))
    assert pairs == {(True, True), (True, False), (False, True), (False, False)}


# -- what each of them is ---------------------------------------------------------------


def texts(raw: str) -> list[str]:
    """Everything that a reply wants to have written."""
    said: Json = json.loads(raw)
    written = [edit["content"] for edit in said.get("edits", ())]
    return [*written, *said.get("notes", ()), *said.get("momentum", ())]


TEXTS: dict[str, Callable[[str], bool]] = {
    "marker_in_content": lambda text: any(
        word in text
        for word in ("APPENDIX", "MOMENTUM", "momentum", "MOMEN", "SKILL", "\uff21\uff30")
    ),
    "huge_content": lambda text: len(text) >= HUGE_CHARS,
    "empty_content": lambda text: not text.strip(" \n-"),
    "front_matter": lambda text: text.startswith("---\nname:"),
    "option_leak": lambda text: any(
        len(option.split()) >= 4 and option in text
        for entry in entries_of(TASK_TYPE)
        for option in entry.row.options
    ),
    "id_leak": lambda text: any(e.row.question_id in text for e in entries_of(TASK_TYPE)),
    "control_characters": lambda text: any(not c.isprintable() for c in text),
    "open_fence": lambda text: text.count("```") % 2 == 1 or text.count("~~~~") % 2 == 1,
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("layout", ["skill", "notes", "momentum", "system", "tool"])
def test_texts_that_must_not_be_written(layout: str, kind: AttackKind) -> None:
    """In the form of the layout, so that only what is in it can be refused."""
    for reply in replies(layout)[kind]:
        msgspec.json.decode(reply.text, type=REQUESTS[layout][1])
        assert texts(reply.text)
        assert all(TEXTS[kind](text) for text in texts(reply.text)), reply.text[:200]
        assert reply.finish == ("stop" if kind == "huge_content" else None)


@pytest.mark.parametrize("layout", ["skill", "notes", "momentum"])
def test_many_notes(layout: str) -> None:
    """Fifty of them."""
    for reply in replies(layout)["many_notes"]:
        said: Json = json.loads(reply.text)
        assert len(said.get("notes") or said["momentum"]) == 50


@pytest.mark.parametrize("layout", REQUESTS)
def test_forms_that_are_no_reply(layout: str) -> None:
    """Broken JSON, an array, an object before the reply, a reply that was cut off."""
    wanted = REQUESTS[layout][1]
    found = replies(layout)
    for reply in found["malformed_json"]:
        with pytest.raises((msgspec.DecodeError, RecursionError)):
            msgspec.json.decode(reply.text, type=wanted)
    assert all(reply.text.startswith("[") for reply in found["array"])
    for reply in found["prose_object"]:
        assert reply.text.startswith("First a thought, {")
    assert all(reply.finish == "length" for reply in found["cut_off"])
    assert len({len(reply.text) for reply in found["cut_off"]}) > 1


def edits_of(layout: str, kind: AttackKind) -> list[EditOut]:
    found = [reply.text for reply in replies(layout)[kind]]
    if layout == "skill":
        return [edit for x in found for edit in msgspec.json.decode(x, type=ReplyOut).edits]
    return [edit for x in found for edit in msgspec.json.decode(x, type=DocumentOut).edits]


@pytest.mark.parametrize("layout", ["skill", "system", "tool"])
def test_targets_that_must_not_be_touched(layout: str) -> None:
    """Across a border, at several places, at a marker, at everything."""
    text = {"skill": SKILL, "system": prompt_text("system"), "tool": prompt_text("view_node")}
    document = text[layout]
    for edit in edits_of(layout, "ambiguous_anchor"):
        assert document.count(edit.target) > 1
    for edit in edits_of(layout, "spanning_target"):
        assert document.count(edit.target) == 1
        assert "\n" in edit.target
    for edit in edits_of(layout, "marker_in_target"):
        assert TEXTS["marker_in_content"](edit.target)
    wiped = edits_of(layout, "delete_everything")
    assert {edit.op for edit in wiped} == {"delete"}
    assert any(len(edit.target) > len(document) // 2 for edit in wiped)


def test_spans_of_a_skill_reach_into_region_and_front_matter() -> None:
    """From the body into each, in one target."""
    targets = {edit.target for edit in edits_of("skill", "spanning_target")}
    assert any("<!-- APPENDIX_START" in target for target in targets)
    front = len(SKILL) - len(body_of(SKILL))
    borders = [SKILL.index(target) for target in targets]
    assert any(at < front < at + 60 for at in borders)


def test_spans_of_a_prompt_reach_into_a_frozen_section() -> None:
    """Its heading is in the middle."""
    frozen = shape_of(prompt_text("system"), frozen_headings("system")).frozen
    targets = {edit.target for edit in edits_of("system", "spanning_target")}
    assert any(line in target for target in targets for line in frozen if line.startswith("## "))


def test_numbers_out_of_range() -> None:
    """None of them is a ranking of five candidates."""
    for reply in replies("rank")["numbers_out_of_range"]:
        numbers: Json = json.loads(reply.text)["selected"]
        fit = all(type(number) is int and 1 <= number <= 5 for number in numbers)
        assert not fit or len(set(numbers)) < len(numbers)
