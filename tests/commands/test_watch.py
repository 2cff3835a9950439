"""``bin/trm watch``: what it draws of a run that lives, that is over, and that left little."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from actors.commands.watch_reading import Epoch, Ladder, View, read_view
from actors.commands.watch_screen import bar, draw, news_line, path_of
from actors.main import main
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


def _drawn(view: View, *, height: int | None = None, plain: bool = False) -> str:
    console = Console(width=80, no_color=True, highlight=False, force_terminal=False)
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
    assert (over.run_id, over.state, over.alive) == ("demo-1", "is over: done", False)
    assert over.actors == [{"actor": "llm"}]
    (tmp_path / "died").mkdir()
    died = read_view(_workspace(tmp_path / "died", ended, started, NEWS))
    assert "no last word" in died.state
    assert [event["event"] for event in died.news][-1] == "gate.decision"


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
