"""The breaker, against a model of what it must do (row P2-6)."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings as profile
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.llm.breaker import Breaker, Lease
from actors.llm.classify import Verdict

COOLDOWN_S = 10.0
PROBE_S = 5.0
VERDICTS: list[Verdict] = ["success", "failure", "neutral"]


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker(2, COOLDOWN_S, PROBE_S)
    for _ in range(2):
        lease = breaker.admit(now)
        assert lease is not None
        breaker.record(lease, "failure", now)
    assert breaker.state == "open"
    return breaker


def probe(breaker: Breaker, now: float) -> Lease:
    lease = breaker.admit(now)
    assert lease is not None
    assert lease.probe
    return lease


def test_P2_6_exactly_one_probe_passes() -> None:
    """P2-6: of a herd after the cool-down, one."""
    breaker = opened()
    assert breaker.admit(9.99) is None
    assert breaker.retry_in(4.0) == 6.0
    leases = [breaker.admit(10.0) for _ in range(100)]
    assert sum(lease is not None for lease in leases) == 1


def test_P2_6_only_its_success_closes() -> None:
    """P2-6: a late success of a request from before the trip closes nothing."""
    breaker = Breaker(2, COOLDOWN_S, PROBE_S)
    late = breaker.admit(0.0)
    assert late is not None
    for _ in range(2):
        lease = breaker.admit(0.0)
        assert lease is not None
        breaker.record(lease, "failure", 0.0)
    assert not breaker.record(late, "success", 1.0)
    assert breaker.admit(1.0) is None
    assert breaker.record(probe(breaker, 10.0), "success", 11.0)
    assert breaker.state == "closed"


def test_a_failed_probe_waits_longer() -> None:
    """Doubled up to the cap; a success resets it."""
    breaker = opened()
    now, waits = 10.0, []
    for _ in range(5):
        breaker.record(probe(breaker, now), "failure", now)
        waits.append(breaker.retry_in(now))
        now += waits[-1]
    assert waits == [20.0, 40.0, 60.0, 60.0, 60.0]


def test_a_neutral_probe_gives_its_place_back() -> None:
    """A cancelled probe neither closes nor reopens; the next caller may probe."""
    breaker = opened()
    breaker.record(probe(breaker, 10.0), "neutral", 11.0)
    assert breaker.state == "half_open"
    probe(breaker, 11.0)


def test_a_lost_probe_is_retaken() -> None:
    """After its time; its late result does not count."""
    breaker = opened()
    lost = probe(breaker, 10.0)
    assert breaker.admit(14.9) is None
    second = probe(breaker, 15.0)
    assert not breaker.record(lost, "success", 16.0)
    assert breaker.state == "half_open"
    assert breaker.record(second, "success", 16.0)


class BreakerMachine(RuleBasedStateMachine):
    """Random requests, results and waits; at most one current lease outside ``closed``."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = Breaker(3, COOLDOWN_S, PROBE_S)
        self.out: list[Lease] = []
        self.probe_until = -1.0

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 10.0, 70.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def ask(self) -> None:
        before, due = self.breaker.state, self.breaker.retry_in(self.now)
        lease = self.breaker.admit(self.now)
        assert (lease is not None) == (due == 0)
        if lease is None:
            return
        assert lease.probe == (before != "closed")
        if lease.probe:
            assert self.now >= self.probe_until, "a second probe beside a living one"
            self.probe_until = self.now + PROBE_S
        self.out.append(lease)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), verdict=st.sampled_from(VERDICTS))
    def answer(self, data: st.DataObject, verdict: Verdict) -> None:
        lease = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        before = self.breaker.state
        changed = self.breaker.record(lease, verdict, self.now)
        if changed and lease.probe:
            self.probe_until = -1.0
        if before != "closed" and self.breaker.state == "closed":
            assert lease.probe
            assert verdict == "success"

    @invariant()
    def never_wedged(self) -> None:
        assert self.breaker.retry_in(self.now) <= max(60.0, PROBE_S)


TestBreakerMachine = BreakerMachine.TestCase
TestBreakerMachine.settings = profile(max_examples=60, deadline=None)


def test_a_failure_that_says_how_long_opens_it_at_once_for_that_long() -> None:
    """The first one, a probe's too; the cool-down of other failures is none the longer for it."""
    breaker = Breaker(failures=8, cooldown_s=10.0, probe_s=5.0)
    lease = breaker.admit(0.0)
    assert lease is not None
    assert breaker.record(lease, "failure", 0.0, 3600.0)
    assert breaker.retry_in(0.0) == 3600.0
    probe = breaker.admit(3600.0)
    assert probe is not None
    assert breaker.record(probe, "failure", 3600.0, 1800.0)
    assert breaker.retry_in(3600.0) == 1800.0
    again = breaker.admit(5400.0)
    assert again is not None
    breaker.record(again, "failure", 5400.0)
    assert breaker.retry_in(5400.0) == 20.0


def test_the_longest_cool_down_may_be_another() -> None:
    """Doubled up to it."""
    breaker = Breaker(failures=1, cooldown_s=60.0, probe_s=5.0, cap_s=100.0)
    now, waits = 0.0, []
    for _ in range(3):
        lease = breaker.admit(now)
        assert lease is not None
        breaker.record(lease, "failure", now)
        waits.append(breaker.retry_in(now))
        now += waits[-1]
    assert waits == [60.0, 100.0, 100.0]
