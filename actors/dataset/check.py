"""One raw question to a ``Question``, or to every problem that it has.

Pure. Knows the facts of real files: options as a Python-list string, labels in the
options, bodies that are themselves letters, newlines and non-ASCII in the text. It
repairs nothing that could have meant something else: what is not clear is a problem.
"""

from __future__ import annotations

import ast
import re
import reprlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from actors.dataset.errors import Problem
from protocol.dataset import Question
from protocol.keys import slug

__all__ = ["check_media", "check_question", "check_together", "strip_labels"]

_LETTERS = "ABCDEFGH"
_RESERVED_CLASS = "_default"
_FEW = 5  # places that one line names
# What names a tree's file: YouTube's ids begin with - or _ too, and no id leaves its folder.
_VIDEO_ID = re.compile(r"[\w-][\w.-]{0,199}")


def strip_labels(options: Sequence[str]) -> tuple[str, ...]:
    """Bodies without ``A. ``, ``B. `` ...: only the label of an option's own position.

    Only when every option carries its own, so that the body ``A. Lincoln`` of an
    unlabelled question stays whole; ``C. B.`` becomes ``B.``, never less.
    """
    bodies = []
    for letter, option in zip(_LETTERS, options, strict=False):
        label, blank, body = option.partition(" ")
        if label != f"{letter}." or not blank or not body.strip():
            return tuple(options)
        bodies.append(body.strip())
    return tuple(bodies) if len(bodies) == len(options) else tuple(options)


def check_question(
    raw: object, where: str, n_options: tuple[int, int], problems: list[Problem]
) -> Question | None:
    """The question, or None after all its problems were added to ``problems``.

    n_options: fewest and most options that the file's format allows.
    """
    if not isinstance(raw, Mapping):
        problems.append(Problem(where, f"expected an object, got {_kind(raw)}", "write one object"))
        return None
    before = len(problems)
    question_id = _text(raw, "question_id", where, problems)
    if question_id:
        where = f"{where} ({question_id})"
    video_id = _text(raw, "video_id", where, problems)
    task_type = _text(raw, "task_type", where, problems)
    text = _text(raw, "question", where, problems)
    options = _options(raw, where, n_options, problems)
    answer = _answer(raw, len(options), where, problems)
    described = {
        key: _description(raw, key, where, problems)
        for key in ("domain", "sub_category", "duration")
    }
    for key, value in (("question_id", question_id), ("video_id", video_id)):
        _check_name(key, value, where, problems)
    _check_class(task_type, where, problems)
    if len(problems) > before:
        return None
    return Question(
        question_id=question_id,
        video_id=video_id,
        task_type=task_type,
        question=text,
        options=options,
        answer=answer,
        **described,
    )


def check_together(found: Iterable[tuple[str, Question]]) -> list[Problem]:
    """What only shows between questions: ids, class names and video descriptions that clash.

    found: the place of each question in the file, and the question.
    """
    found = list(found)
    problems: list[Problem] = []
    places: defaultdict[str, list[str]] = defaultdict(list)
    classes: defaultdict[str, set[str]] = defaultdict(set)
    categories: defaultdict[str, set[str]] = defaultdict(set)
    for where, question in found:
        places[question.question_id].append(where)
        classes[slug(question.task_type)].add(question.task_type)
        categories[question.video_id].add(question.sub_category or "none")
    for question_id, wheres in places.items():
        if len(wheres) > 1:
            what = f"question_id stands {len(wheres)} times: {_listed(wheres)}"
            problems.append(Problem(question_id, what, "keep one of them"))
    for stem, names in classes.items():
        if len(names) > 1:
            what = f"classes {sorted(names)} would share the file name {stem!r}"
            problems.append(Problem("task_type", what, "spell a class one way"))
    for video_id, named in categories.items():
        if len(named) > 1:
            what = f"sub_category differs between its questions: {sorted(named)}"
            problems.append(Problem(f"video {video_id}", what, "a video has one sub-category"))
    return problems


def check_media(found: Iterable[tuple[Question, str]]) -> list[Problem]:
    """The same video under two ids would be trained on and tested on.

    found: questions with what names their video's file (``videoID``, of YouTube).
    """
    media: defaultdict[str, set[str]] = defaultdict(set)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for question, medium in found:
        media[medium].add(question.video_id)
        names[question.video_id].add(medium)
    problems = []
    for medium, video_ids in media.items():
        if len(video_ids) > 1:
            what = f"the same video has the video_ids {_listed(sorted(video_ids))}"
            remedy = "give all questions of a video one video_id"
            problems.append(Problem(f"videoID {medium}", what, remedy))
    for video_id, mediums in names.items():
        if len(mediums) > 1:
            what = f"stands for several videos: {_listed(sorted(mediums))}"
            problems.append(Problem(f"video {video_id}", what, "give every video its own video_id"))
    return problems


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _FEW
    return ", ".join([*names[:_FEW], *([f"and {rest} more"] if rest > 0 else [])])


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__


def _text(raw: Mapping[str, object], key: str, where: str, problems: list[Problem]) -> str:
    """A field that must hold text; "" after a problem was noted."""
    if key not in raw:
        problems.append(Problem(where, f"{key} is missing", f"add {key}"))
        return ""
    value = raw[key]
    if not isinstance(value, str):
        problems.append(Problem(where, f"{key} is {_kind(value)}, not a string", f"quote {key}"))
        return ""
    if not value.strip():
        problems.append(Problem(where, f"{key} is empty", f"fill in {key}"))
        return ""
    if not _encodes(value):
        what = f"{key} holds half a surrogate pair, which is no character"
        problems.append(Problem(where, what, "save the file as UTF-8 anew from its source"))
        return ""
    return value


def _description(
    raw: Mapping[str, object], key: str, where: str, problems: list[Problem]
) -> str | None:
    if raw.get(key) is None:
        return None
    return _text(raw, key, where, problems)


def _options(
    raw: Mapping[str, object], where: str, n_options: tuple[int, int], problems: list[Problem]
) -> tuple[str, ...]:
    if "options" not in raw:
        problems.append(Problem(where, "options is missing", "add options"))
        return ()
    value = raw["options"]
    if isinstance(value, str):
        value = _literal(value)
    if not isinstance(value, list):
        what = f"options is no list but {_kind(raw['options'])}"
        problems.append(Problem(where, what, "write a list of strings"))
        return ()
    low, high = n_options
    if not low <= len(value) <= high:
        wanted = str(low) if low == high else f"{low} to {high}"
        problems.append(
            Problem(where, f"{len(value)} options, expected {wanted}", f"give {wanted} options")
        )
    texts = [option for option in value if isinstance(option, str)]
    bad = [
        index
        for index, option in enumerate(value)
        if not isinstance(option, str) or not option.strip() or not _encodes(option)
    ]
    for index in bad:
        what = f"option {index + 1} is empty or no text: {reprlib.repr(value[index])}"
        problems.append(Problem(where, what, "write the option's text"))
    return strip_labels(texts)


def _literal(text: str) -> object:
    """The value of a Python-list string; the text itself if it is none."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value


def _answer(raw: Mapping[str, object], n_options: int, where: str, problems: list[Problem]) -> str:
    answer = _text(raw, "answer", where, problems)
    allowed = _LETTERS[:n_options]
    if answer and n_options and (len(answer) != 1 or answer not in allowed):
        what = f"answer {reprlib.repr(answer)} is no letter of its {n_options} options"
        problems.append(Problem(where, what, f"use one of {', '.join(allowed)}"))
    return answer


def _check_name(key: str, value: str, where: str, problems: list[Problem]) -> None:
    """An id is a key of tables; a video's is the name of its tree's file, too."""
    if value != value.strip() or any(ord(character) < 32 for character in value):
        what = f"{key} {value!r} has outer blanks or control characters"
        problems.append(Problem(where, what, "remove them"))
    elif key == "video_id" and value and not _VIDEO_ID.fullmatch(value):
        what = f"video_id {reprlib.repr(value)} cannot be the name of its tree's file"
        remedy = "use at most 200 letters, digits, '-', '_' and '.', the first no '.'"
        problems.append(Problem(where, what, remedy))


def _check_class(task_type: str, where: str, problems: list[Problem]) -> None:
    if not task_type:
        return
    stem = slug(task_type)
    if not stem or stem == _RESERVED_CLASS or "\n" in task_type:
        what = f"task_type {task_type!r} cannot name a skill file"
        problems.append(Problem(where, what, "use a name with letters a-z or digits"))


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
