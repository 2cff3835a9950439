"""How far the factorial gate's pairs are: the sums, the line, and what a resumed run shows."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from actors.monitor.board import Board, Progress
from actors.monitor.words import progress_line

Event = Mapping[str, object]


def _phase(name: str, phase: int, pairs: int, waiting: int, void: int = 0) -> Event:
    told = {"event": "factorial.phase", "class": name, "phase": phase, "pairs": pairs}
    return {**told, "waiting": waiting, "void": void}


def _pair(name: str, phase: int, state: str = "drawn") -> Event:
    return {"event": "factorial.pair", "class": name, "phase": phase, "state": state}


def _arm(name: str, phase: int, pair: int, outcome: str) -> Event:
    run_key = f"factorial/{name}/p{phase}/{pair}/a"
    return {"event": "rollout.done", "run_key": run_key, "outcome": outcome, "question_id": "q"}


def _begun() -> Board:
    board = Board(epochs=2)
    board.take({"event": "epoch.start", "epoch": 2}, 0.0)
    for name, pairs in (("A b", 10), ("C", 6)):
        planned = {"class": name, "steps": 1, "done": 0, "pairs": pairs}
        board.take({"event": "class.planned", "epoch": 2, **planned}, 0.0)
    board.take(_phase("A b", 2, 10, 8, void=1), 0.0)
    return board


def _seen(board: Board, now: float) -> Progress:
    progress = board.progress(now)
    assert progress is not None
    return progress


def test_pairs_of_all_classes_are_one_phase() -> None:
    """Done of planned, whoever drew them; the time left is told by those of this process."""
    board = _begun()
    for number in range(4):
        board.take(_arm("a-b", 2, number, "right" if number else "wrong"), number + 1.0)
        board.take(_pair("A b", 2), number + 1.0)
    seen = _seen(board, 4.0)
    assert (seen.phase, seen.done, seen.planned, seen.missing) == ("pairs", 6, 16, 1)
    assert (seen.right, seen.answered, seen.accuracy) == (3, 4, 0.75)
    assert seen.eta_s == 10.0  # four of ten that are left took four seconds
    assert progress_line(seen, None).startswith(
        "ep 2/2  pairs 6/16 (a-b pairs: 6/10)  acc 75.0% [30%, 95%] of 4"
    )
    assert "void 1" in progress_line(seen, None)
    assert board.counts["factorial.pair", "drawn"] == 4


def test_a_class_without_live_edits_has_no_pairs() -> None:
    """Its share of the plan is no longer waited for; a phase that is whole is not at work."""
    board = _begun()
    board.take({"event": "factorial.phase_done", "class": "C", "phase": 2, "pairs": 0}, 1.0)
    assert (_seen(board, 1.0).done, _seen(board, 1.0).planned) == (2, 10)
    board.take({"event": "factorial.phase_done", "class": "A b", "phase": 2, "pairs": 10}, 2.0)
    assert board.progress(2.0) is None


def test_the_certification_is_a_phase_of_its_own() -> None:
    """It begins with nothing done; what an earlier phase still says is passed over."""
    board = _begun()
    board.take(_phase("C", 3, 30, 30), 5.0)
    board.take(_pair("A b", 2), 6.0)
    board.take(_pair("C", 3, "void"), 7.0)
    seen = _seen(board, 7.0)
    assert (seen.phase, seen.done, seen.planned, seen.missing) == ("certification pairs", 1, 30, 1)
    board.take({"event": "epoch.done", "epoch": 2}, 8.0)
    assert board.progress(8.0) is None


def test_a_pass_goes_before_pairs() -> None:
    """Val at the end: the questions of the pass are what is told."""
    board = _begun()
    board.take({"event": "pass.start", "run_key": "e2/val/fast", "planned": 9}, 1.0)
    assert _seen(board, 1.0).phase == "val fast"


_NAMES = st.sampled_from(["factorial.phase", "factorial.pair", "factorial.phase_done",
                          "class.planned", "epoch.start", "rollout.done"])  # fmt: skip
_KEYS = st.sampled_from(
    ["event", "class", "phase", "pairs", "waiting", "void", "state", "epoch", "run_key", "outcome"]
)
_VALUES = st.one_of(st.none(), st.integers(-9, 99), st.floats(), st.text(max_size=5), _NAMES)


@given(st.lists(st.tuples(_NAMES, st.dictionaries(_KEYS, _VALUES, max_size=8)), max_size=30))
def test_no_line_of_a_log_can_break_them(events: list[tuple[str, dict[str, object]]]) -> None:
    """They run inside the logging of every actor."""
    board = Board(epochs=2)
    for at, (name, event) in enumerate(events):
        board.take({**event, "event": name}, float(at))
        progress = board.progress(float(at))
        if progress is not None:
            assert 0 <= progress.done <= max(progress.planned, progress.done)
            assert progress_line(progress, None)
