"""Whole runs of ``bin/train``'s command in a process of its own, and what they left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from actors.config import ROOT
from actors.ledger.reader import open_reader
from protocol.factorial_rows import (
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    PairRow,
)
from protocol.rows import (
    BaselineRow,
    DecisionRow,
    DiagnosisRow,
    EditRow,
    EpochRow,
    EvaluationRow,
    OutcomeRow,
    RejectedRow,
    SlowRow,
    StepRow,
    TraceRow,
)

__all__ = ["SMALL", "command", "environment", "events", "result_of", "run_to_end", "running"]

SMALL = (
    "run.seed=1",  # of the first few the one in which edits are accepted and rejected
    "data.trainable_min_units=30",  # two classes are left
    "trainer.epochs=2",
    "trainer.max_batches=1",
    "trainer.run_holdout_eval=false",
    "runtime.backoff_s=0.01",
)
"""A training that ends in seconds and still takes edits, epochs and checkpoints."""

_TABLES = (
    BaselineRow,
    DecisionRow,
    DiagnosisRow,
    EditRow,
    EpochRow,
    EvaluationRow,
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
    OutcomeRow,
    PairRow,
    RejectedRow,
    SlowRow,
    StepRow,
    TraceRow,
)


def command(*arguments: str) -> list[str]:
    """``bin/train`` without its environment check: the tests run inside that environment."""
    return [sys.executable, "-m", "actors.main", "train", *arguments]


def environment() -> dict[str, str]:
    """What a run of the tests sees."""
    # a Redis of the tests would share answers between runs that are to be compared
    own = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    return own | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}


def settings(assignments: tuple[str, ...]) -> list[str]:
    """``--set`` for each."""
    return [part for assignment in assignments for part in ("--set", assignment)]


def run_to_end(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run and hold the exit code to what is expected; the output is in the failure."""
    done = subprocess.run(
        command(*arguments), env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


class Running:
    """A run under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []

    def wait_for(self, *words: str) -> str:
        """The first console line, from here on, that holds all the words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if all(word in line for word in words):
                return line
        raise AssertionError(f"the run ended without {words}:\n{''.join(self.lines)}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the run alone."""
        self.process.send_signal(number)

    def finish(self, expect: int) -> str:
        """Wait for the end; returns what was printed on stdout."""
        out, err = self.process.communicate()
        self.lines.append(err)
        code = self.process.returncode
        assert code == expect, f"exit {code}\n{out}\n{''.join(self.lines)}"
        return out


@contextmanager
def running(*arguments: str, redis_url: str | None = None) -> Iterator[Running]:
    """Start a run; whatever the test does, no process is left behind."""
    process = subprocess.Popen(
        command(*arguments),
        env=environment() | ({} if redis_url is None else {"REDIS_URL": redis_url}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Running(process)
        finally:
            process.kill()


def events(workspace: Path) -> list[dict[str, object]]:
    """Every line of the log; each must be a JSON object with an event and a time."""
    lines = (workspace / "logs" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    found: list[dict[str, object]] = [json.loads(line) for line in lines]
    assert all("event" in event and "timestamp" in event for event in found)
    return found


def result_of(workspace: Path) -> dict[str, object]:
    """What a run must leave the same however it was disturbed: rows and documents.

    Times are left out; they may differ, nothing else may.
    """
    result: dict[str, object] = {}
    with open_reader(workspace / "run.db") as reader:
        for kind in _TABLES:
            rows = [msgspec.to_builtins(row) for row in reader.rows(kind)]
            for row in rows:
                row.pop("seconds", None)
            result[kind.TABLE] = rows
    for path in sorted([*workspace.glob("skills/*/*"), *workspace.glob("prompts/**/*.*")]):
        result[str(path.relative_to(workspace))] = path.read_bytes()
    result["manifest"] = json.loads((workspace / "manifest.json").read_bytes())
    return result
