"""Lines for people: one line each, nothing that is not known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from actors.monitor.board import Progress
from actors.monitor.phases import PhaseSeen
from actors.monitor.words import heartbeat_line, progress_line
from protocol.llm import EndpointSeen, EndpointsSeen

NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def _endpoint(name: str, breaker: str = "closed", opens_in_s: float = 0.0) -> EndpointSeen:
    assert breaker in ("closed", "open", "half_open", "out")
    return EndpointSeen(
        name=name,
        roles=("search",),
        in_flight=8,
        limit=16,
        ceiling=32,
        breaker=breaker,  # type: ignore[arg-type]  # asserted above
        opens_in_s=opens_in_s,
        last_error="",
    )


def _seen(*endpoints: EndpointSeen, calls: int = 12, paused_by: str = "") -> EndpointsSeen:
    return EndpointsSeen(
        endpoints=endpoints,
        waiting=4,
        calls=calls,
        oldest_s=94.2,
        paused_by=paused_by,
        usd=3.141,
    )


def _progress(**given: object) -> Progress:
    base: dict[str, object] = {
        "phase": "val fast", "epoch": 2, "epochs": 3, "done": 41, "planned": 90, "right": 25,
        "answered": 41, "missing": 0, "rollouts": 41, "rate": 3.21, "accuracy": 0.6098,
        "interval": (0.457, 0.743), "first_token_s": (0.9, 3.1), "cache": 0.37, "retries": 0.012,
        "eta_s": 240.0, "run_eta_s": 7560.0,
    }  # fmt: skip
    return Progress(**(base | given))  # type: ignore[arg-type]  # a test's shorthand


def test_a_pass_with_everything_known() -> None:
    assert progress_line(_progress(), _seen(_endpoint("a"), _endpoint("b"))) == (
        "ep 2/3  val fast 41/90  acc 61.0% [46%, 74%]  3.2/s  in flight a 8/16, b 8/16 (4 wait)  "
        "first token 0.9 s (p95 3.1)  cache 37%  failed tries 1.2%  $3.14  about 4 min left  "
        "the run 2.1 h"
    )


def test_what_is_not_known_is_left_out() -> None:
    bare = _progress(
        planned=0, done=0, answered=0, accuracy=None, interval=None, rate=0.0, eta_s=None,
        run_eta_s=None, first_token_s=None, cache=None, retries=None, epochs=0,
    )  # fmt: skip
    assert progress_line(bare, None) == "ep 2  val fast 0"


def test_steps_name_what_their_classes_do() -> None:
    phases = tuple(
        PhaseSeen(
            key=f"e1/c{at}/s1", label=f"c{at} step 1", doing=doing, done=3, planned=10, right=1,
            missing=0, rollouts=3, seconds=1.0, units=8, n_units=24, e=3.14159,
        )
        for at, doing in enumerate(("answering", "editing", "gate", "gate"))
    )  # fmt: skip
    line = progress_line(_progress(phase="steps", done=3, planned=18, phases=phases), None)
    assert line.startswith(
        "ep 2/3  steps 3/18 (c0 step 1: 3/10, c1 step 1: editing, c2 step 1: gate 8/24 e 3.1, "
        "1 more)  acc 61.0% [46%, 74%] of 41"
    )


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        (
            _seen(_endpoint("a", "open", 190.0), _endpoint("b")),
            "still waiting: 12 calls, oldest 94 s, "
            "endpoint a rests (its breaker is open) until 12:03:10",
        ),
        (
            _seen(_endpoint("a", "half_open"), _endpoint("b", opens_in_s=5.0), calls=1),
            "still waiting: 1 call, oldest 94 s, endpoint a is being tried again, "
            "endpoint b asked to be left alone until 12:00:05",
        ),
        (
            _seen(_endpoint("a", "out", 60.0), _endpoint("b", "out")),
            "still waiting: 12 calls, oldest 94 s, endpoint a is out (it serves nobody), tried "
            "again at 12:01:00, endpoint b is out (it serves nobody), tried again with the next "
            "call",
        ),
        (
            _seen(_endpoint("a"), paused_by="ann (process 7)"),
            "paused by ann (process 7): 12 calls in hand or waiting; go on with: trm x resume",
        ),
        (
            _seen(_endpoint("a"), calls=0),
            "still waiting: nothing has finished for 35 s, and no call is under way",
        ),
        (
            None,
            "still waiting: nothing has finished for 35 s; the client does not answer "
            "(it is restarted or stops)",
        ),
    ],
    ids=["open", "tried", "out", "paused", "idle", "away"],
)
def test_a_heartbeat_says_what_is_waited_for(seen: EndpointsSeen | None, line: str) -> None:
    assert heartbeat_line(35.0, seen, NOW, "trm x resume") == line
