"""Whole trainings whose endpoint, cache or budget goes away in the middle: same end, or a stop."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from tests.cache.support import RedisServer
from tests.system.runs import SMALL, events, result_of, run_to_end, running, settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


IMPATIENT = (
    *SMALL,
    "llm.first_token_s=0.5",
    "llm.breaker_failures=2",
    "llm.breaker_cooldown_s=0.2",
    "llm.attempts=2",
    "llm.backoff_s=0.01",
)


@pytest.mark.parametrize("calls", [300, 420])
def test_S18_a_limit_stops_in_order_and_the_run_goes_on_when_it_is_raised(
    tmp_path: Path, undisturbed_result: dict[str, object], calls: int
) -> None:
    """S18: typed stop, exit 75, no made-up answers; what was spent counts after a resume too.

    Wherever the limit falls: in a pass, a diagnosis or a gate's block, it decides nothing.
    """
    workspace = tmp_path / "run"
    limited = (*SMALL, f"limits.max_calls={calls}")
    done = run_to_end(*settings(limited), "--workspace", str(workspace), expect=75)
    assert f"limits.max_calls = {calls}: {calls} calls were made" in done.stderr
    assert f"--resume {workspace}" in done.stderr
    again = run_to_end("--resume", str(workspace), expect=75)
    assert f"limits.max_calls = {calls}: {calls} calls were made" in again.stderr
    run_to_end("--resume", str(workspace), "--set", "limits.max_calls=null")
    assert result_of(workspace) == undisturbed_result


def test_P2_6_an_outage_pauses_the_run_and_scores_nothing(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """Every endpoint hangs for a while: said once, waited for, and the result is the same."""
    workspace = tmp_path / "run"
    with running(*settings(IMPATIENT), "--workspace", str(workspace)) as run:
        twin = int(run.wait_for("twin.up").rpartition("pid=")[2])
        run.wait_for("epoch.start")
        os.kill(twin, signal.SIGSTOP)
        try:
            run.wait_for("llm.paused")
            for _ in range(3):  # probes that fail: they are no attempts of their calls
                run.wait_for("llm.breaker_open")
        finally:
            with suppress(ProcessLookupError):
                os.kill(twin, signal.SIGCONT)
        run.wait_for("llm.resumed")
        run.finish(0)
    assert result_of(workspace) == undisturbed_result


def test_a_stop_in_an_outage_does_not_wait_and_is_resumed_to_the_same_end(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """One signal: what only waits for an endpoint is let go; no drain of ten minutes."""
    workspace = tmp_path / "run"
    patient = (*IMPATIENT, "runtime.drain_s=600")
    with running(*settings(patient), "--workspace", str(workspace)) as run:
        twin = int(run.wait_for("twin.up").rpartition("pid=")[2])
        run.wait_for("epoch.start")
        os.kill(twin, signal.SIGSTOP)
        try:
            run.wait_for("llm.paused")
            run.signal(signal.SIGINT)
            run.wait_for("runtime.draining", "a second signal stops at once")
            run.wait_for("runtime.stalled")
        finally:
            with suppress(ProcessLookupError):
                os.kill(twin, signal.SIGCONT)
        run.finish(75)
    run_to_end("--resume", str(workspace))
    assert result_of(workspace) == undisturbed_result


def test_an_endpoint_that_never_answers_ends_the_run_soon(tmp_path: Path) -> None:
    """Not after a day, and not once per wave of questions: with where, why and what to do."""
    with socket.socket() as closed:  # bound, and never listened to
        closed.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        config = tmp_path / "mine.yaml"
        config.write_text(
            "run: {name: mine}\n"
            "llm:\n"
            "  endpoints:\n"
            f"    - {{name: x, base_url: '{base_url}', model: m, roles: [search, judge, evolve]}}\n"
            "  first_answer_s: 1\n"
            "  breaker_cooldown_s: 0.1\n"
            "  backoff_s: 0.01\n",
            encoding="utf-8",
        )
        workspace = tmp_path / "run"
        done = run_to_end(str(config), "--workspace", str(workspace), expect=75)
    trouble = f"x {base_url}: connection refused"
    said = [line for line in done.stderr.splitlines() if "llm.paused" in line]
    assert len(said) == 1
    assert (
        "search, judge, evolve: no endpoint answers (not one of them has answered yet)" in said[0]
    )
    assert trouble in said[0]
    assert "Wrong base_url? try: bin/train CONFIG --check" in said[0]
    assert f"no endpoint of role search has answered yet, in 1 s: {trouble}" in done.stderr
    assert "(bin/train CONFIG --check tries every endpoint)" in done.stderr
    assert f"--resume {workspace}" in done.stderr
    told = {event["event"]: event for event in events(workspace)}
    [paused] = [event for event in events(workspace) if event["event"] == "llm.paused"]
    began, ended = (
        datetime.fromisoformat(str(told[name]["timestamp"])) for name in ("llm.paused", "run.ended")
    )
    # three tries of three waves of questions would each wait anew
    assert (ended - began).total_seconds() < 6
    assert "question_id" not in paused
    assert (paused["never_answered"], paused["waits_at_most_s"]) == (True, 1.0)


@pytest.mark.anyio
async def test_S17_a_redis_that_dies_and_returns_costs_nothing(
    tmp_path: Path, undisturbed_result: dict[str, object]
) -> None:
    """S17: killed and started again in mid-run; a miss meanwhile, used again afterwards."""
    workspace = tmp_path / "run"
    async with RedisServer.started(tmp_path) as redis:
        cached = (*SMALL, "cache.backend=redis")
        with running(*settings(cached), "--workspace", str(workspace), redis_url=redis.url) as run:
            await to_thread.run_sync(run.wait_for, "evaluation.done")
            await redis.kill()
            await to_thread.run_sync(run.wait_for, "cache.unavailable")
            await redis.start()
            await to_thread.run_sync(run.wait_for, "cache.available_again")
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(run.finish, 0)
    assert result_of(workspace) == undisturbed_result
    closed = [event for event in events(workspace) if event["event"] == "cache.closed"]
    assert [event["unavailable"] != 0 for event in closed] == [True]
