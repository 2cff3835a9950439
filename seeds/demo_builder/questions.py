"""Facts to one question of a class, with the places in the tree that prove its answer.

A draft's ``evidence`` names the node and the words that stand in it. ``told`` says
whether the gold option's words stand there themselves; where not, the answer is
counted, or a lesson translates what the tree says.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seeds.demo_builder.choice import draw, pick, shuffled
from seeds.demo_builder.themes import (
    COLOURS,
    DAYS,
    GREETINGS,
    HOUSE_ACTIONS,
    LETTERS,
    MATERIALS,
    NOTICES,
    PATTERNS,
    PLAIN_ACTIONS,
)
from seeds.demo_builder.trees import a, label, node_id, number_word
from seeds.demo_builder.videos import Facts, misspellings

__all__ = ["Draft", "Evidence", "draft_question"]

_BELL_MINUTES = 7
_FORENIGHT_DAYS = 2


class Evidence(msgspec.Struct, frozen=True):
    """Words that stand in a node."""

    node_id: str
    words: str


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A question before its options have their order.

    decisive: the part of the gold option that the evidence must show, "" if it is derived.
    """

    question: str
    gold: str
    wrong: tuple[str, str, str]
    evidence: tuple[Evidence, ...]
    decisive: str


def draft_question(facts: Facts, task_type: str, kind: str) -> Draft:
    """The question of a class in a video; some carry a line of introduction."""
    draft = _MAKERS[task_type](facts, kind)
    if pick(range(14), "introduced", facts.number, task_type, kind) == 0:
        text = f"The clip was filmed at {facts.venue}.\n{draft.question}"
        return msgspec.structs.replace(draft, question=text)
    return draft


def _draft(
    facts: Facts,
    question: str,
    gold: str,
    wrong: list[str],
    proof: list[tuple[str, int | None, str]],
    decisive: str = "",
) -> Draft:
    """Three of the wrong options, never one that says the same as the gold or as another."""
    seen = [gold]
    for option in wrong:
        if option not in seen:
            seen.append(option)
    if len(seen) < 4:
        raise ValueError(f"too few options in video {facts.number}: {question}")
    return Draft(
        question=question,
        gold=gold,
        wrong=(seen[1], seen[2], seen[3]),
        evidence=tuple(Evidence(node_id(facts, b, f), words) for b, f, words in proof),
        decisive=decisive,
    )


def _action(facts: Facts, kind: str) -> Draft:
    helper, thing = facts.helper.name, facts.carried
    key = ("action", facts.number)
    ordinary = [said for _, said in shuffled(PLAIN_ACTIONS, *key)]
    house = {name: said for name, (_, said) in HOUSE_ACTIONS.items()}
    if kind == "plain":
        own = facts.kinds["Action Recognition"] == "plain"
        if not own or pick((True, False), *key, "greet"):
            verb, gold = GREETINGS[facts.greeting]
            others = [said for _, said in shuffled(GREETINGS, *key, "greetings")]
            asked = f"How do {facts.host.name} and {helper} greet each other at the entrance?"
            return _draft(facts, asked, gold, others, [("arrival", 1, verb)], verb)
        told, gold = PLAIN_ACTIONS[facts.plain_action]
        asked = f"What does {helper} do with the {thing}?"
        told = told.format(thing=thing)
        return _draft(facts, asked, gold, ordinary, [("action", None, told)], told.split(" ")[0])
    proof: list[tuple[str, int | None, str]] = [("action", None, label(facts, "action"))]
    if "+" in kind:
        first, second = (house[name] for name in kind.split("+"))
        third = house["tessle"]
        pairs = [(second, first), (third, second), (first, third), (third, ordinary[0])]
        wrong = [_in_order(*pair) for pair in shuffled(pairs, *key, "pairs")]
        asked = f"Which two things does {helper} do with the {thing}, one after the other?"
        return _draft(facts, asked, _in_order(first, second), wrong, proof)
    others = [said for name, said in house.items() if name != kind]
    asked = f"What does {helper} do with the {thing}?"
    return _draft(facts, asked, house[kind], [*others, *ordinary], proof)


def _in_order(first: str, second: str) -> str:
    return f"{first[:-1]}, then {second[0].lower()}{second[1:]}"


def _counting(facts: Facts, kind: str) -> Draft:
    host, items = facts.host.name, facts.items
    first, second = facts.first_row, facts.second_row
    row = ("count", 0, f"{first} {items}")
    if kind == "return":
        met = sorted({*facts.early, *facts.late})
        total, twice = len(met), len(facts.early) + len(facts.late)
        names = [("count", None, facts.callers[i].name) for i in facts.early]
        names += [("closing", None, facts.callers[i].name) for i in facts.late]
        asked = "How many different visitors stop by in the course of the video?"
        guesses = [twice, total + 1, total - 1, total + 2, total + 3]
        return _draft(facts, asked, str(total), _numbers(guesses), list(names))
    if kind.startswith("sum"):
        total = first + second
        said = facts.spoken + second if facts.spoken else total + 1
        asked = f"How many {items} does {host} bring in the whole video?"
        guesses = [first, said, total - 1, second, total + 2]
        proof = [row, ("closing", 0, f"{second} {items}")]
        return _draft(facts, asked, str(total), _numbers(guesses), list(proof))
    asked = f"How many {items} are in the row that {host} sets out first?"
    guesses = [facts.spoken or first + 1, first - 1, first + 2, second, first + 3]
    return _draft(facts, asked, str(first), _numbers(guesses), [row], str(first))


def _numbers(values: list[int]) -> list[str]:
    return [str(value) for value in values]


def _temporal(facts: Facts, kind: str) -> Draft:
    key = ("temporal", facts.number)
    minutes = facts.bells * _BELL_MINUTES
    days = shuffled(DAYS, *key, "days")
    early = DAYS[DAYS.index(facts.day) - _FORENIGHT_DAYS]
    tens = [facts.bells * size for size in (10, 5, 15, 30, 1)]
    bells = f"{number_word(facts.bells)} bells"
    if kind == "bell":
        asked = f"How many minutes are left until {facts.deadline}, going by what is said?"
        wrong = [f"{value} minutes" for value in tens]
        return _draft(facts, asked, f"{minutes} minutes", wrong, [("talk", 0, bells)])
    if kind == "forenight":
        asked = f"On which day is the trial run for the {facts.occasion}?"
        day_before = DAYS[DAYS.index(facts.day) - 1]
        wrong = [day_before, facts.day, *days]
        wrong = [f"On {day}." for day in wrong]
        words = f"{facts.day}, the trial run on its forenight"
        return _draft(facts, asked, f"On {early}.", wrong, [("talk", 0, words)])
    if kind == "bell+forenight":
        asked = "When is the trial run, and how long does it take?"
        pairs = [(facts.day, minutes), (early, tens[0]), (facts.day, tens[0]), (days[0], minutes)]
        wrong = [f"On {day}, {value} minutes." for day, value in shuffled(pairs, *key)]
        proof = [("talk", 0, f"forenight of {facts.day}"), ("talk", 0, bells)]
        return _draft(facts, asked, f"On {early}, {minutes} minutes.", wrong, list(proof))
    if kind == "list":
        first, *others = reversed(facts.jobs)
        asked = "Which job on the chalk list is done first?"
        return _draft(facts, asked, first, others, [("talk", 0, first)], first)
    at = pick(range(len(facts.beats) - 1), *key, "after")
    now, then = facts.beats[at], facts.beats[at + 1]
    others = [beat for beat in shuffled(facts.beats, *key, "others") if beat not in (now, then)]
    asked = f"What happens directly after this: {label(facts, now)}?"
    gold = f"{label(facts, then)}."
    proof_then: list[tuple[str, int | None, str]] = [(now, None, label(facts, now))]
    proof_then.append((then, None, label(facts, then)))
    return _draft(
        facts, asked, gold, [f"{label(facts, b)}." for b in others], proof_then, gold[:-1]
    )


def _object(facts: Facts, kind: str) -> Draft:
    key = ("object", facts.number)
    helper, host = facts.helper.name, facts.host.name
    absent = [_thing(name) for name in facts.unseen]
    seen = [_thing(name) for name in facts.things]
    if kind == "background":
        gold = facts.things[1]
        asked = f"Which of these is in view while {helper} kneels before the {facts.painted}?"
        wrong = [seen[0], seen[2], *absent]
        return _draft(facts, asked, _thing(gold), wrong, [("paint", 0, gold)], gold)
    if kind == "nickname":
        gold = facts.nicknamed
        asked = f"{helper} says: “Mind the {facts.nickname}!”\nWhat is the {facts.nickname}?"
        wrong = [_thing(facts.left), _thing(facts.beside_nicknamed), seen[1]]
        proof = [("paint", 1, facts.nickname), ("paint", 1, gold)]
        return _draft(facts, asked, _thing(gold), wrong, list(proof), gold)
    if kind == "nickname+background":
        gold = facts.beside_nicknamed
        asked = f"What else is in view together with what {helper} calls the {facts.nickname}?"
        wrong = [seen[1], seen[0], *absent]
        proof = [("paint", 1, facts.nickname), ("paint", 1, gold)]
        return _draft(facts, asked, _thing(gold), wrong, list(proof), gold)
    if kind == "absent":
        asked = "Which of these things is never seen in the video?"
        shown: list[tuple[str, int | None, str]] = [
            ("arrival", 0, facts.things[0]),
            ("paint", 0, facts.things[1]),
            ("closing", 0, facts.things[2]),
        ]
        return _draft(facts, asked, absent[0], seen[:3], shown)
    gold = facts.things[3]
    asked = f"What does {helper} hand to {host} while the paint dries?"
    wrong = shuffled([seen[0], seen[1], *absent], *key)
    return _draft(facts, asked, _thing(gold), wrong, [("paint", None, gold)], gold)


def _thing(noun: str) -> str:
    """An option's body: ``A copper kettle.``, which a loader must not take for a label."""
    said = a(noun)
    return f"{said[0].upper()}{said[1:]}."


def _attribute(facts: Facts, kind: str) -> Draft:
    key = ("attribute", facts.number)
    helper = facts.helper.name
    if kind == "last":
        gold = facts.paints[2]
        asked = f"What colour is the {facts.painted} at the end of the video?"
        wrong = [facts.paints[1], facts.paints[0], *shuffled(COLOURS, *key)]
        return _draft(facts, asked, gold.capitalize(), _said(wrong), [("closing", 1, gold)], gold)
    if kind == "owner":
        gold = facts.patterns[1]
        asked = f"What pattern does {helper}'s satchel have?"
        wrong = [facts.patterns[0], *shuffled(PATTERNS, *key)]
        words = f"{helper}'s satchel is {gold}"
        return _draft(facts, asked, gold.capitalize(), _said(wrong), [("arrival", 1, words)], gold)
    if kind in ("detail", "owner+detail"):
        both = kind == "owner+detail"
        gold = facts.buckles[1] if both else facts.tag
        asked = f"What is the tag on the {facts.carried} made of?"
        words = f"tag on the {facts.carried}: made of {gold}"
        if both:
            asked = f"What is the buckle of {helper}'s satchel made of?"
            words = f"{helper}'s satchel: buckle of {gold}"
        wrong = [facts.buckles[0], facts.tag, *shuffled(MATERIALS, *key)]
        proof: list[tuple[str, int | None, str]] = [("arrival" if both else "action", 1, words)]
        return _draft(facts, asked, gold.capitalize(), _said(wrong), proof, gold)
    who = pick((facts.host, facts.helper), *key, "who")
    other = facts.helper if who is facts.host else facts.host
    asked = f"What colour is the {who.garment} that {who.name} wears?"
    wrong = [other.colour, *shuffled(COLOURS, *key)]
    words = f"{a(who.colour)} {who.garment}"
    return _draft(
        facts, asked, who.colour.capitalize(), _said(wrong), [("arrival", None, words)], who.colour
    )


def _said(words: list[str]) -> list[str]:
    return [word.capitalize() for word in words]


def _ocr(facts: Facts, kind: str) -> Draft:
    key = ("ocr", facts.number)
    if kind == "speech":
        asked = "How is the name on the board over the entrance spelled?"
        wrong = [facts.venue.upper(), *misspellings(facts.venue)]
        return _draft(facts, asked, facts.sign, wrong, [("arrival", 0, facts.sign)], facts.sign)
    if kind.startswith("split"):
        left, right = NOTICES[facts.notice]
        others = shuffled(range(len(NOTICES)), *key)
        if facts.notice_misread in others:
            others.remove(facts.notice_misread)
            others.insert(0, facts.notice_misread)
        wrong = [f"{left} {NOTICES[other][1]}" for other in others]
        asked = "What does the whole notice say?"
        proof: list[tuple[str, int | None, str]] = [("closing", 0, left), ("closing", 1, right)]
        return _draft(facts, asked, f"{left} {right}", wrong, proof)
    if kind == "numbers":
        gold, elsewhere = str(facts.doors[1]), str(facts.doors[0])
        host = facts.host.name
        asked = f"Which door number is in view while {host} sets out the {facts.items}?"
        wrong = [elsewhere, gold[0] + gold[0], elsewhere[0] + elsewhere[0]]
        return _draft(facts, asked, gold, wrong, [("count", 0, f"DOOR {gold}")], gold)
    if pick((True, False), *key, "letter"):
        asked = "Which letter is stencilled on the paint pot?"
        wrong = [f"{letter}." for letter in shuffled(LETTERS, *key)]
        words = f"the letter {facts.letter} is stencilled"
        return _draft(facts, asked, f"{facts.letter}.", wrong, [("paint", 0, words)], facts.letter)
    asked = "What is written on the board over the entrance?"
    name, year = facts.sign.rsplit(" ", 1)
    wrong = [f"{name} {int(year) + step}" for step in draw((-20, -10, -3, 5, 9, 30), 3, *key)]
    return _draft(facts, asked, facts.sign, wrong, [("arrival", 0, facts.sign)], facts.sign)


def _synopsis(facts: Facts, kind: str) -> Draft:
    host, helper, venue = facts.host.name, facts.helper.name, facts.venue
    occasions = shuffled(facts.theme.occasions, "synopsis", facts.number)
    gold = f"{host} and {helper} get {venue} ready for the {facts.occasion}."
    others = [name for name in occasions if name != facts.occasion]
    wrong = [
        f"{host} and {helper} get {venue} ready for the {others[0]}.",
        f"{host} closes {venue} for good after the {facts.occasion}.",
        f"{helper} teaches visitors how {venue} was built.",
    ]
    proof = [("arrival", 1, facts.occasion), ("count", None, facts.occasion)]
    return _draft(facts, _MAIN_TOPIC, gold, wrong, list(proof), facts.occasion)


_MAIN_TOPIC = "What is the video mainly about?"


def _spatial(facts: Facts, kind: str) -> Draft:
    side = pick(("left", "right"), "spatial", facts.number)
    gold, other = (facts.left, facts.right) if side == "left" else (facts.right, facts.left)
    asked = f"What stands to the {side} of the chalkboard?"
    wrong = [_thing(other), _thing(facts.nicknamed), _thing(facts.things[0])]
    return _draft(facts, asked, _thing(gold), wrong, [("talk", 1, f"{gold} on the {side}")], gold)


_MAKERS: dict[str, Callable[[Facts, str], Draft]] = {
    "Action Recognition": _action,
    "Counting Problem": _counting,
    "Temporal Reasoning": _temporal,
    "Object Recognition": _object,
    "Attribute Perception": _attribute,
    "OCR Problems": _ocr,
    "Information Synopsis": _synopsis,
    "Spatial Perception": _spatial,
}
