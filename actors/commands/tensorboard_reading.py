"""What a run has measured, as scalars by epoch: read from ``run.db``, never computed anew.

Rows carry no times but those of calls: when an epoch ended is said by the log's ``epoch.done``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from actors.commands.html.gaps import Gaps
from actors.commands.html.gather import CONFIG, ledger_of
from actors.commands.html.gather_run import attempts_of, run_of
from actors.commands.tensorboard_points import Scalar, Source, scalars_of
from actors.config import load_config
from actors.ledger.reader import Reader
from actors.workspace.files import read_json
from actors.workspace.manifest import read_manifest
from actors.workspace.seed import BASELINE, POOLS, SEED
from protocol.rows import EpochRow, EvaluationRow
from protocol.seed import BaselinePrediction, Pools, SeedInfo

__all__ = ["Measured", "epoch_ends", "progress_of", "read_run"]

_LOG = Path("logs") / "train.jsonl"
_EPOCH_DONE = "epoch.done"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its scalars, ordered by step and tag. began: seconds since 1970, 0 if unknown.

    why: how the run stands, in words. waits: its last epoch is whole, but the log does not say so
    yet, so that it is left for the next time. gaps: what could not be read.
    """

    run_id: str
    began: float
    why: str
    scalars: tuple[Scalar, ...]
    waits: bool
    gaps: tuple[str, ...]


class _LogLine(msgspec.Struct):
    event: str
    timestamp: str = ""
    epoch: int = 0


def read_run(workspace: Path) -> Measured:
    """Read the ledger and the log.

    Raises WorkspaceError and ConfigError if the workspace's own files cannot be read, OptionError
    and sqlite3.Error for a damaged ledger.
    """
    with ledger_of(workspace) as reader:
        return _read(workspace, reader)


def progress_of(workspace: Path) -> tuple[int, int]:
    """How many epochs and evaluations there are: more of them, and there is more to write."""
    with ledger_of(workspace) as reader:
        if reader is None:
            return 0, 0
        return len(reader.rows(EpochRow)), len(reader.rows(EvaluationRow))


def epoch_ends(log: Path) -> dict[int, float]:
    """When each epoch ended, by the log; empty without one. A line that is no event is skipped."""
    if not log.is_file():
        return {}
    return {line.epoch: _seconds(line.timestamp) for line in _told(log) if line.timestamp}


def _told(log: Path) -> Iterator[_LogLine]:
    mark = f'"{_EPOCH_DONE}"'.encode()
    with log.open("rb") as file:
        for data in file:
            if mark not in data:
                continue
            try:
                line = msgspec.json.decode(data, type=_LogLine)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue  # cut off by a crash
            if line.event == _EPOCH_DONE:
                yield line


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _read(workspace: Path, reader: Reader | None) -> Measured:
    gaps = Gaps()
    config = load_config(workspace / CONFIG)
    manifest = read_manifest(workspace)
    info = read_json(workspace / SEED, SeedInfo, "restore it from the seed")
    attempts = attempts_of(reader)
    run = run_of(workspace, reader, manifest, config, info, attempts)
    began = _seconds(run.began) if run.began else 0.0
    no_ends: dict[int, float] = {}
    ends = gaps.try_to("the times of epochs", lambda: epoch_ends(workspace / _LOG), no_ends)
    whole = [] if reader is None else sorted(row.epoch for row in reader.rows(EpochRow))
    waits = run.state == "running" and bool(whole) and whole[-1] not in ends
    if waits:
        del whole[-1]
    if untimed := [epoch for epoch in whole if epoch not in ends]:
        gaps.told.append(
            f"{workspace / _LOG} does not say when epoch {', '.join(map(str, untimed))} ended: "
            "the time of the run's last call is taken, and the cost left out"
        )
    no_answers: Mapping[str, BaselinePrediction] = {}
    found: tuple[Scalar, ...] = ()
    if reader is not None:
        found = scalars_of(
            Source(
                reader=reader,
                epochs=frozenset(whole),
                began=began,
                last=_seconds(run.ended) if run.ended else 0.0,
                ends=ends,
                attempts=attempts,
                seeded=gaps.try_to(
                    "the seed's answers", lambda: _seed_on_test(workspace), no_answers
                ),
            )
        )
    return Measured(
        run_id=run.run_id,
        began=began,
        why=run.why,
        scalars=found,
        waits=waits,
        gaps=tuple(gaps.told),
    )


def _seed_on_test(workspace: Path) -> Mapping[str, BaselinePrediction]:
    """The seed's own answers to the test pool, by question."""
    from actors.baseline.seed_db import read_predictions

    pools = read_json(workspace / POOLS, Pools, "restore it from the seed")
    wanted = frozenset(pools.test)
    rows = read_predictions(workspace / BASELINE)
    return {row.question_id: row for row in rows if row.question_id in wanted}
