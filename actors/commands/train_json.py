"""``bin/train --json``: stdout for machines, one JSON object a line.

    {"event": "launch", ...}      first: run, workspace, configuration, whether it was resumed
    {"event": "progress", ...}    and all other news of the run, as logs/train.jsonl has them
    {"event": "done", ...}        last: status, exit code, packages, accuracies, how to go on

A stream without ``done`` is of a run that died. Nobody who reads it can hold the run up or end it.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from actors.launch import Launch
from actors.ledger.reader import open_reader
from actors.logs import masked
from actors.monitor.board import NEWS
from actors.streams import StdoutLost, json_text
from actors.system import RunResult, uses_twin
from actors.trainer.score import wilson
from protocol.base import Refused
from protocol.rows import EvaluationRow

__all__ = ["done_record", "hear", "launch_record", "status_of", "tell"]

_TOLD = NEWS | {"progress", "run.simulator", "step.done"}


def tell(record: Mapping[str, object]) -> None:
    """A line on stdout; lost if nobody listens any more."""
    line = json_text(record)
    with suppress(StdoutLost, OSError, ValueError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def hear(event: Mapping[str, object]) -> None:
    """Pass on what is news."""
    if event.get("event") in _TOLD:
        tell(event)


def launch_record(launch: Launch) -> dict[str, object]:
    """The first line."""
    workspace = launch.paths.workspace
    return {
        "event": "launch",
        "timestamp": _now(),
        "run_id": launch.run_id,
        "workspace": str(workspace),
        "resumed": launch.resumed,
        "simulator": uses_twin(launch.config),
        "config": masked("config", msgspec.to_builtins(launch.config)),
        "log": str(workspace / "logs" / "train.jsonl"),
    }


def status_of(result: RunResult) -> str:
    """How it ended, in a word: ``done``, ``early_stop``, ``drained``, ``stopped``, ``refused``.

    ``claims_void``: done, but its sentinels do not look like coins.
    """
    if result.ended is None:
        return "stopped"
    if isinstance(result.ended, Refused):
        return "refused"
    return "claims_void" if result.ended.claims_void else result.ended.status


def done_record(
    status: str,
    exit_code: int,
    *,
    launch: Launch | None = None,
    result: RunResult | None = None,
    resume: str | None = None,
    error: str | None = None,
) -> dict[str, object]:
    """The last line. launch None: it did not come so far."""
    ended = None if result is None else result.ended
    packages = None
    if ended is not None and not isinstance(ended, Refused):
        packages = {
            "seed": str(ended.seed_package),
            "best_hard": str(ended.best_hard),
            "best_mixed": str(ended.best_mixed),
        }
    if isinstance(ended, Refused):
        error = f"{ended.what}; {ended.remedy}"
    return {
        "event": "done",
        "timestamp": _now(),
        "status": status,
        "exit_code": exit_code,
        "run_id": None if launch is None else launch.run_id,
        "workspace": None if launch is None else str(launch.paths.workspace),
        "packages": packages,
        "accuracies": [] if launch is None else _accuracies(launch),
        "restarts": None if result is None else result.restarts,
        "seconds": None if result is None else round(result.seconds, 1),
        "error": error,
        "resume": resume,
    }


def _accuracies(launch: Launch) -> list[dict[str, object]]:
    """Every evaluation that stands in run.db; none if it cannot be read."""
    try:
        with open_reader(launch.paths.workspace / "run.db") as reader:
            rows = reader.rows(EvaluationRow)
    except sqlite3.Error:
        return []
    rows.sort(key=lambda row: (row.epoch, row.pool, row.kind))
    return [
        {
            "epoch": row.epoch,
            "pool": row.pool,
            "kind": row.kind,
            "package": f"skills/{row.skills_version}+prompts/{row.prompts_version}",
            "right": row.right,
            "planned": row.planned,
            "missing": row.missing,
            "accuracy": round(row.right / row.planned, 4) if row.planned else None,
            "interval": [round(bound, 4) for bound in wilson(row.right, row.planned)],
        }
        for row in rows
    ]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
