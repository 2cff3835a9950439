"""The pure parts: budget, pause, fault entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.runtime.errors import InjectedCrash, WiringError
from actors.runtime.faults import FaultPlan
from actors.runtime.restart import RestartBudget, pause_s


def test_p4_the_window_slides() -> None:
    """3 in 10 s: a fourth within the window is refused, at its very edge it is not."""
    budget = RestartBudget(3, 10.0)
    assert [budget.allows(now) for now in (0.0, 1.0, 2.0)] == [True] * 3
    assert budget.allows(10.0)
    assert budget.recent == 3
    assert not budget.allows(10.5)


@given(st.lists(st.floats(0, 1000), max_size=40), st.integers(0, 5))
def test_p4_gives_up_exactly_when_a_window_holds_too_many(times: list[float], most: int) -> None:
    """Against the definition, counted anew for every crash."""
    times.sort()
    budget = RestartBudget(most, 60.0)
    for index, now in enumerate(times):
        within = sum(1 for then in times[: index + 1] if then > now - 60.0)
        assert budget.allows(now) == (within <= most)


@given(st.integers(1, 1000), st.integers(1, 100))
def test_p4_the_pause_is_doubled_jittered_and_capped(restart: int, recent: int) -> None:
    """Between a half and the whole of the doubled base; the same again for the same restart."""
    pause = pause_s("llm", restart, recent, base_s=0.05, cap_s=10.0)
    longest = min(10.0, 0.05 * 2.0 ** (recent - 1))
    assert longest / 2 <= pause <= longest
    assert pause == pause_s("llm", restart, recent, base_s=0.05, cap_s=10.0)


def test_p4_actors_that_fall_together_do_not_rise_together() -> None:
    """The jitter depends on name and restart."""
    pauses = {pause_s(name, n, 1, base_s=1.0, cap_s=9.0) for name in "abc" for n in range(1, 9)}
    assert len(pauses) == 24


def test_a_fault_strikes_once_at_its_message() -> None:
    """Counted per actor."""
    plan = FaultPlan(["llm@2", "llm@4"], ["llm", "cache"])
    struck = []
    for nth in range(1, 7):
        plan.begin("cache")
        try:
            plan.begin("llm")
        except InjectedCrash as exc:
            struck.append((nth, str(exc)))
    assert struck == [(2, "llm@2"), (4, "llm@4")]


@pytest.mark.parametrize("entry", ["llm", "llm@0", "llm@x", "@3", "gate@1", "llm@-1"])
def test_a_fault_that_cannot_strike_is_refused(entry: str) -> None:
    """By name, before anything runs."""
    with pytest.raises(WiringError, match="is not actor@n"):
        FaultPlan([entry], ["llm"])
