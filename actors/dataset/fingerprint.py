"""Identity of questions and files: SHA-256 over canonical JSON.

Canonical: UTF-8, keys sorted, no blanks. Two sources that hold the same questions
give the same fingerprint, whatever their order and layout; descriptions that decide
nothing (domain, sub-category, duration) are left out of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from protocol.dataset import Question

__all__ = ["canonical_json", "dataset_fingerprint", "question_fingerprint", "sha256_hex"]


def canonical_json(value: object) -> bytes:
    """The one encoding of a JSON-like value: sorted keys, UTF-8, no blanks."""
    return msgspec.json.encode(value, order="sorted")


def sha256_hex(data: bytes) -> str:
    """64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def question_fingerprint(question: Question) -> str:
    """What the question asks, of which video, with which gold answer."""
    return sha256_hex(canonical_json(_decisive(question)))


def dataset_fingerprint(questions: Iterable[Question]) -> str:
    """All questions, in whatever order they come (row W-2)."""
    ordered = sorted(questions, key=lambda question: question.question_id)
    return sha256_hex(canonical_json([_decisive(question) for question in ordered]))


def _decisive(question: Question) -> dict[str, object]:
    return {
        "question_id": question.question_id,
        "video_id": question.video_id,
        "task_type": question.task_type,
        "question": question.question,
        "options": list(question.options),
        "answer": question.answer,
    }
