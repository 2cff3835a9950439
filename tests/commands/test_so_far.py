"""What a run that did not end says: what is done, what comes next, what stands in its way."""

from __future__ import annotations

import errno
import json
import sqlite3
from pathlib import Path

import pytest

from actors.commands import train
from actors.commands.so_far import disk_full, so_far
from actors.commands.train import ended_by
from actors.runtime.errors import ActorCrashed, AskFailed, GaveUp, StartFailed, SystemFailed
from protocol.rows import AttemptRow, EpochRow, EvaluationRow, StepRow
from tests.commands.house import Trm, add_rows, row

RESUME = "bin/train --resume workspaces/my-001"
FULL = OSError(errno.ENOSPC, "No space left on device")


def step(epoch: int, number: int) -> StepRow:
    return row(StepRow, run_key=f"e{epoch}/c/s{number}", epoch=epoch, step=number)


def test_what_is_done_and_what_comes_next(tmp_path: Path) -> None:
    """Epochs, steps, calls, tokens, money; then the place where the run goes on."""
    assert so_far(tmp_path, 3) == ""  # nothing can be read, and that is no reason to fail
    add_rows(tmp_path)
    assert so_far(tmp_path, 3) == (
        " Done so far: 0 of 3 epochs, 0 steps, 0 calls, 0 tokens. Next: the seed package on val."
    )
    spent = {"outcome": "ok", "prompt_tokens": 1_500, "completion_tokens": 100, "usd": 0.6}
    add_rows(
        tmp_path,
        row(EvaluationRow, run_key="e0/val/seed", epoch=0, kind="seed"),
        row(AttemptRow, call="a", **spent),
        row(AttemptRow, call="b", **spent),
        step(1, 1),
    )
    assert so_far(tmp_path, 3) == (
        " Done so far: 0 of 3 epochs, 1 step, 2 calls, 3.2 k tokens, $1.20. "
        "Next: epoch 1, 1 step of which is done."
    )
    add_rows(tmp_path, row(EpochRow, epoch=1), step(1, 2))
    assert so_far(tmp_path, 3).endswith(" Done so far: 1 of 3 epochs, 2 steps, 2 calls, 3.2 k "
                                        "tokens, $1.20. Next: epoch 2.")  # fmt: skip
    assert so_far(tmp_path, 1).endswith("Next: the end of the run.")
    assert so_far(tmp_path, 1).startswith(" Done so far: 1 of 1 epoch, ")


def test_a_damaged_ledger_is_no_further_error(tmp_path: Path) -> None:
    """It is asked when something has gone wrong already."""
    (tmp_path / "run.db").write_bytes(b"no database" * 500)
    assert so_far(tmp_path, 3) == ""


def chained(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        sqlite3.OperationalError("database or disk is full"),
        GaveUp("ledger", "the last: OperationalError: database or disk is full"),
        ActorCrashed("workspace", "OSError: [Errno 28] No space left on device: 'x'"),
        chained(StartFailed("ledger", "it did not start"), FULL),
    ],
    ids=["write", "quota", "sqlite", "gave-up", "asked", "cause"],
)
def test_a_full_disk_is_known(error: Exception) -> None:
    """However it arrives: as itself, below another error, or as words of another actor."""
    assert disk_full(error)


def test_another_error_is_none() -> None:
    """Such as a file that may not be written."""
    assert not disk_full(OSError(errno.EACCES, "Permission denied"))
    assert not disk_full(GaveUp("ledger", "OperationalError: database is locked"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            GaveUp("ledger", "OperationalError: database or disk is full"),
            "The disk is full. Done so far: much.\nMake room, then go on with: " + RESUME,
        ),
        (
            chained(StartFailed("ledger", "no start"), FULL),
            "The disk is full. Done so far: much.\nMake room, then go on with: " + RESUME,
        ),
        (StartFailed("llm", "no start"), "Mend what the message names, then start again."),
        (
            AskFailed("gate", "a fault"),
            "The last checkpoint is whole. Done so far: much.\n"
            "See logs/train.jsonl, then go on with: " + RESUME,
        ),
    ],
    ids=["full", "full-at-start", "start", "other"],
)
def test_the_last_words_of_a_failed_run(error: SystemFailed | AskFailed, said: str) -> None:
    """The cause, what is done, and the line that goes on, behind what has to be done before."""
    assert ended_by(error, RESUME, " Done so far: much.").words == f"bin/train: {error}\n{said}"


def test_a_failed_run_has_a_last_line_in_its_log(
    trm: Trm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every other end: what watched the log knows that nothing more comes, and why."""

    async def fails(*_: object) -> None:
        raise GaveUp("gate", "ValueError: a fault")

    monkeypatch.setattr(train, "_train", fails)
    trm("train", "--workspace", tmp_path / "run", expect=1)
    last = json.loads((tmp_path / "run/logs/train.jsonl").read_text().splitlines()[-1])
    told = (last["event"], last["level"], last["status"], last["exit_code"])
    assert told == ("run.ended", "error", "failed", 1)
    assert "a fault" in last["error"]


def test_a_dot_is_the_folder_where_one_stands(
    trm: Trm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the latest run, which is what ``--resume`` without a folder means."""

    async def fails(*_: object) -> None:
        raise GaveUp("gate", "ValueError: a fault")

    monkeypatch.setattr(train, "_train", fails)
    workspace = tmp_path / "run"
    trm("train", "--workspace", workspace, expect=1)
    monkeypatch.chdir(workspace)
    assert f"--resume {workspace}" in trm("train", "--resume", ".", expect=1).err
