"""A run as its operator has it: JSON on stdout, paused and let go on by its socket, stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actors.main import main
from actors.monitor.client import ask_run
from actors.monitor.wishes import NAME, Reply, Wish
from tests.system.runs import SMALL, events, run_to_end, running, settings


def test_a_run_is_paused_goes_on_and_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No call begins in a pause; the stream for machines begins with launch and ends with done."""
    workspace = tmp_path / "run"
    slow = (*SMALL, "twin.chunk_delay_s=0.02", "run.log_level=warning")
    with running("--json", *settings(slow), "--workspace", str(workspace)) as run:
        run.wait_for("Before spending")

        def say(wish: Wish) -> Reply:
            reply = ask_run(workspace, wish)
            assert reply.ok, reply.line
            return reply

        say(Wish(do="concurrency", value=2, endpoint="twin-agent"))
        say(Wish(do="pause"))
        while True:  # what is in flight finishes
            status = say(Wish(do="status")).status
            if not sum(one["in_flight"] for one in status["endpoints"]):  # type: ignore[attr-defined]
                break
        before = status["counts"]
        assert main(["watch", str(workspace), "--once"]) == 0
        seen = capsys.readouterr().out
        assert "paused by" in seen
        assert "0/2 (max 2)" in seen
        status = say(Wish(do="status")).status
        assert status["paused_by"]
        assert status["counts"] == before, "a call ended that had to begin in the pause"
        say(Wish(do="resume"))
        while say(Wish(do="status")).status["counts"] == before:
            pass
        assert main(["control", str(workspace), "stop"]) == 0
        assert "what is finished is kept" in capsys.readouterr().out
        out = run.finish(75)
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["event"] for record in (records[0], records[-1])] == ["launch", "done"]
    assert records[0]["workspace"] == str(workspace)
    assert not records[0]["resumed"]
    assert records[0]["config"]["run"]["seed"] == 1
    done = records[-1]
    assert (done["status"], done["exit_code"]) in {("drained", 75), ("stopped", 75)}
    assert "--resume" in done["resume"]
    told = [record["event"] for record in records]
    assert {"control.paused", "control.resumed", "control.stop"} <= set(told)
    assert not (workspace / NAME).exists()
    assert {event["level"] for event in events(workspace)} <= {"warning", "error"}


def test_json_says_what_was_refused(tmp_path: Path) -> None:
    """Without a run there is no launch, but there is a last word."""
    refused = run_to_end(
        "--json", "--set", "no.such=1", "--workspace", str(tmp_path / "w"), expect=2
    )
    (line,) = refused.stdout.splitlines()
    done = json.loads(line)
    assert (done["event"], done["status"], done["exit_code"]) == ("done", "refused", 2)
    assert "no.such" in done["error"]
