"""``trm tensorboard``: a run's numbers as event files, read back record by record."""

from __future__ import annotations

import sqlite3
import struct
import sys
from contextlib import closing
from pathlib import Path
from typing import cast

import anyio
import msgspec
import pytest
import trio
from tensorboardX.proto.event_pb2 import Event

from actors.commands.tensorboard import _follow
from actors.workspace.lock import WorkspaceLock
from protocol.rows import AttemptRow, EpochRow, EvaluationRow, SlowRow
from tests.commands.factorial_house import EDITS, make_factorial
from tests.commands.house import Made, Trm, add_rows, fresh_workspace, row

BEGAN = "2026-03-01T10:00:00.000000+00:00"
ENDS = {
    1: "2026-03-01T11:00:00.000000Z",
    2: "2026-03-01T12:00:00.000000Z",
    3: "2026-03-01T13:00:00.000000Z",
}
FIRST, LAST = 1772362800.0, 1772366400.0
"""When the epochs ended, in seconds since 1970."""

Points = dict[str, list[tuple[int, float, float]]]
"""Step, value and time by tag."""


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum, bit by bit, as TensorBoard's records mask it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read(folder: Path) -> Points:
    """The one file of a folder; every length and every content is held to its checksum."""
    (path,) = folder.iterdir()
    data, at = path.read_bytes(), 0
    found: Points = {}
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        content = data[at + 12 : at + 12 + size]
        assert struct.unpack_from("<I", data, at + 8)[0] == crc32c(data[at : at + 8])
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == crc32c(content)
        event = Event.FromString(content)
        assert (event.file_version == "brain.Event:2") == (at == 0)
        for value in event.summary.value:
            told = (event.step, value.simple_value, event.wall_time)
            found.setdefault(value.tag, []).append(told)
        at += 16 + size
    return found


def attempt(number: int, started: str, **changes: object) -> AttemptRow:
    """An answered call of the agent: 100 tokens in, 10 out, half a dollar."""
    fields: dict[str, object] = {
        "call": f"call-{number}",
        "attempt": 1,
        "started": started,
        "role": "search",
        "outcome": "ok",
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "usd": 0.5,
    }
    return row(AttemptRow, **(fields | changes))


def log_of(workspace: Path, *epochs: int, mode: str = "a") -> None:
    """Lines that say when epochs ended, and one that a crash cut off."""
    (workspace / "logs").mkdir(exist_ok=True)
    with (workspace / "logs" / "train.jsonl").open(mode, encoding="utf-8") as file:
        file.write('{"event": "progress", "epoch": 1}\n{"event":"epoch.done","epo\n')
        for epoch in epochs:
            line = {"event": "epoch.done", "epoch": epoch, "timestamp": ENDS[epoch]}
            file.write(msgspec.json.encode(line).decode() + "\n")


@pytest.fixture
def run(made: Made) -> Path:
    """The history with calls and a log."""
    add_rows(
        made.path,
        attempt(1, BEGAN),
        attempt(2, "2026-03-01T10:30:00.000000+00:00", outcome="cached", usd=None),
        attempt(3, "2026-03-01T11:30:00.000000+00:00"),
        attempt(4, "2026-03-01T11:31:00.000000+00:00", role="judge", outcome="timeout"),
        attempt(5, "2026-03-01T12:30:00.000000+00:00"),
    )
    log_of(made.path, 1, 2)
    return made.path


def test_what_is_written(trm: Trm, run: Path) -> None:
    """Accuracies with their intervals, gains, the gate, cost as it grew; time by calls and log."""
    out = trm("tensorboard", run).out
    points = read(run / "tensorboard")
    assert "written; 2 epochs" in out
    assert points["val/accuracy"] == [(0, 0.0, 1772359200.0), (2, 1.0, LAST)]
    assert points["val/accuracy_low"][1][1] == pytest.approx(0.2065, abs=1e-4)
    assert points["val/accuracy_high"][1][1] == 1.0
    assert points["val/missing"][1] == (2, 0.0, LAST)
    assert points["test/seed/accuracy"] == [(2, 0.0, LAST)]
    assert points["test/final/accuracy"] == [(2, 1.0, LAST)]
    assert points["gain/val/all"] == points["gain/test/all"] == [(2, 1.0, LAST)]
    assert points["gate/tests"] == [(1, 2.0, FIRST), (2, 2.0, LAST)]
    assert points["gate/accepted"] == [(1, 1.0, FIRST), (2, 1.0, LAST)]
    assert points["gate/expected_false_accepts"][0][1] == pytest.approx(0.2)
    assert points["gate/verdict/reject"] == [(1, 1.0, FIRST), (2, 0.0, LAST)]
    assert points["slow/kept"] == [(1, 1.0, FIRST)]
    assert points["cost/usd"] == [(1, 0.5, FIRST), (2, 1.5, LAST)]
    assert points["tokens/prompt"] == [(1, 200.0, FIRST), (2, 400.0, LAST)]
    assert points["calls/answered"] == [(1, 1.0, FIRST), (2, 2.0, LAST)]
    assert points["calls/cached"] == [(1, 1.0, FIRST), (2, 1.0, LAST)]
    assert points["calls/failed_tries"] == [(1, 0.0, FIRST), (2, 1.0, LAST)]
    assert points["tokens/agent"][1][1] == 330.0


def test_again_is_the_same(trm: Trm, run: Path) -> None:
    """No point twice, whatever was there before: nothing, a part, or what is no longer true."""
    trm("tensorboard", run)
    (path,) = (run / "tensorboard").iterdir()
    whole, node = path.read_bytes(), path.stat().st_ino
    assert "up to date" in trm("tensorboard", run).out
    path.write_bytes(whole[: len(whole) // 2])  # a crash in the midst of a record
    assert "added to" in trm("tensorboard", run).out
    assert path.read_bytes() == whole
    assert path.stat().st_ino == node, "a TensorBoard that has it open would see no more of it"
    path.write_bytes(b"else" + whole)
    assert "written" in trm("tensorboard", run).out
    assert path.read_bytes() == whole
    assert [one.name for one in (run / "tensorboard").iterdir()] == [path.name]


def test_a_run_that_goes_on_is_added_to(trm: Trm, run: Path) -> None:
    """A stopped run: its first epoch, then the second behind the same bytes."""
    later = EpochRow(
        epoch=3,
        skills_version="v4",
        prompts_version="v2",
        tests=1,
        accepted=0,
        sum_alpha=0.1,
        seed_draws=0,
        epochs_since_best_improved=1,
    )
    trm("tensorboard", run)
    add_rows(run, later)
    log_of(run, 3)
    assert "was added to; 3 epochs" in trm("tensorboard", run).out
    assert [point[0] for point in read(run / "tensorboard")["gate/tests"]] == [1, 2, 3]


def test_an_epoch_that_is_not_whole_is_not_told(trm: Trm, run: Path) -> None:
    """Its passes would be told before its verdicts."""
    change(run, "DELETE FROM epochs WHERE epoch = 2")
    assert "1 epoch," in trm("tensorboard", run).out
    points = read(run / "tensorboard")
    assert {step for told in points.values() for step, *_ in told} == {0, 1}


def change(workspace: Path, statement: str) -> None:
    """Change rows of the ledger."""
    with closing(sqlite3.connect(workspace / "run.db")) as connection, connection:
        connection.execute(statement)


def test_the_log_is_gone(trm: Trm, run: Path) -> None:
    """It says so; nothing is made up: no cost, and the last call's time."""
    (run / "logs" / "train.jsonl").unlink()
    done = trm("tensorboard", run)
    assert "does not say when epoch 1, 2 ended" in done.err
    points = read(run / "tensorboard")
    assert "cost/usd" not in points
    assert {when for _, _, when in points["gate/tests"]} == {1772368200.0}


def test_under_way_an_epoch_waits_for_its_line(trm: Trm, run: Path) -> None:
    """Between the row and the log's line it would get a wrong time."""
    log_of(run, 1, mode="w")
    with WorkspaceLock(run):
        done = trm("tensorboard", run)
    assert "1 epoch," in done.out
    assert not done.err


def test_pairs_and_edits_of_the_factorial_gate(trm: Trm, tmp_path: Path) -> None:
    """No tests and no alphas; what is decided stands at the last epoch."""
    decided = make_factorial(tmp_path).path
    trm("tensorboard", decided)
    points = {
        tag: [seen[:2] for seen in told] for tag, told in read(decided / "tensorboard").items()
    }
    drawn, void = dict(points["pairs/drawn"]), dict(points["pairs/void"])
    planned = dict(points["pairs/planned"])
    assert set(planned) == {1, 2}
    assert {epoch: drawn[epoch] + void[epoch] for epoch in planned} == planned
    assert sum(void.values()) == 1
    assert dict(points["edits/proposed"])[1] >= 1
    assert sum(number for _, number in points["edits/proposed"]) == len(EDITS)
    assert [points[f"edits/{state}"] for state in ("adopted", "rejected", "dropped")] == [
        [(2, 1.0)]
    ] * 3
    ((step, p),) = points["sentinels/p"]
    assert (step, 0 < p <= 1) == (2, True)
    assert not [tag for tag in points if tag.startswith("gate/")]


def test_a_factorial_run_tells_nothing_of_its_edits_before_it_decides(
    trm: Trm, tmp_path: Path
) -> None:
    """Whoever stopped it by such a number would choose its outcome."""
    under_way = make_factorial(tmp_path, until=2).path
    trm("tensorboard", under_way)
    points = read(under_way / "tensorboard")
    assert "pairs/drawn" in points
    assert not {"edits/adopted", "edits/rejected", "edits/dropped", "sentinels/p"} & set(points)


def test_a_slow_update_without_a_candidate(trm: Trm, run: Path) -> None:
    """Nothing was won or lost there."""
    add_rows(run, row(SlowRow, epoch=2, result="nothing"))
    trm("tensorboard", run)
    assert [step for step, *_ in read(run / "tensorboard")["slow/won"]] == [1]


def test_missing_answers_stand_beside(trm: Trm, run: Path) -> None:
    """P1_4: missing is no class's gain and no lost question."""
    change(run, "UPDATE outcomes SET outcome = 'missing' WHERE run_key = 'e2/val/final'")
    passed = row(
        EvaluationRow,
        run_key="e2/val/final",
        epoch=2,
        pool="val",
        kind="final",
        planned=1,
        right=0,
        missing=1,
        outcomes_key="e2/val/final",
    )
    add_rows(run, passed)
    trm("tensorboard", run)
    points = read(run / "tensorboard")
    assert points["val/missing"][1] == (2, 1.0, LAST)
    assert points["gain/val/all"] == [(2, 0.0, LAST)]


def test_a_run_that_has_not_begun(trm: Trm, tmp_path: Path) -> None:
    """Nothing is written, and that is no error."""
    workspace = fresh_workspace(tmp_path)
    assert "has not begun" in trm("tensorboard", workspace).out
    assert not (workspace / "tensorboard").exists()


def test_where_it_writes(trm: Trm, run: Path) -> None:
    """One new folder; nothing else is touched."""
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    trm("tensorboard", run, "--out", run.parent / "board")
    after = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    assert after == before
    assert read(run.parent / "board")["val/accuracy"]


@pytest.mark.parametrize(
    ("out", "said"),
    [("no/such/folder", "is not there"), ("run/run.db", "is a file"), ("other", "something else")],
)
def test_an_unusable_out(trm: Trm, run: Path, out: str, said: str) -> None:
    """Another run's events, too: TensorBoard would draw both as one. Nothing is deleted."""
    other = run.parent / "other"
    other.mkdir()
    (other / "events.out.tfevents.1.host").write_bytes(b"of another program")
    kept = (run / "run.db").read_bytes()
    assert said in trm("tensorboard", run, "--out", run.parent / out, expect=2).err
    assert (run / "run.db").read_bytes() == kept
    assert [one.name for one in other.iterdir()] == ["events.out.tfevents.1.host"]


def test_no_workspace(trm: Trm, tmp_path: Path) -> None:
    """The same words as of the report."""
    told = [trm(name, tmp_path, expect=2).err for name in ("tensorboard", "report")]
    assert "no manifest.json" in told[0]
    assert told[0].partition(": ")[2] == told[1].partition(": ")[2]


def test_a_damaged_ledger(trm: Trm, run: Path) -> None:
    """No traceback, and what to do."""
    (run / "run.db").write_bytes(b"no database" * 500)
    assert "restore it" in trm("tensorboard", run, expect=2).err


def test_without_the_library(trm: Trm, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message holds the command that mends it."""
    monkeypatch.setitem(cast("dict[str, object]", sys.modules), "tensorboardX", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    err = trm("tensorboard", run, expect=2).err
    assert "pip install 'video-tree-trm[tensorboard]'" in err
    assert not (run / "tensorboard").exists()


def test_following_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Epoch by epoch while a process holds the workspace; what came last is not lost."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    change(run, "DELETE FROM epochs WHERE epoch = 2")
    folder = run / "tensorboard"

    def seen() -> set[int]:
        return {step for told in read(folder).values() for step, *_ in told}

    async def scenario() -> None:
        async with anyio.create_task_group() as group:
            with WorkspaceLock(run):
                group.start_soon(_follow, run, folder)
                await anyio.sleep(6)
                assert seen() == {0, 1}
                add_rows(run, row(EpochRow, epoch=2, tests=2, accepted=1, sum_alpha=0.2))
                await anyio.sleep(6)
                assert seen() == {0, 1, 2}
                add_rows(run, row(EpochRow, epoch=3, tests=0, accepted=0, sum_alpha=0.0))
                await anyio.sleep(6)
                assert seen() == {0, 1, 2}, "the log does not tell its end yet"
                log_of(run, 3)
        assert seen() == {0, 1, 2, 3}

    anyio.run(scenario, backend="trio", backend_options={"clock": clock})
    assert capsys.readouterr().out.count("tfevents") >= 3
