"""A whole run of the shape of Video-MME's long part against the simulator, measured from outside.

    python -m tests.bench.scale [--times 1] [--epochs 3] [--concurrency 256] [--chunk-delay 0.0]

900 questions of 300 videos, 12 classes, split 100 / 200, holdout on: ``bin/train``'s own command in
a process of its own, with its simulator in another. ``--times 10`` is the same with ten copies of
every video, and with batches ten times as large, so that an epoch has as many steps; each asks
ten times as much.

    calls      tries at the endpoint, from run.db
    CPU        seconds of each process, from /proc: what counts where others share the machine
    lag        of the event loop: how late a task wakes up (``runtime.stats``)
    memory     resident, of the trainer: the peak, and at the end of every epoch
    wall/twin  wall seconds over the simulator's own: its CPU seconds, or with ``--chunk-delay``
               the pauses of all its answers over the concurrency. An epoch's steps wait for one
               another, so that ``in flight`` (answers at a time, on the mean) stays below it
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from actors.ledger.reader import open_reader
from protocol.rows import AttemptRow
from tests.bench.scale_seed import Shape, build
from tests.system.runs import command, environment, events, settings

__all__ = ["Figures", "Sample", "main", "measure"]

_EVERY_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
_PAUSES = 7  # between the chunks of an answer of the simulator (actors/twin/written.py)


class Sample(msgspec.Struct, frozen=True):
    """One look at the two processes. CPU in seconds, memory in MiB."""

    at: datetime
    trainer_s: float
    twin_s: float
    resident: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured. Times in seconds, memory in MiB, lag in ms."""

    times: int
    epochs: int
    concurrency: int
    chunk_delay_s: float
    questions: int
    calls: int
    cached: int
    wall: float
    trainer_cpu: float
    twin_cpu: float
    twin_own: float
    in_flight: float
    lag_p99: float
    lag_max: float
    peak: float
    per_epoch: tuple[float, ...]
    run_db: float
    cache_db: float


def _pid_of_twin(pid: int) -> int | None:
    """The one child of the trainer."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return None
    return int(children[0]) if children else None


def _cpu(pid: int | None) -> float:
    if pid is None:
        return 0.0
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_MIB
    except OSError:
        return 0.0


class _Watch(threading.Thread):
    """Looks at the trainer and its child until told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.samples: list[Sample] = []
        self._pid = pid
        self._end = threading.Event()

    def run(self) -> None:
        """Sample; what a dead process no longer tells is left out."""
        twin = None
        twin_s = 0.0
        while not self._end.wait(_EVERY_S):
            twin = twin or _pid_of_twin(self._pid)
            twin_s = max(twin_s, _cpu(twin))
            sample = Sample(datetime.now(UTC), _cpu(self._pid), twin_s, _resident(self._pid))
            if sample.resident:
                self.samples.append(sample)

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self.join()


def measure(arguments: argparse.Namespace, folder: Path) -> Figures:
    """Build, run, measure. Raises AssertionError if the run fails."""
    times: int = arguments.times
    wanted = (
        f"agent.concurrency={arguments.concurrency}",
        f"llm.concurrency={arguments.concurrency}",
        "llm.concurrency_start=16",
        "diagnoser.concurrency=64",
        f"data.tree_cache={320 * times}",
        f"data.batch_size={10 * times}",
        "runtime.stats_s=10",
        f"trainer.epochs={arguments.epochs}",
        f"trainer.early_stop_patience={arguments.epochs + 1}",
        f"twin.chunk_delay_s={arguments.chunk_delay}",
    )
    shape = Shape(times=times, n_trainval=100 * times, n_test=200 * times)
    config, split = build(folder, shape, wanted)
    workspace = folder / "workspace"
    log = folder / "console.txt"
    begun = time.monotonic()
    with log.open("w", encoding="utf-8") as console:
        process = subprocess.Popen(
            command(str(config), *settings(wanted), "--workspace", str(workspace)),
            env=environment(),
            stdout=console,
            stderr=subprocess.STDOUT,
        )
        watch = _Watch(process.pid)
        watch.start()
        try:
            code = process.wait()
        finally:
            process.kill()
            watch.stop()
    wall = time.monotonic() - begun
    assert code == 0, f"exit {code}; {log}:\n{log.read_text(encoding='utf-8')[-3000:]}"
    return _figures(arguments, workspace, split.facts.n_questions, wall, watch.samples)


def _figures(
    arguments: argparse.Namespace,
    workspace: Path,
    questions: int,
    wall: float,
    samples: Sequence[Sample],
) -> Figures:
    with open_reader(workspace / "run.db") as reader:
        attempts = reader.rows(AttemptRow)
    calls = [row for row in attempts if row.outcome != "cached"]
    logged = events(workspace)
    stats = [event for event in logged if event["event"] == "runtime.stats"]
    ends = [
        datetime.fromisoformat(str(event["timestamp"]))
        for event in logged
        if event["event"] == "epoch.done"
    ]
    last = samples[-1]
    twin_own = last.twin_s
    if arguments.chunk_delay:
        twin_own = len(calls) * _PAUSES * arguments.chunk_delay / arguments.concurrency
    return Figures(
        times=arguments.times,
        epochs=arguments.epochs,
        concurrency=arguments.concurrency,
        chunk_delay_s=arguments.chunk_delay,
        questions=questions,
        calls=len(calls),
        cached=len(attempts) - len(calls),
        wall=wall,
        trainer_cpu=last.trainer_s,
        twin_cpu=last.twin_s,
        twin_own=twin_own,
        in_flight=sum(row.seconds for row in calls) / wall,
        lag_p99=_worst(stats, "lag_p99_ms"),
        lag_max=_worst(stats, "lag_max_ms"),
        peak=max(sample.resident for sample in samples),
        per_epoch=tuple(_resident_at(samples, end) for end in ends),
        run_db=_mib(workspace / "run.db"),
        cache_db=_mib(workspace / "cache.db"),
    )


def _worst(stats: Sequence[dict[str, object]], key: str) -> float:
    """The largest of the periods, whose first one holds the start."""
    return max((msgspec.convert(event[key], float) for event in stats), default=0.0)


def _resident_at(samples: Sequence[Sample], moment: datetime) -> float:
    """The last look before a moment."""
    return [sample.resident for sample in samples if sample.at <= moment][-1]


def _mib(path: Path) -> float:
    return path.stat().st_size / 2**20


def table(found: Figures) -> list[str]:
    """A line per figure."""
    per_call = (found.trainer_cpu + found.twin_cpu) * 1e3 / found.calls
    rows = [
        ("questions, epochs", f"{found.questions}, {found.epochs}"),
        ("concurrency, chunk delay", f"{found.concurrency}, {found.chunk_delay_s:g} s"),
        ("calls (answered from the cache)", f"{found.calls} ({found.cached})"),
        ("wall", f"{found.wall:.1f} s"),
        ("calls per second", f"{found.calls / found.wall:.0f}"),
        ("in flight", f"{found.in_flight:.1f}"),
        ("CPU of the trainer", f"{found.trainer_cpu:.1f} s"),
        ("CPU of the simulator", f"{found.twin_cpu:.1f} s"),
        ("CPU per call, both", f"{per_call:.2f} ms"),
        ("CPU per call, trainer", f"{found.trainer_cpu * 1e3 / found.calls:.2f} ms"),
        ("wall/twin", f"{found.wall / found.twin_own:.2f}"),
        ("lag of the loop, p99 and max", f"{found.lag_p99:.0f} and {found.lag_max:.0f} ms"),
        ("memory, peak", f"{found.peak:.0f} MiB"),
        ("memory after each epoch", ", ".join(f"{one:.0f}" for one in found.per_epoch) + " MiB"),
        ("run.db and cache.db", f"{found.run_db:.0f} and {found.cache_db:.0f} MiB"),
    ]
    return [f"{name:33}{value}" for name, value in rows]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A whole run of the benchmark's shape, measured")
    parser.add_argument("--times", type=int, default=1, help="copies of the 300 videos")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=256, help="questions at a time")
    parser.add_argument("--chunk-delay", type=float, default=0.0, help="seconds between chunks")
    parser.add_argument("--keep", type=Path, help="a new folder for seed and workspace")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run and print."""
    arguments = _arguments(argv)
    with TemporaryDirectory(prefix="trm-scale-") as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        found = measure(arguments, folder.resolve())
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        print("\n".join(table(found)))


if __name__ == "__main__":
    main()
