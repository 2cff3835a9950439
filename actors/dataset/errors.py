"""What is wrong with the data, said completely: every problem of a file in one error.

DataError              problems: where, what, remedy
├── QuestionsError     a question file cannot be used
└── PoolsError         frozen pools do not fit the questions, the manifest or the seed
SplitError             a split cannot be made from what was given
└── InfeasibleSplitError   val cannot hold enough wrong answers
MissingOutcomeError    a question without a known outcome would have been dropped
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

__all__ = [
    "DataError",
    "InfeasibleSplitError",
    "MissingOutcomeError",
    "PoolsError",
    "Problem",
    "QuestionsError",
    "SplitError",
]

_SHOWN = 50
_NAMED = 10
_OF_A_KIND = 5  # so many of each remedy come first, so that no kind hides behind another


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong. where: line, question or key. remedy: what to do about it."""

    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.remedy}"


class DataError(Exception):
    """A file or folder, and all that is wrong with it.

    ``problems`` holds every one; the text shows the first ``_SHOWN`` and counts the rest.
    """

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        count = len(self.problems)
        shown = _choose(self.problems)
        lines = [f"  {problem}" for problem in shown]
        if len(shown) < count:
            lines.append(f"  ... and {count - len(shown)} more")
        super().__init__("\n".join([f"{path}: {count} problem{'s' if count != 1 else ''}", *lines]))


class QuestionsError(DataError):
    """A question file cannot be used."""


class PoolsError(DataError):
    """Frozen pools cannot be used (row W-2)."""


class SplitError(ValueError):
    """A split cannot be made from these questions, outcomes and numbers."""


class InfeasibleSplitError(SplitError):
    """No assignment gives val enough wrong answers; the message says what would."""


class MissingOutcomeError(ValueError):
    """Questions without a known outcome (row fail-loud). question_ids: sorted, all of them."""

    def __init__(self, question_ids: Iterable[str]) -> None:
        self.question_ids = tuple(sorted(question_ids))
        named = ", ".join(self.question_ids[:_NAMED])
        more = len(self.question_ids) - _NAMED
        super().__init__(f"no known outcome: {named}" + (f" and {more} more" if more > 0 else ""))


def _choose(problems: Sequence[Problem]) -> list[Problem]:
    """At most ``_SHOWN``, in their order: a few of every kind, then whatever fits."""
    seen: Counter[str] = Counter()
    few: list[int] = []
    rest: list[int] = []
    for index, problem in enumerate(problems):
        (few if seen[problem.remedy] < _OF_A_KIND else rest).append(index)
        seen[problem.remedy] += 1
    return [problems[index] for index in sorted([*few, *rest][:_SHOWN])]
