"""Question files to questions: all of a file or folder, or an error with all that is wrong.

Four forms, told apart by what they are, not by what they are called:

    a folder          one ``<video_id>.json`` per video, a list of its questions (the owner's)
    Parquet           as the Hugging Face data set has it; needs the extra ``videomme``
    nested JSON       Video-MME's official form, one object per video
    JSON Lines        our own field names, one question a line

All give the same ``Question`` with the same ids, so the same ``dataset_fingerprint``.
Questions are never shipped and never written by this room; nothing is skipped, guessed or
cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from actors.dataset.check import check_media, check_question, check_together
from actors.dataset.errors import Problem, QuestionsError
from actors.dataset.exclude import excluded
from actors.dataset.json_forms import BOM, UTF16, Placed, decode, official, owner_folder, rows
from actors.dataset.parquet_form import MAGIC, table_rows
from protocol.dataset import Question

__all__ = ["Dataset", "load_dataset", "load_questions"]

_OFFICIAL_OPTIONS = (4, 4)
_ANY_OPTIONS = (2, 8)
_LFS = b"version https://git-lfs"
_FORMS = (
    "give Video-MME's Parquet file or nested .json, a .jsonl with one question a line, "
    "or a folder with one <video_id>.json per video"
)


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to ask, and what was left out by name.

    questions: ordered by id. excluded: sorted ids of questions that are known to be wrong.
    """

    questions: tuple[Question, ...]
    excluded: tuple[str, ...]


def load_dataset(questions: Path, exclude: Path | None, *, duration: str | None = None) -> Dataset:
    """The questions of a file or folder without those that ``exclude`` names.

    duration: only the questions of that duration class: a run trains on one of Video-MME's.

    The one way to the questions of a run, a split or a seed: all see the same ones, and
    the fingerprint of ``Dataset.questions`` changes with what is excluded.

    Raises QuestionsError with every problem of the first of the two that has any.
    """
    found = _lasting(load_questions(questions), duration, questions)
    if exclude is None:
        return Dataset(questions=found, excluded=())
    ids = excluded(found, exclude)
    out = set(ids)
    return Dataset(
        questions=tuple(question for question in found if question.question_id not in out),
        excluded=ids,
    )


def _lasting(
    questions: tuple[Question, ...], duration: str | None, path: Path
) -> tuple[Question, ...]:
    if duration is None:
        return questions
    kept = tuple(question for question in questions if question.duration == duration)
    if not kept:
        there = ", ".join(sorted({question.duration or "none" for question in questions}))
        what = f"no question has the duration {duration!r}; there are: {there}"
        raise QuestionsError(path, [Problem("data.duration", what, "name one of these, or null")])
    return kept


def load_questions(path: Path) -> tuple[Question, ...]:
    """All questions of a file or folder, ordered by question id.

    Raises QuestionsError with every problem: place, what, remedy.
    """
    problems: list[Problem] = []
    placed, n_options = _open(path, problems)
    found: list[tuple[str, Question]] = []
    media: list[tuple[Question, str]] = []
    empty = True
    for where, raw in placed:
        empty = False
        question = check_question(raw, where, n_options, problems)
        if question is not None:
            found.append((where, question))
            medium = raw.get("videoID") if isinstance(raw, Mapping) else None
            if isinstance(medium, str):
                media.append((question, medium))
    problems.extend(check_together(found))
    problems.extend(check_media(media))
    if empty and not problems:
        problems.append(Problem("file", "holds no question", "name the right file"))
    if problems:
        raise QuestionsError(path, problems)
    return tuple(sorted((q for _, q in found), key=lambda question: question.question_id))


def _open(path: Path, problems: list[Problem]) -> tuple[Iterable[Placed], tuple[int, int]]:
    """The raw questions and how many options each may have, by the form of what is there."""
    try:
        if path.is_dir():
            return owner_folder(path, problems), _ANY_OPTIONS
        data = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        remedy = "check the path (data.questions in the configuration)"
        raise QuestionsError(path, [Problem("file", what, remedy)]) from error
    if data.startswith(MAGIC):
        return table_rows(data, problems), _ANY_OPTIONS
    if data.startswith(_LFS):
        what = "is a Git LFS pointer, not the file itself"
        raise QuestionsError(path, [Problem("file", what, "fetch it: git lfs pull")])
    if data.startswith(UTF16):
        decode(data, "file", problems)
        raise QuestionsError(path, problems)
    form = _json_form(data, path.suffix.lower())
    if form == "rows":
        return rows(data, problems), _ANY_OPTIONS
    if form == "nested":
        return official(data, problems), _OFFICIAL_OPTIONS
    what = f"unknown form {path.suffix!r}" if path.suffix else "unknown form"
    raise QuestionsError(path, [Problem("file", what, _FORMS)])


def _json_form(data: bytes, suffix: str) -> str | None:
    """``rows`` or ``nested``; the name decides only where the content does not."""
    head = data.removeprefix(BOM).lstrip()[:1]
    if head in (b"[", b"{") and _first_line_is_whole(data):
        return "rows"
    if head == b"[":
        return "nested"
    if suffix == ".json":
        return "nested"
    if head == b"{" or suffix == ".jsonl":
        return "rows"
    return None


def _first_line_is_whole(data: bytes) -> bool:
    """Whether the first line is JSON by itself and another follows: JSON Lines, surely."""
    lines = (line for line in data.removeprefix(BOM).split(b"\n") if line.strip())
    first, second = next(lines, b""), next(lines, b"")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(second)
