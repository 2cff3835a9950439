"""What retries may cost (S3): an outage must not become a storm."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from actors.llm.budget import RetryBudget

steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.01, 0.3, 20.0]),  # seconds that pass
        st.integers(0, 40),  # calls that begin
        st.integers(0, 20),  # retries that are asked for
    ),
    max_size=60,
)


@given(share=st.sampled_from([0.0, 0.2, 1.0]), reserve=st.integers(1, 50), happens=steps)
def test_retries_are_at_most_the_reserve_a_share_and_the_refill(
    share: float, reserve: int, happens: list[tuple[float, int, int]]
) -> None:
    """At any time; none is given up, and none waits longer than its place in the queue."""
    now, begun = 100.0, 100.0
    budget = RetryBudget(share, reserve, now)
    calls: list[float] = []
    due: list[float] = []
    for seconds, began, asked in happens:
        now += seconds
        for _ in range(began):
            budget.earn()
            calls.append(now)
        for _ in range(asked):
            wait = budget.spend_s(now)
            waiting = sum(when > now for when in due)
            assert 0.0 <= wait <= (waiting + 1) / 10 + 1e-9
            due.append(now + wait)
    for when in due:
        made = sum(other <= when + 1e-9 for other in due)
        earned = share * sum(call <= when for call in calls)
        assert made <= reserve + earned + 10 * (when - begun) + 1e-6


@given(reserve=st.integers(1, 50), pause=st.floats(0.0, 1000.0))
def test_a_pause_refills_the_reserve_and_no_more(reserve: int, pause: float) -> None:
    """However long it was quiet, and however many calls began."""
    budget = RetryBudget(1.0, reserve, 0.0)
    for _ in range(1000):
        budget.earn()
    waits = [budget.spend_s(pause) for _ in range(reserve + 10)]
    assert waits[:reserve] == [0.0] * reserve
    assert all(wait > 0 for wait in waits[reserve:])


def test_calls_earn_retries() -> None:
    """Five calls, one retry; without calls the pace is ten a second."""
    budget = RetryBudget(0.2, 1, 0.0)
    assert budget.spend_s(0.0) == 0.0
    for _ in range(5):
        budget.earn()
    assert budget.spend_s(0.0) == 0.0
    assert [round(budget.spend_s(0.0), 6) for _ in range(3)] == [0.1, 0.2, 0.3]


def test_a_single_call_can_always_be_repeated() -> None:
    """At a pace of ten a second even with no share at all."""
    budget = RetryBudget(0.0, 1, 0.0)
    assert [budget.spend_s(number * 0.125) for number in range(100)] == [0.0] * 100
