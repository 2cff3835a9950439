"""The ``harness.db`` of the older program, read and never touched (rows seed, P2-2).

Its table ``predictions`` has a row per answer: run_id, timestamp, video_id, question_id,
task_type, prediction (what the agent submitted, as it came), answer (the gold letter),
stop_reason, and steps_json, a list of ``{"thought", "tool_call": {"tool", "args"},
"tool_output"}``. No key is unique there: a question may have several rows.

What a row is worth is not decided here.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from actors.workspace.baseline_db import connect_readonly, refuse_unsettled
from actors.workspace.errors import SeedError
from protocol.rollout import Step

__all__ = [
    "BadTrajectory",
    "HarnessRow",
    "Kind",
    "kind_of",
    "read_harness_rows",
    "run_counts",
    "steps_of",
]

Kind = Literal["harness", "run", "baseline"]

_NEEDED = ("run_id", "video_id", "question_id", "task_type", "prediction", "answer")
_OPTIONAL = ("stop_reason", "steps_json")
_NODE_ID = re.compile(r"[\w-]+_L[123]_\d+")
_WANTED = (
    "give the older program's harness.db, a run.db of a run, or the baseline.db of a seed; a "
    "harness.db has a table predictions with " + ", ".join(_NEEDED)
)


class HarnessRow(msgspec.Struct, frozen=True, kw_only=True):
    """One answer as it was stored. row: its rowid, the order of writing."""

    row: int
    run_id: str
    video_id: str
    question_id: str
    task_type: str
    prediction: object
    answer: object
    stop_reason: str | None
    steps_json: str | None


class BadTrajectory(ValueError):
    """``steps_json`` holds no steps that could be read; the message says why."""


def kind_of(path: Path) -> Kind:
    """Which program's answers a database holds, by its tables.

    Raises SeedError if it is none of them, is missing, or is being written (row P2-2).
    """
    with _opened(path) as db:
        if _columns(db, "outcomes"):
            return "run"
        columns = _columns(db, "predictions")
    if {"letter", "right", "confidence"} <= columns:
        return "baseline"
    if set(_NEEDED) <= columns:
        return "harness"
    raise SeedError(path, "holds no answers that could be read", _WANTED)


def run_counts(path: Path, table: str, key: str) -> dict[str, int]:
    """The runs in a table and their rows, for whoever has to choose one."""
    with _opened(path) as db:
        rows = db.execute(f'SELECT "{key}", count(*) FROM "{table}" GROUP BY 1 ORDER BY 1')
        return {str(name): int(count) for name, count in rows}


def read_harness_rows(path: Path, run_id: str) -> tuple[HarnessRow, ...]:
    """Every row of a run, in the order in which they were written.

    Raises SeedError if the file cannot be read, or naming the runs that there are.
    """
    with _opened(path) as db:
        there = _columns(db, "predictions")
        names = [*_NEEDED, *(name for name in _OPTIONAL if name in there)]
        selected = ", ".join(f'"{name}"' for name in names)
        found = db.execute(
            f"SELECT rowid, {selected} FROM predictions WHERE run_id = ? ORDER BY rowid", (run_id,)
        ).fetchall()
    return tuple(_row(dict(zip(("rowid", *names), values, strict=True))) for values in found)


def steps_of(row: HarnessRow) -> tuple[Step, ...]:
    """The row's trajectory in our own form (row P0-2).

    The older program kept neither the model's raw replies nor the nodes that a call showed:
    ``raw`` is empty, and the node ids are those in the arguments and, for a search, in its output.

    Raises BadTrajectory if there is nothing to read, or nothing that could be a step.
    """
    if not row.steps_json:
        raise BadTrajectory("steps_json is empty")
    try:
        stored = json.loads(row.steps_json)
    except (ValueError, RecursionError) as error:
        raise BadTrajectory(f"steps_json is no JSON: {error}") from error
    if not isinstance(stored, list) or not stored:
        raise BadTrajectory("steps_json holds no steps")
    return tuple(_step(index, raw) for index, raw in enumerate(stored, start=1))


def _step(index: int, raw: object) -> Step:
    if not isinstance(raw, dict):
        raise BadTrajectory(f"step {index} is {type(raw).__name__}, not an object")
    call = raw.get("tool_call")
    call = call if isinstance(call, dict) else {}
    tool, arguments = call.get("tool"), call.get("args")
    output = _text(raw.get("tool_output"))
    return Step(
        index=index,
        thought=_text(raw.get("thought")),
        tool=tool if isinstance(tool, str) and tool else None,
        arguments="" if arguments is None else _text(arguments),
        observation=output,
        raw="" if isinstance(tool, str) and tool else _text(raw.get("tool_call")),
        node_ids=_node_ids(tool, arguments, output),
        prompt_tokens=0,
        completion_tokens=0,
        seconds=0.0,
    )


def _node_ids(tool: object, arguments: object, output: str) -> tuple[str, ...]:
    named: list[object] = []
    if isinstance(arguments, dict):
        several = arguments.get("node_ids")
        named = [arguments.get("node_id"), *(several if isinstance(several, list) else ())]
    if tool == "search_similar":
        named += _NODE_ID.findall(output)
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))


def _text(value: object) -> str:
    """Any JSON value as text; None is nothing."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # half a surrogate pair is no character and cannot be stored (row P0-4)
    return text.encode("utf-8", "replace").decode("utf-8")


def _row(values: dict[str, object]) -> HarnessRow:
    stop, steps = values.get("stop_reason"), values.get("steps_json")
    return HarnessRow(
        row=msgspec.convert(values["rowid"], int),
        run_id=str(values["run_id"]),
        video_id=str(values["video_id"]),
        question_id=str(values["question_id"]),
        task_type=str(values["task_type"]),
        prediction=values["prediction"],
        answer=values["answer"],
        stop_reason=None if stop is None else str(stop),
        steps_json=None if steps is None else str(steps),
    )


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Read-only and immutable; whatever SQLite says against the file is a SeedError."""
    refuse_unsettled(path)
    try:
        with closing(connect_readonly(path)) as db:
            # a text that is not UTF-8 is one row's trouble, not the file's
            db.text_factory = lambda data: data.decode("utf-8", "replace")
            yield db
    except sqlite3.Error as error:
        raise SeedError(path, f"cannot be read: {error}", _WANTED) from error


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in db.execute(f'PRAGMA table_info("{table}")')}
