"""The design fold's questions in training order. Pure.

A question whose outcome is not known is an error, never dropped (row fail-loud).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from actors.dataset.errors import MissingOutcomeError
from protocol.dataset import Question

__all__ = ["make_batches"]


def make_batches(
    questions: Iterable[Question],
    right: Mapping[str, bool],
    *,
    seed: int,
    epoch: int,
    batch_size: int,
) -> tuple[tuple[Question, ...], ...]:
    """Batches of ``batch_size``, the last may be shorter (ALGORITHM.md section 4).

    right: the latest known outcome by question id. Right and wrong questions are each
    shuffled by keyed hash, then the wrong ones are set at even distances, so that any
    two full batches differ by at most one wrong question.

    Raises MissingOutcomeError naming every question without an outcome.
    """
    shuffled = sorted(questions, key=lambda question: _rank(question, seed, epoch))
    lacking = [q.question_id for q in shuffled if q.question_id not in right]
    if lacking:
        raise MissingOutcomeError(lacking)
    wrong = [question for question in shuffled if not right[question.question_id]]
    rest = iter([question for question in shuffled if right[question.question_id]])
    total = len(shuffled)
    # the i-th wrong one stands in the middle of the i-th of len(wrong) equal stretches
    places = {(2 * i + 1) * total // (2 * len(wrong)): q for i, q in enumerate(wrong)}
    spread = [places[place] if place in places else next(rest) for place in range(total)]
    return tuple(tuple(spread[start : start + batch_size]) for start in range(0, total, batch_size))


def _rank(question: Question, seed: int, epoch: int) -> tuple[str, str]:
    key = f"batch/seed{seed}/e{epoch}/{question.question_id}"
    return hashlib.sha256(key.encode("utf-8")).hexdigest(), question.question_id
