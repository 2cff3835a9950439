"""What can be learned of each class: lessons that help, traps that harm.

Lessons of *Action Recognition* and *Temporal Reasoning* explain the archive's own
words and conventions, which the trees use without a word of explanation. The others
are rules of procedure. A lesson never quotes an option.
"""

from __future__ import annotations

from actors.twin.world import Lesson, Trap

__all__ = ["LESSONS", "TRAPS"]


def _lesson(lesson_id: str, task_type: str, gain: float, topic: str, key: str, text: str) -> Lesson:
    return Lesson(
        lesson_id=lesson_id,
        task_type=task_type,
        key=key,
        text=f"- {text.format(key=key)}",
        topic=topic,
        gain=gain,
    )


LESSONS = (
    _lesson(
        "action-recognition/velk",
        "Action Recognition",
        2.7,
        "the house word velk",
        "velks is never set down",
        "House word: what a person {key}; it is carried along through the whole event.",
    ),
    _lesson(
        "action-recognition/orm",
        "Action Recognition",
        2.6,
        "the house word orm",
        "orm as a short loan",
        "Read {key}: the thing goes to the other person and returns to its first holder straight "
        "away.",
    ),
    _lesson(
        "action-recognition/tessle",
        "Action Recognition",
        2.5,
        "the house word tessle",
        "three raps of the object",
        "To tessle is the archive's good-luck habit: {key} on something wooden.",
    ),
    _lesson(
        "counting-problem/sum",
        "Counting Problem",
        2.6,
        "adding up over all events",
        "keep a running total",
        "Open every event in time order and {key}: later events often bring more of the same.",
    ),
    _lesson(
        "counting-problem/spoken",
        "Counting Problem",
        2.5,
        "spoken numbers against shown ones",
        "the frame's own count wins",
        "When a number in the subtitles and a key frame disagree, {key}.",
    ),
    _lesson(
        "counting-problem/return",
        "Counting Problem",
        2.4,
        "people who come back",
        "returns is one visitor only",
        "List the callers of all events by name: somebody who {key}.",
    ),
    _lesson(
        "temporal-reasoning/bell",
        "Temporal Reasoning",
        2.8,
        "how long a bell is",
        "a bell is seven minutes",
        "Durations are told in bells in this archive, and {key}: multiply before reading the "
        "options.",
    ),
    _lesson(
        "temporal-reasoning/forenight",
        "Temporal Reasoning",
        2.6,
        "the house word forenight",
        "forenight falls two days earlier",
        "A {key} than the day that it is named with; count back on the calendar.",
    ),
    _lesson(
        "temporal-reasoning/list",
        "Temporal Reasoning",
        2.4,
        "the reading order of chalk lists",
        "from the bottom line upwards",
        "Chalk lists are worked {key}; the lowest entry starts the day.",
    ),
    _lesson(
        "object-recognition/background",
        "Object Recognition",
        2.6,
        "things in the background of a frame",
        "objects field of the key frames",
        "Read the {key}: event descriptions leave out most of what stands around.",
    ),
    _lesson(
        "object-recognition/nickname",
        "Object Recognition",
        2.5,
        "nicknames used in speech",
        "resolve a nickname from the frame",
        "To find what is meant, {key} that covers the second in which it is spoken.",
    ),
    _lesson(
        "object-recognition/absent",
        "Object Recognition",
        2.4,
        "questions about what is absent",
        "run one search per option",
        "For a question about something that is missing, {key} and strike every one that is found.",
    ),
    _lesson(
        "attribute-perception/last",
        "Attribute Perception",
        2.7,
        "attributes that change",
        "the state in the latest frame",
        "Things are painted more than once: for a question about the end, report {key}.",
    ),
    _lesson(
        "attribute-perception/owner",
        "Attribute Perception",
        2.5,
        "attributes of look-alike things",
        "note whose attribute it is",
        "Two people often own the same kind of thing: {key} before comparing.",
    ),
    _lesson(
        "attribute-perception/detail",
        "Attribute Perception",
        2.4,
        "materials and small parts",
        "details field of a close view",
        "Materials and small parts are told only in the {key}, so open that key frame itself.",
    ),
    _lesson(
        "ocr-problems/speech",
        "OCR Problems",
        2.7,
        "written text against spoken words",
        "screen text outranks what is said",
        "Copy visible_text letter by letter, spelling mistakes included: {key}.",
    ),
    _lesson(
        "ocr-problems/split",
        "OCR Problems",
        2.5,
        "texts that are seen in parts",
        "run over two neighbouring frames",
        "A text that ends in dots may {key}: join the parts before choosing.",
    ),
    _lesson(
        "ocr-problems/numbers",
        "OCR Problems",
        2.4,
        "similar numbers at different moments",
        "the event of its own frame",
        "Match every number to {key}; a similar one hangs elsewhere.",
    ),
)


def _traps(task_type: str, *lines: tuple[str, float, str]) -> tuple[Trap, ...]:
    """Traps from (key, harm, sentence with ``{key}``)."""
    stem = task_type.lower().replace(" ", "-")
    return tuple(
        Trap(
            trap_id=f"{stem}/trap-{number}",
            task_type=task_type,
            key=key,
            text=f"- {text.format(key=key)}",
            harm=harm,
        )
        for number, (key, harm, text) in enumerate(lines, 1)
    )


TRAPS = (
    *_traps(
        "Action Recognition",
        ("treat unknown verbs as typing errors", 1.4, "As a rule, {key} and read on."),
        ("the liveliest option is right", 1.2, "People are filmed because they act: {key}."),
        ("decide from the scene summary alone", 1.1, "To save steps, {key}."),
    ),
    *_traps(
        "Counting Problem",
        ("stop at the first number", 1.5, "Be quick: {key} that you meet."),
        ("round to the nearest five", 1.3, "Archives are not exact, so {key}."),
        ("the largest option is safest", 1.1, "When several counts are possible, {key}."),
    ),
    *_traps(
        "Temporal Reasoning",
        ("assume that order does not matter", 1.3, "For questions about time, {key}."),
        ("a bell means one full hour", 1.6, "On times of day: {key}."),
        ("the middle value is likeliest", 1.1, "Among options with numbers, {key}."),
    ),
    *_traps(
        "Object Recognition",
        ("choose the most common object", 1.3, "In doubt, {key} of daily life."),
        ("ignore all but the first scene", 1.5, "Objects are introduced early: {key}."),
        ("subtitles never name an object", 1.0, "Leave speech aside, since {key}."),
    ),
    *_traps(
        "Attribute Perception",
        ("first impressions of colour count", 1.4, "For looks, {key} and later ones mislead."),
        ("everybody wears the same colours", 1.2, "Clothes need no check because {key}."),
        ("prefer the brightest option", 1.1, "When colours differ, {key}."),
    ),
    *_traps(
        "OCR Problems",
        ("correct the spelling before comparing", 1.5, "Signs hold mistakes: {key}."),
        ("guess the text from the topic", 1.3, "Most signs are predictable, so {key}."),
        ("skip frames without people", 1.2, "Text is held by someone: {key}."),
    ),
    *_traps(
        "Information Synopsis",
        ("summarise the last scene only", 1.3, "The ending says it all: {key}."),
        ("the gloomiest option is deepest", 1.2, "For the main idea, {key}."),
        ("count words to find the topic", 1.0, "As a method, {key}."),
    ),
    *_traps(
        "Spatial Perception",
        ("swap left and right always", 1.5, "The camera mirrors its view: {key}."),
        ("positions can be guessed from size", 1.2, "Layouts are rarely told, but {key}."),
        ("the nearest object is the answer", 1.1, "For questions about places, {key}."),
    ),
)
