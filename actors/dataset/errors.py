"""What is wrong with the data, said completely: every problem of a file in one error.

DataError              problems: where, what, remedy
├── QuestionsError     a question file cannot be used
└── PoolsError         frozen pools do not fit the questions, the manifest or the seed
SplitError             a split cannot be made from what was given
└── InfeasibleSplitError   val cannot hold enough wrong answers
MissingOutcomeError    a question without a known outcome would have been dropped
"""

from __future__ import annotations

from collections.abc import Iterable
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


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong. where: line, question or key. remedy: what to do about it."""

    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.remedy}"


class DataError(Exception):
    """A file, and all that is wrong with it."""

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        count = len(self.problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{path}: {count} problem{'s' if count != 1 else ''}\n{lines}")


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
        super().__init__(f"no known outcome: {', '.join(self.question_ids)}")
