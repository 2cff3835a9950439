"""What ``bin/trm watch`` shows, gathered from ``run.db``, the log's end and the run itself.

Only reads. Each source may be missing: a run that has not begun to write, one that is over, one
that was killed; what is left is shown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from actors.commands.status_report import resume_refused
from actors.commands.watch_end import end_of, goes_on, state_of
from actors.factorial_view import FactorialView, factorial_view
from actors.ledger.reader import open_reader
from actors.monitor.board import Board, Progress, number, text
from actors.monitor.client import NoRun, ask_run
from actors.monitor.phases import PhaseSeen
from actors.monitor.status_words import endpoints_of, progress_of
from actors.monitor.wishes import Wish
from actors.workspace.lock import lock_holder
from protocol.gate import Look
from protocol.keys import slug
from protocol.llm import EndpointSeen
from protocol.rows import DecisionRow, EpochRow, EvaluationRow, SlowRow, StepRow

__all__ = ["Epoch", "Ladder", "View", "read_view"]

_TAIL_BYTES = 2_000_000

Plain = Mapping[str, object]


@dataclass(frozen=True)
class Ladder:
    """A class's gate: the test that runs, or the last one.

    path: the e-value after every block. verdict: empty while it runs. doing: of an open step.
    """

    name: str
    epoch: int
    step: int
    units: int
    n_units: int
    path: tuple[float, ...]
    accept_from: float
    verdict: str
    doing: str
    accepted: int
    tests: int


@dataclass(frozen=True)
class Epoch:
    """A line of the table of epochs; None: not evaluated. Accuracies as (right, planned)."""

    epoch: int
    package: str
    val: tuple[int, int] | None
    test: tuple[int, int] | None
    tests: int | None
    accepted: int | None
    slow: str


@dataclass(frozen=True)
class View:
    """Everything at one moment. state: in words; alive: the run itself has answered.

    together: of a run under the factorial gate, which has no ladders. end: of a run that is over,
    in a word (``finished``, ``stopped``, ``failed``, ``died``); empty while it may be at work.
    refused: such a run cannot go on as it stands.
    """

    workspace: Path
    run_id: str
    state: str
    alive: bool
    paused_by: str
    progress: Progress | None
    usd: float | None
    waiting: int
    calls: int
    oldest_s: float
    endpoints: Sequence[EndpointSeen]
    actors: Sequence[Plain]
    epochs: Sequence[Epoch]
    ladders: Sequence[Ladder]
    news: Sequence[Plain]
    together: FactorialView | None = None
    end: str = ""
    refused: bool = False


def read_view(workspace: Path, refused: Callable[[Path], bool] = resume_refused) -> View:
    """Look at all sources once.

    refused: whether a run that ended before its end cannot go on; asked of no other.
    """
    status, holder = _status(workspace)
    board, last = _tail(workspace / "logs" / "train.jsonl")
    progress = progress_of(status) if status is not None else None
    epochs, ladders, together = _history(workspace / "run.db", progress, at_rest=status is None)
    told: Plain = status if status is not None else last
    actors = told.get("actors") if status is not None else board.actors
    end = end_of(board.news) if status is None and holder is None else ("", "")
    return View(
        workspace=workspace,
        run_id=text(told, "run_id"),
        state=_running(status) if status is not None else state_of(holder, end),
        alive=status is not None,
        paused_by=text(told, "paused_by") if status is not None else "",
        progress=progress,
        usd=_known(told, "usd"),
        waiting=int(number(told, "waiting")) if status is not None else 0,
        calls=int(number(told, "calls")) if status is not None else 0,
        oldest_s=number(told, "oldest_s") if status is not None else 0.0,
        endpoints=endpoints_of(told.get("endpoints")),
        actors=[one for one in actors if isinstance(one, Mapping)]
        if isinstance(actors, list | tuple)
        else (),
        epochs=epochs,
        ladders=ladders,
        news=tuple(board.news),
        together=together,
        end=end[0],
        refused=goes_on(end[0]) and refused(workspace),
    )


def _known(told: Plain, key: str) -> float | None:
    return None if told.get(key) is None else number(told, key)


def _status(workspace: Path) -> tuple[Plain | None, int | None]:
    """What the run says of itself, None if it does not; and the process that holds the lock."""
    try:
        return ask_run(workspace, Wish(do="status"), timeout_s=3.0).status, None
    except NoRun:
        pass
    try:
        held = lock_holder(workspace)
    except OSError:
        return None, None
    return None, None if held is None else held.pid or -1


def _running(status: Plain) -> str:
    stops = ", stops" if status.get("draining") else ""
    return f"runs, process {int(number(status, 'pid'))}{stops}"


def _tail(path: Path) -> tuple[Board, Plain]:
    """The sums over the log's end, and its last event that names endpoints."""
    board, last, run_id = Board(), {}, ""
    for event in _lines(path):
        run_id = text(event, "run_id") or run_id
        if event.get("endpoints") and text(event, "event") in ("progress", "heartbeat"):
            last = dict(event)
        board.take(event, _seconds(text(event, "timestamp")))
    return board, {**last, "run_id": run_id}


def _lines(path: Path) -> list[Plain]:
    """Whole lines of the last two megabytes; a line that is no event is passed over."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            data = file.read()
    except OSError:
        return []
    lines = data.split(b"\n")
    if size > _TAIL_BYTES:
        lines = lines[1:]
    found: list[Plain] = []
    for line in lines:
        try:
            event = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if isinstance(event, dict):
            found.append(event)
    return found


def _seconds(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0


def _history(
    path: Path, progress: Progress | None, *, at_rest: bool
) -> tuple[list[Epoch], list[Ladder], FactorialView | None]:
    wal = path.with_name(path.name + "-wal")
    quiet = at_rest and not (wal.exists() and wal.stat().st_size)
    try:
        with open_reader(path, at_rest=quiet) as reader:
            decisions = reader.rows(DecisionRow)
            steps = reader.rows(StepRow)
            together = factorial_view(reader)
            epochs = _epochs(
                reader.rows(EpochRow), reader.rows(EvaluationRow), reader.rows(SlowRow)
            )
    except (sqlite3.Error, OSError):
        return [], _ladders([], [], progress), None
    ladders = _ladders(decisions, steps, progress) if together is None else []
    return epochs, ladders, together


def _epochs(
    rows: Sequence[EpochRow], evaluations: Sequence[EvaluationRow], slow: Sequence[SlowRow]
) -> list[Epoch]:
    by_epoch = {row.epoch: row for row in rows}
    slow_of = {row.epoch: row.result for row in slow}
    passes = {(row.epoch, row.pool, row.kind): row for row in evaluations}
    found = []
    for epoch in sorted({row.epoch for row in evaluations} | by_epoch.keys()):
        vals = [passes.get((epoch, "val", kind)) for kind in ("final", "seed", "fast")]
        val = next((one for one in vals if one is not None), None)
        test = passes.get((epoch, "test", "final"), passes.get((epoch, "test", "seed")))
        row = by_epoch.get(epoch)
        shown = val or test
        found.append(
            Epoch(
                epoch=epoch,
                package="" if shown is None else f"{shown.skills_version} {shown.prompts_version}",
                val=None if val is None else (val.right, val.planned),
                test=None if test is None else (test.right, test.planned),
                tests=None if row is None else row.tests,
                accepted=None if row is None else row.accepted,
                slow=slow_of.get(epoch, ""),
            )
        )
    return found


def _ladders(
    decisions: Sequence[DecisionRow], steps: Sequence[StepRow], progress: Progress | None
) -> list[Ladder]:
    """A line per class: its open step where it has one, else its last decision."""
    classes = {row.task_type for row in decisions} | {row.task_type for row in steps}
    names = {slug(name): name for name in classes}
    phases = {} if progress is None else {_class_of(one): one for one in progress.phases}
    phases.pop("", None)
    found = []
    for key in sorted(names.keys() | phases.keys()):
        own = sorted(
            (row for row in decisions if slug(row.task_type) == key),
            key=lambda row: (row.epoch, row.step),
        )
        tests = [row for row in own if row.rollouts]
        counts = sum(row.verdict == "accept" for row in tests), len(tests)
        if key in phases:
            found.append(_open(names.get(key, key), phases[key], *counts))
        elif own:
            found.append(_closed(own[-1], *counts))
    return found


def _class_of(phase: PhaseSeen) -> str:
    """The class of a step's phase, as a slug; empty for a pass."""
    parts = phase.key.split("/")
    return parts[1] if len(parts) == 3 and parts[2][:1] == "s" and parts[2][1:].isdigit() else ""


def _open(name: str, phase: PhaseSeen, accepted: int, tests: int) -> Ladder:
    epoch, _, step = phase.key.split("/")
    of = f"/{phase.planned}" if phase.planned else ""
    doing = f"answers {phase.done}{of}" if phase.doing == "answering" else phase.doing
    return Ladder(
        name=name,
        epoch=int(epoch[1:]),
        step=int(step[1:]),
        units=phase.units,
        n_units=phase.n_units,
        path=phase.path,
        accept_from=phase.accept_from,
        verdict="",
        doing=doing,
        accepted=accepted,
        tests=tests,
    )


def _closed(row: DecisionRow, accepted: int, tests: int) -> Ladder:
    try:
        looks = msgspec.json.decode(row.looks, type=tuple[Look, ...])
    except msgspec.MsgspecError:
        looks = ()
    return Ladder(
        name=row.task_type,
        epoch=row.epoch,
        step=row.step,
        units=row.evaluated + row.missing,
        n_units=row.n_units,
        path=tuple(look.e for look in looks),
        accept_from=1 / row.alpha if row.alpha > 0 else 0.0,
        verdict=row.verdict,
        doing="",
        accepted=accepted,
        tests=tests,
    )
