"""A ``harness.db`` as the older program leaves it behind, with made-up answers.

Deterministic: whatever is drawn is a hash of a readable key.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from protocol.dataset import Question

__all__ = ["RUN", "Row", "made_up_rows", "steps_json", "write_harness"]

RUN = "infer_adhoc"

_TABLES = """
CREATE TABLE _runs (run_id TEXT PRIMARY KEY, git_sha TEXT, started_at TEXT, finished_at TEXT,
    config JSON, status TEXT DEFAULT 'running', skills_version TEXT, prompts_version TEXT,
    questions_ref TEXT);
CREATE TABLE predictions (run_id TEXT, timestamp TEXT, video_id TEXT, question_id TEXT,
    task_type TEXT, prediction TEXT, answer TEXT, evidence TEXT, reasoning TEXT,
    steps_used INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, stop_reason TEXT,
    steps_json JSON);
"""


class Row(NamedTuple):
    """What differs between rows."""

    question: Question
    prediction: object
    stop_reason: str | None = "finished"
    steps: str | None = None
    gold: str | None = None
    run_id: str = RUN


def draw(key: str, n: int) -> int:
    """A number below n."""
    return int(hashlib.sha256(key.encode()).hexdigest()[:12], 16) % n


def made_up_rows(questions: Iterable[Question], wrong_percent: int = 31) -> list[Row]:
    """An answer to each question, in the forms in which agents write letters."""
    rows = []
    for question in questions:
        name = question.question_id
        gold = "ABCD".index(question.answer)
        wrong = draw(f"wrong/{name}", 100) < wrong_percent
        at = (gold + 1 + draw(f"which/{name}", 3)) % 4 if wrong else gold
        letter = "ABCD"[at]
        forms: tuple[object, ...] = (
            letter,
            letter,
            f"{letter}.",
            f"({letter})",
            f"Answer: {letter}",
        )
        prediction = forms[draw(f"form/{name}", len(forms))]
        if wrong and draw(f"none/{name}", 12) == 0:
            rows.append(Row(question, None, "budget_exceeded", steps_json(question, None)))
        else:
            rows.append(Row(question, prediction, "finished", steps_json(question, letter)))
    return rows


def steps_json(question: Question, letter: str | None) -> str:
    """A trajectory: a look, a search, and the answer if there is one."""
    video = question.video_id
    steps: list[Mapping[str, object]] = [
        {
            "thought": "Begin with the scenes.",
            "tool_call": {"tool": "view_node", "args": {"node_id": f"{video}_L1_000"}},
            "tool_output": f"[node] {video}_L1_000 | scene | 0-300s\n[summary] somebody is busy",
        },
        {
            "thought": "Look for the words of the question.",
            "tool_call": {"tool": "search_similar", "args": {"query": "busy", "k": 2}},
            "tool_output": f"1. {video}_L2_003 | L2 score=0.61 [90s, 120s]\n2. {video}_L2_007",
        },
    ]
    if letter is not None:
        steps.append(
            {
                "thought": "Enough.",
                "tool_call": {"tool": "submit_answer", "args": {"answer": letter}},
                "tool_output": f"[ok] {letter}",
            }
        )
    return json.dumps(steps, ensure_ascii=False)


def write_harness(path: Path, rows: Sequence[Row]) -> Path:
    """The database, in WAL mode and closed, as the older program closes it."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.executescript(_TABLES)
        for run_id in dict.fromkeys(row.run_id for row in rows):
            db.execute("INSERT INTO _runs (run_id, status) VALUES (?, 'completed')", (run_id,))
        db.executemany(
            "INSERT INTO predictions VALUES (?, ?, ?, ?, ?, ?, ?, '', '', 3, 9, 9, ?, ?)",
            [
                (
                    row.run_id,
                    "2026-07-15T08:00:00+00:00",
                    row.question.video_id,
                    row.question.question_id,
                    row.question.task_type,
                    row.prediction,
                    row.question.answer if row.gold is None else row.gold,
                    row.stop_reason,
                    row.steps,
                )
                for row in rows
            ],
        )
        db.commit()
    return path
