"""``bin/trm watch``: what it draws of a run that lives, that is over, and that left little."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_struct
from rich.console import Console

from actors.commands.watch_reading import Epoch, Ladder, View, read_view
from actors.commands.watch_screen import bar, draw, news_line, path_of
from actors.main import main
from actors.workspace.lock import WorkspaceLock
from protocol.llm import EndpointSeen

NEWS = {
    "event": "gate.decision", "timestamp": "2026-01-02T03:04:05Z", "level": "info", "epoch": 1,
    "step": 2, "class": "Counting Problem", "verdict": "accept", "e": 12.5,
}  # fmt: skip


def _view(*, news: int = 3) -> View:
    endpoint = EndpointSeen(
        name="agent", roles=("search",), in_flight=3, limit=8, ceiling=32, breaker="open",
        opens_in_s=7.0, last_error="transport: ConnectError",
    )  # fmt: skip
    actor = {"actor": "llm", "state": "up", "in_flight": 3, "depth": 1, "size": 64, "restarts": 2}
    idle = {"actor": "cache", "state": "up", "in_flight": 0, "depth": 0, "size": 64}
    open_test = Ladder(
        name="Counting \x1b[31mProblem", epoch=2, step=1, units=8, n_units=24,
        path=(1.0, 2.0, 0.01, 9.0), accept_from=10.0, verdict="", doing="gate", accepted=1, tests=2,
    )  # fmt: skip
    return View(
        workspace=Path("/runs/" + "deep/" * 30),
        run_id="demo-1",
        state="runs, process 7",
        alive=True,
        paused_by="ann (process 9)",
        progress=None,
        usd=1.5,
        waiting=4,
        calls=7,
        oldest_s=31.0,
        endpoints=(endpoint,),
        actors=(actor, *[idle] * 12),
        epochs=[Epoch(1, "v2 v1", (60, 90), None, 10, 3, "kept")],
        ladders=[open_test],
        news=(NEWS,) * news,
    )


def _drawn(view: View, *, height: int | None = None, plain: bool = False, width: int = 80) -> str:
    console = Console(width=width, no_color=True, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(draw(view, height=height, plain=plain))
    return captured.get()


def test_everything_is_there_within_80_columns() -> None:
    """And what a document or an endpoint says steers no terminal."""
    drawn = _drawn(_view())
    assert max(map(len, drawn.splitlines())) <= 80
    assert "\x1b" not in drawn
    for words in (
        "demo-1  runs, process 7", "paused by ann", "7 calls, 4 wait, oldest 31 s", "spent $1.50",
        "66.7% of 90", "kept", "2.1", "8/24", "open, again in 7 s", "ConnectError", "llm",
        "03:04:05 gate.decision e1.2 Counting Problem verdict=accept e=12.5", "1/2",
    ):  # fmt: skip
        assert words in drawn, words


def test_a_low_terminal_shows_what_matters() -> None:
    """Idle actors go first; what moves, fails or was said last stays."""
    drawn = _drawn(_view(news=12), height=24)
    assert len(drawn.splitlines()) <= 24
    assert "cache" not in drawn
    assert "gate.decision" in drawn
    assert "llm" in drawn


def test_a_terminal_that_knows_only_ascii() -> None:
    assert _drawn(_view(), plain=True).isascii()


def test_a_ladder_fills_and_its_path_climbs() -> None:
    """Logarithmic, from 0.1 to where an edit is accepted."""
    assert bar(0, 0) == ""
    assert bar(6, 12) == "██████░░░░░░"
    assert bar(12, 12, plain=True) == "#" * 12
    assert path_of((0.0, 0.1, 1.0, 10.0, 1e9, float("inf")), 10.0) == "▁▁▅███"
    assert path_of((), 10.0) == ""
    assert len(path_of((1.0,) * 99, 0.0)) == 12


def test_an_event_with_a_line_of_its_own_is_that_line() -> None:
    event = {"event": "heartbeat", "timestamp": "2026-01-02T03:04:05Z", "line": "still\nwaiting"}
    assert news_line(event) == "03:04:05 still waiting"


def _workspace(folder: Path, *events: Mapping[str, object]) -> Path:
    (folder / "logs").mkdir()
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    lines = ["not json", *map(json.dumps, events), '{"cut of']
    (folder / "logs" / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_a_run_that_is_over_and_one_that_died(tmp_path: Path) -> None:
    """Without run.db too: what the log's end says is shown; a torn line is passed over."""
    (tmp_path / "over").mkdir()
    started = {"event": "run.started", "timestamp": "2026-01-02T03:00:00Z", "run_id": "demo-1"}
    ended = {"event": "run.ended", "timestamp": "2026-01-02T03:04:05Z", "status": "done"}
    stats = {"event": "runtime.stats", "timestamp": "x", "actors": [{"actor": "llm"}, 3]}
    over = read_view(_workspace(tmp_path / "over", started, stats, ended))
    assert (over.run_id, over.state, over.alive) == ("demo-1", "finished (done)", False)
    assert over.actors == [{"actor": "llm"}]
    (tmp_path / "died").mkdir()
    died = read_view(_workspace(tmp_path / "died", ended, started, NEWS))
    assert died.state == "died (its process is gone and said no last word)"
    assert [event["event"] for event in died.news][-1] == "gate.decision"


@pytest.mark.parametrize(
    ("events", "held", "state", "actor", "goes_on"),
    [
        (("run.ended done",), False, "finished (done)", "finished", False),
        (("run.ended early_stop",), False, "finished (early_stop)", "finished", False),
        (("run.ended stopped",), False, "stopped", "stopped", True),
        (("run.ended refused",), False, "stopped (refused)", "stopped", True),
        (("run.ended failed",), False, "failed (crashes)", "failed", True),
        (("runtime.gave_up", "runtime.stopped"), False, "failed (crashes)", "failed", True),
        ((), False, "died (its process is gone", "dead", True),
        ((), True, "is at work there and does not answer", "up", False),
    ],
)
def test_how_a_run_ended_is_what_log_and_lock_say(
    tmp_path: Path, events: tuple[str, ...], held: bool, state: str, actor: str, goes_on: bool
) -> None:
    """Its actors too: one that stopped in order is not dead."""
    ended_before = {"event": "run.ended", "timestamp": "x", "status": "done"}
    stats = {"event": "runtime.stats", "actors": [{"actor": "llm", "state": "up"}]}
    last = [
        {
            "event": event.split()[0],
            "status": event.split()[-1],
            "detail": "crashes",
            "error": "crashes",
        }
        for event in events
    ]
    _workspace(tmp_path, ended_before, {"event": "run.resumed"}, stats, *last)
    lock = WorkspaceLock(tmp_path)
    if held:
        lock.acquire()
    drawn = _drawn(read_view(tmp_path, refused=lambda _: False), width=200)
    lock.release()
    assert state in drawn.splitlines()[0]
    assert f"llm   {actor}" in drawn
    assert (f"bin/train --resume {tmp_path}" in drawn) is goes_on


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("alive", [True, False])
def test_endpoints_that_are_down_leave_the_table_its_room(width: int, alive: bool) -> None:
    """Every name, role and load is whole; why it is down stands below."""
    down = EndpointSeen(
        name="agent-on-the-9", roles=("search", "judge", "evolve"), in_flight=0, limit=8,
        ceiling=64, breaker="open", opens_in_s=39.0,
        last_error="transport: ConnectError: [Errno -2] Name or service not known",
    )  # fmt: skip
    again = replace_struct(down, name="agent-b", breaker="half_open", last_error="timeout: idle")
    view = replace(_view(), endpoints=(down, again), alive=alive)
    lines = _drawn(view, width=width).splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("endpoint"))
    table = [line.split() for line in lines[at + 1 : at + 3]]
    wait = [",", "again", "in", "39", "s"] if alive else []
    assert [" ".join(row) for row in table] == [
        " ".join(["agent-on-the-9", "search,judge,evolve", "0/8", "(max", "64)", "open", *wait])
        .replace("open ,", "open,"),
        " ".join(["agent-b", "search,judge,evolve", "0/8", "(max", "64)", "half-open", *wait])
        .replace("half-open ,", "half-open,"),
    ]  # fmt: skip
    assert lines[at + 3] == "agent-on-the-9: the name does not resolve"
    assert lines[at + 4] == "agent-b: idle"


@pytest.mark.parametrize(
    "command",
    [
        ["watch"],
        ["status"],
        ["report", "--out", "{out}"],
        ["control", "pause"],
        ["control", "concurrency", "3"],
    ],
    ids=" ".join,
)
def test_without_a_workspace_the_latest_is_taken_and_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    """Of all runs, whatever they are called; and without any, how to make one."""
    monkeypatch.setattr("actors.commands.workspace_view.to_write", lambda name: tmp_path / name)
    words = [word.format(out=tmp_path / "r.html") for word in command]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"there is no workspace in {tmp_path / 'workspaces'}" in said
    assert "make one with bin/train" in said
    for age, name in enumerate(("mine-001", "demo-001", "demo-002")):
        folder = tmp_path / "workspaces" / name
        folder.mkdir(parents=True)
        _workspace(folder, NEWS)
        for path in (folder / "manifest.json", folder / "logs" / "train.jsonl"):
            os.utime(path, (1e9 - age, 1e9 - age))
    main(words)  # these say more or less of so little, but of the right one
    taken = tmp_path / "workspaces" / "mine-001"
    line = f"bin/trm {words[0]}: {taken}, the latest of {tmp_path / 'workspaces'}\n"
    assert line in capsys.readouterr().err


def test_control_says_what_is_wrong_with_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    for words, why in (
        (["some/where"], "none follows some/where"),
        (["some/where", "halt"], "'halt' is none"),
        (["concurrency", "many"], "many: only a number may follow concurrency"),
        (["concurrency", "1", "2"], "1 2: only a number may follow"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["control", *words])
        assert ended.value.code == 2
        assert why in capsys.readouterr().err


def test_the_command_prints_one_picture_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(_workspace(tmp_path, NEWS))]) == 0
    out, err = capsys.readouterr()
    assert "gate.decision" in out
    assert err == ""
    assert main(["watch", str(tmp_path / "logs")]) == 2
    assert "is no workspace" in capsys.readouterr().err


def test_control_says_that_nobody_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1 for a run that is not there, 2 for what cannot be meant."""
    assert main(["control", str(tmp_path), "pause"]) == 1
    assert "no run is listening" in capsys.readouterr().err
    for wrong in (["concurrency"], ["concurrency", "0"], ["pause", "3"]):
        assert main(["control", str(tmp_path), *wrong]) == 2
    assert main(["control", str(tmp_path / "none"), "status"]) == 2
