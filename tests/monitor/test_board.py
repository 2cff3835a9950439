"""The sums over a log: what is at work, how far, how fast, and that no line can break them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from actors.monitor.board import LAST_EVENTS, Board, Progress
from actors.monitor.phases import key_of, label_of

Event = Mapping[str, object]


def _fed(board: Board, events: list[tuple[float, Event]]) -> Board:
    for now, event in events:
        board.take(event, now)
    return board


def _rollout(run_key: str, question: int, outcome: str, **scope: object) -> Event:
    told = {"event": "rollout.done", "run_key": run_key, "outcome": outcome}
    return {**told, "question_id": f"q{question}", **scope}


def _seen(board: Board, now: float) -> Progress:
    progress = board.progress(now)
    assert progress is not None
    return progress


def test_the_phase_of_a_run_key() -> None:
    """A step is one phase with its rollouts and its gate; a pass is one by itself."""
    assert key_of("e2/counting-problem/s3/rollout") == "e2/counting-problem/s3"
    assert key_of("e2/counting-problem/s3/gate/b1") == "e2/counting-problem/s3"
    assert key_of("e1/slow/before") == "e1/slow/before"
    assert label_of("e2/counting-problem/s3") == "counting-problem step 3"
    assert label_of("e1/val/fast") == "val fast"


def test_a_pass_is_counted_and_timed() -> None:
    """Missing is not done; a question that is answered at the second try counts once."""
    board = Board(epochs=3)
    board.take({"event": "epoch.start", "epoch": 1}, 0.0)
    board.take({"event": "pass.start", "run_key": "e1/val/fast", "planned": 10}, 0.0)
    for at in range(4):
        board.take(_rollout("e1/val/fast", at, "right" if at % 2 else "wrong"), at + 1.0)
    board.take(_rollout("e1/val/fast", 4, "missing"), 5.0)
    seen = _seen(board, 5.0)
    assert (seen.phase, seen.epoch, seen.epochs) == ("val fast", 1, 3)
    assert (seen.done, seen.planned, seen.right, seen.missing) == (4, 10, 2, 1)
    assert seen.accuracy == 0.5
    assert seen.interval == (0.15, 0.85)
    assert seen.rate == 1.0
    assert seen.eta_s == 5 / 4 * 6
    board.take(_rollout("e1/val/fast", 4, "right"), 6.0)
    assert (_seen(board, 6.0).done, _seen(board, 6.0).missing) == (5, 0)
    board.take({"event": "pass.done", "run_key": "e1/val/fast"}, 7.0)
    assert board.progress(7.0) is None


def _steps() -> Iterator[tuple[float, Event]]:
    yield 0.0, {"event": "epoch.start", "epoch": 1}
    for name in ("A b", "C"):
        yield 0.0, {"event": "class.planned", "epoch": 1, "class": name, "steps": 3, "done": 1}
    for name in ("a-b", "c"):
        yield 0.0, {"event": "pass.start", "run_key": f"e1/{name}/s2/rollout", "planned": 2}
    yield 1.0, _rollout("e1/a-b/s2/rollout", 1, "right")
    yield 2.0, _rollout("e1/a-b/s2/rollout", 2, "wrong")
    yield 2.0, {"event": "pass.done", "run_key": "e1/a-b/s2/rollout"}
    yield 3.0, _rollout("e1/a-b/s2/gate/b0", 9, "right")
    scope = {"epoch": 1, "class": "A b", "step": 2}
    yield 3.0, _rollout("baseline/a-b/1234/v1/d0", 9, "wrong", **scope)
    look = {"units": 8, "n_units": 24, "wins": 3, "losses": 1, "e": 3.5, "accept_from": 10.0}
    yield 4.0, {"event": "gate.look", "run_key": "e1/a-b/s2", **look}


def test_steps_of_classes_side_by_side_are_one_phase_of_many() -> None:
    """Steps done of those that this process must do; accuracy over the steps' own questions."""
    board = _fed(Board(epochs=2), list(_steps()))
    seen = _seen(board, 5.0)
    assert (seen.phase, seen.done, seen.planned) == ("steps", 0, 4)
    assert (seen.right, seen.answered, seen.rollouts) == (1, 2, 4)
    by_key = {one.key: one for one in seen.phases}
    tested, answering = by_key["e1/a-b/s2"], by_key["e1/c/s2"]
    assert (tested.doing, tested.units, tested.n_units, tested.path) == ("gate", 8, 24, (3.5,))
    assert tested.rollouts == 4
    assert (answering.doing, answering.done, answering.planned) == ("answering", 0, 2)
    board.take({"event": "step.done", "epoch": 1, "class": "A b", "step": 2}, 10.0)
    seen = _seen(board, 10.0)
    assert (seen.done, seen.answered, seen.eta_s) == (1, 2, 30.0)
    assert [one.key for one in seen.phases] == ["e1/c/s2"]


def test_the_end_of_the_run_is_known_after_one_epoch() -> None:
    """From the mean of the epochs that were seen whole."""
    board = Board(epochs=4)
    board.take({"event": "epoch.start", "epoch": 1}, 0.0)
    board.take({"event": "pass.start", "run_key": "e1/val/fast", "planned": 3}, 90.0)
    assert _seen(board, 95.0).run_eta_s is None
    board.take({"event": "epoch.done", "epoch": 1}, 100.0)
    board.take({"event": "epoch.start", "epoch": 2}, 100.0)
    board.take({"event": "pass.start", "run_key": "e2/val/fast", "planned": 3}, 130.0)
    assert _seen(board, 130.0).run_eta_s == 70.0 + 2 * 100.0


def test_chats_tries_and_first_tokens() -> None:
    """Cache share of chats, failed tries of tries, and the last first tokens."""
    board = Board()
    board.take({"event": "pass.start", "run_key": "e0/val/seed", "planned": 3}, 0.0)
    for at in range(20):
        told = {"event": "llm.call", "outcome": "ok", "first_token_s": (at + 1) / 10}
        board.take(told, 1.0)
    for _ in range(5):
        board.take({"event": "llm.call", "outcome": "cached"}, 1.0)
    for _ in range(4):
        board.take({"event": "llm.attempt_failed", "kind": "timeout"}, 1.0)
    seen = _seen(board, 2.0)
    assert seen.cache == 0.2
    assert seen.retries == round(4 / 24, 4)
    assert seen.first_token_s == (1.05, 1.905)


def test_old_rollouts_leave_the_rate() -> None:
    """Two a second for a minute, then nothing."""
    board = Board()
    board.take({"event": "pass.start", "run_key": "e0/val/seed", "planned": 1000}, 0.0)
    for at in range(240):
        board.take(_rollout("e0/val/seed", at, "right"), at / 2)
    assert 1.9 < board.rate(120.0) <= 2.1
    assert board.rate(500.0) == 0.0


def test_news_are_kept_and_repetitions_are_not() -> None:
    """The last ones; a breaker that opens every minute of a night is told once."""
    board = Board()
    for at in range(100):
        board.take({"event": "llm.breaker_open", "n": at, "repeated": at > 0}, float(at))
        board.take({"event": "llm.call"}, float(at))
    assert [event["n"] for event in board.news] == [0]
    for at in range(100):
        board.take({"event": "gate.decision", "verdict": "accept", "n": at}, float(at))
    assert len(board.news) == LAST_EVENTS
    assert board.counts["gate.decision", "accept"] == 100


_KEYS = st.sampled_from(
    [
        "event", "run_key", "outcome", "class", "epoch", "step", "planned", "done", "steps", "e",
        "units", "actors", "endpoints", "kind", "first_token_s", "accept_from", "question_id",
        "verdict", "repeated", "timestamp",
    ]
)  # fmt: skip
_NAMES = st.sampled_from(
    [
        "pass.start", "pass.done", "rollout.done", "gate.look", "step.done", "epoch.start",
        "epoch.done", "llm.call", "class.planned", "runtime.stats", "llm.attempt_failed",
        "gate.decision", "progress",
    ]
)  # fmt: skip
_RUN_KEYS = st.sampled_from(["e1/a/s1/rollout", "e1/a/s1", "baseline/a/x/v1/d0", "e1/val/fast", ""])
_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), _NAMES, _RUN_KEYS,
    st.lists(st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), max_size=2),
)  # fmt: skip


@given(st.lists(st.dictionaries(_KEYS, _VALUES, max_size=8), max_size=30))
def test_no_line_of_a_log_can_break_the_sums(events: list[dict[str, object]]) -> None:
    """They run inside the logging of every actor: an exception there would be the actor's."""
    board = Board(epochs=2)
    for at, event in enumerate(events):
        board.take(event, float(at))
        progress = board.progress(float(at))
        if progress is not None:
            assert progress.accuracy is None or 0 <= progress.accuracy <= 1
            assert progress.eta_s is None or progress.eta_s >= 0
