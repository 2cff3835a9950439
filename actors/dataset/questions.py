"""Question files to questions: all of a file, or an error with all that is wrong in it.

Two forms: our JSONL (one object a line) and the official nested JSON of Video-MME
(one object per video, its template has trailing commas). Questions are never
shipped and never written by this room; nothing is skipped, guessed or cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from actors.dataset.check import check_question, check_together
from actors.dataset.errors import Problem, QuestionsError
from protocol.dataset import Question

__all__ = ["load_questions"]

_OFFICIAL_OPTIONS = (4, 4)
_JSONL_OPTIONS = (2, 8)
# a string is matched first, so that a comma inside one is never touched
_STRING_OR_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=\s*[\]}])', re.DOTALL)
_BOM = b"\xef\xbb\xbf"

Placed = tuple[str, object]


def load_questions(path: Path) -> tuple[Question, ...]:
    """The questions of a ``.jsonl`` or ``.json`` file, ordered by question id.

    Raises QuestionsError with every problem of the file: place, what, remedy.
    """
    problems: list[Problem] = []
    data = _read(path).removeprefix(_BOM)
    if path.suffix == ".jsonl":
        placed, n_options = _jsonl(data, problems), _JSONL_OPTIONS
    elif path.suffix == ".json":
        placed, n_options = _official(data, problems), _OFFICIAL_OPTIONS
    else:
        wanted = "give a .jsonl file (one object a line) or Video-MME's nested .json"
        raise QuestionsError(path, [Problem("file name", f"unknown form {path.suffix!r}", wanted)])
    found: list[tuple[str, Question]] = []
    for where, raw in placed:
        question = check_question(raw, where, n_options, problems)
        if question is not None:
            found.append((where, question))
    problems.extend(check_together(found))
    if not found and not problems:
        problems.append(Problem("file", "holds no question", "name the right file"))
    if problems:
        raise QuestionsError(path, problems)
    return tuple(sorted((q for _, q in found), key=lambda question: question.question_id))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        remedy = "check data.questions in the configuration"
        raise QuestionsError(path, [Problem("file", what, remedy)]) from error


def _jsonl(data: bytes, problems: list[Problem]) -> Iterator[Placed]:
    """The objects of the lines that hold one; blank lines separate nothing."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        text = _decode(line, where, problems)
        if text is None:
            continue
        try:
            raw: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(where, f"not JSON: {error}", "write one JSON object a line"))
            continue
        yield where, raw


def _official(data: bytes, problems: list[Problem]) -> Iterator[Placed]:
    """Video-MME's form: ``[{"video_id", "duration", ..., "questions": [...]}]``."""
    text = _decode(data, "file", problems)
    if text is None:
        return
    # a blank in the comma's place keeps line and column of every other error true
    lenient = _STRING_OR_TRAILING_COMMA.sub(
        lambda match: match.group() if match.group() != "," else " ", text
    )
    try:
        videos: object = json.loads(lenient)
    except (ValueError, RecursionError) as error:
        problems.append(Problem("file", f"not JSON: {error}", "download the file anew"))
        return
    if not isinstance(videos, list):
        what = f"expected a list of videos, got {type(videos).__name__}"
        problems.append(Problem("file", what, "give the official nested JSON"))
        return
    for index, video in enumerate(videos, start=1):
        yield from _of_video(video, index, problems)


def _of_video(video: object, index: int, problems: list[Problem]) -> Iterator[Placed]:
    where = f"video {index}"
    if not isinstance(video, Mapping):
        problems.append(Problem(where, "is no object", "write one object per video"))
        return
    where = f"video {video.get('video_id', index)}"
    questions = video.get("questions")
    if not isinstance(questions, list) or not questions:
        problems.append(Problem(where, "questions is missing or empty", "add its questions"))
        return
    shared = {
        key: video[key]
        for key in ("video_id", "duration", "domain", "sub_category")
        if key in video
    }
    for number, question in enumerate(questions, start=1):
        place = f"{where}, question {number}"
        yield place, {**question, **shared} if isinstance(question, Mapping) else question


def _decode(data: bytes, where: str, problems: list[Problem]) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f"line {line}" if where == "file" else where
        what = f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        problems.append(Problem(place, what, "save the file as UTF-8"))
        return None
