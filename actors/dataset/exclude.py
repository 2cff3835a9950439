"""Questions that are known to be wrong, left out by name.

Video-MME has annotation errors that were reported and never corrected. They are not
patched here: a file names them, one id a line, and they are left out for everybody.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from actors.dataset.errors import Problem, QuestionsError
from actors.dataset.json_forms import decode
from protocol.dataset import Question

__all__ = ["excluded"]

_COMMENT = re.compile(r"(?:^|\s)#.*")
_NEAREST_FOR = 50  # looking for near ids is slow, and no more problems are shown


def excluded(questions: Iterable[Question], path: Path) -> tuple[str, ...]:
    """The ids that the file names, sorted, each once.

    One question id a line; ``#`` begins a comment, at the line's start or after a blank;
    blank lines are fine, and so is an id that stands twice.

    Raises QuestionsError naming every line whose id no question has, with the nearest one,
    and when nothing would be left.
    """
    known = {question.question_id for question in questions}
    problems: list[Problem] = []
    named: set[str] = set()
    for number, line in enumerate(_lines(path), start=1):
        # an id may hold a "#" itself; then the whole line is one that is known
        whole = line.strip()
        question_id = whole if whole in known else _COMMENT.sub("", line).strip()
        if not question_id:
            continue
        if question_id in known:
            named.add(question_id)
            continue
        what = f"no question has the id {question_id!r}"
        looked = len(problems) < _NEAREST_FOR
        near = difflib.get_close_matches(question_id, sorted(known), 1, 0.5) if looked else []
        remedy = f"did you mean {near[0]!r}?" if near else "write one question id a line"
        problems.append(Problem(f"line {number}", what, remedy))
    if known and len(named) == len(known):
        what = f"all {len(known)} questions are excluded"
        problems.append(Problem("file", what, "leave some in"))
    if problems:
        raise QuestionsError(path, problems)
    return tuple(sorted(named))


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        remedy = "check the path (data.exclude in the configuration)"
        raise QuestionsError(path, [Problem("file", what, remedy)]) from error
    problems: list[Problem] = []
    text = decode(data, "file", problems)
    if text is None:
        raise QuestionsError(path, problems)
    return text.split("\n")
