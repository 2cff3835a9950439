"""What the system prompt and two tool prompts can be taught: lessons, traps, lines without effect.

They hold for every class, so no lesson speaks of a kind of question. None of their keys stands
in the first documents.
"""

from __future__ import annotations

from collections.abc import Mapping

from actors.twin.world import Filler, Lesson, Trap

__all__ = ["PROMPT_FILLERS", "PROMPT_LESSONS", "PROMPT_NEEDS", "PROMPT_TRAPS"]

_SYSTEM, _VIEW, _SEARCH = "system", "view_node", "search_similar"


def _lesson(document: str, name: str, gain: float, topic: str, key: str, text: str) -> Lesson:
    return Lesson(
        lesson_id=f"{document}/{name}",
        task_type="",
        key=key,
        text=f"- {text.format(key=key)}",
        topic=topic,
        gain=gain,
        document=document,
    )


PROMPT_LESSONS = (
    _lesson(
        _SYSTEM,
        "condition",
        2.0,
        "the condition that a question sets",
        "repeat the question's condition in the thought",
        "Before each step, {key} and drop what does not meet it.",
    ),
    _lesson(
        _SYSTEM,
        "second-node",
        2.0,
        "facts that were seen once only",
        "confirm the fact in a second node",
        "Before you submit, {key} while steps are left.",
    ),
    _lesson(
        _VIEW,
        "siblings",
        2.0,
        "children that were never opened",
        "open every child that the line leaves vague",
        "When a card only hints at the fact, {key} before you leave the node.",
    ),
    _lesson(
        _SEARCH,
        "one-noun",
        2.0,
        "queries of many words",
        "send one noun at a time",
        "A long query matches everything a little: {key} and compare the lists.",
    ),
)

#: How many questions hang on each lesson as well, of those that hang on one lesson of their class.
PROMPT_NEEDS: Mapping[str, int] = {
    "system/condition": 40,
    "system/second-node": 40,
    "view_node/siblings": 28,
    "search_similar/one-noun": 28,
}


def _traps(document: str, *lines: tuple[str, float, str]) -> tuple[Trap, ...]:
    """Traps from (key, harm, sentence with ``{key}``).

    Milder than a skill's: they harm the questions of every class, and all of them together.
    """
    return tuple(
        Trap(
            trap_id=f"{document}/trap-{number}",
            task_type="",
            key=key,
            text=f"- {text.format(key=key)}",
            harm=harm,
            document=document,
        )
        for number, (key, harm, text) in enumerate(lines, 1)
    )


PROMPT_TRAPS = (
    *_traps(
        _SYSTEM,
        ("submit after the first observation", 0.5, "Steps are dear: {key}."),
        ("the longest option is the right one", 0.45, "Authors explain what is true: {key}."),
        ("never change your first opinion", 0.4, "Doubt wastes steps, so {key}."),
    ),
    *_traps(
        _VIEW,
        ("open scenes only and never frames", 0.4, "Scenes tell enough: {key}."),
        ("guess what the children hold", 0.35, "To save a step, {key} from their numbers."),
    ),
    *_traps(
        _SEARCH,
        ("paste the whole question as the query", 0.35, "More words find more: {key}."),
        ("trust the first hit unread", 0.45, "The list is ordered well: {key}."),
    ),
)

_LINES = {
    _SYSTEM: (
        "Write the thought in the present tense.",
        "Name the node that you rely on by its whole id.",
        "Keep the order of the options in mind as they are listed.",
        "Say in the thought how many steps you have used.",
        "Use plain words for what you have found.",
        "Treat every video as new.",
        "A short reply is as good as a long one.",
        "Quote a card in its own words.",
    ),
    _VIEW: (
        "Write down the time range of what you opened.",
        "The subtitle below a card belongs to the same seconds.",
        "A node without a subtitle is silent.",
        "Fields of a card may stand in any order.",
        "Note the level of the node in the thought.",
        "Read the card before the list of children.",
    ),
    _SEARCH: (
        "Write the query in small letters.",
        "A query has no need of punctuation.",
        "Note which query brought the hit.",
        "The default number of hits is mostly enough.",
        "Singular and plural find the same cards.",
        "Keep the query in the language of the cards.",
    ),
}

PROMPT_FILLERS = tuple(
    Filler(task_type="", text=f"- {line}", document=document)
    for document, lines in _LINES.items()
    for line in lines
)
