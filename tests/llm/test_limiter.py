"""How many requests an endpoint bears (S4, S5), and that no order of events breaks the limit."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import settings as profile
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.llm.limiter import Limit, Permit

COOLDOWN_S = 15.0


def admitted(
    limit: Limit, count: int, role: str = "search", *, retry: bool = False
) -> list[Permit]:
    """``count`` requests at the same time."""
    return [limit.admit(role, number + 1, retry=retry) for number in range(count)]


def answer(
    limit: Limit, permits: list[Permit], now: float = 0.0, first_token_s: float | None = None
) -> None:
    for permit in permits:
        limit.answered(permit, now, first_token_s)


def use_fully(limit: Limit, now: float, first_token_s: float | None = None) -> None:
    """As many requests as it allows (or as make a round), all of them answered."""
    answer(limit, admitted(limit, max(8, limit.value)), now, first_token_s)


def test_slow_start_doubles_with_every_clean_round_that_used_the_limit() -> None:
    """Up to the ceiling."""
    limit = Limit(8, 100)
    values = []
    for _ in range(6):
        use_fully(limit, 0.0)
        values.append(limit.value)
    assert values == [16, 32, 64, 100, 100, 100]


def test_the_start_is_never_above_the_ceiling() -> None:
    """An endpoint with a small bound of its own begins there."""
    assert Limit(8, 3).value == 3


def test_after_a_cut_it_grows_slowly() -> None:
    """By a twentieth, and by one where that is less."""
    limit = Limit(100, 200)
    assert limit.limited(limit.admit("search", 1, retry=False), 0.0, None)
    assert limit.value == 80
    use_fully(limit, COOLDOWN_S)
    assert limit.value == 84
    low = Limit(5, 200)
    low.limited(low.admit("search", 1, retry=False), 0.0, None)
    use_fully(low, COOLDOWN_S)
    assert low.value == 5


def test_S4_an_episode_of_429_is_one_cut() -> None:
    """S4: 200 in flight, all of them refused within 100 ms; nobody sends for two seconds.

    What had begun before the cut neither cuts nor grows it, whenever its answer comes.
    """
    limit = Limit(200, 400)
    permits = admitted(limit, 200)
    cuts = 0
    for number, permit in enumerate(permits[:100]):
        now = 10.0 + number / 1000
        limit.hold(now, 2.0)
        cuts += limit.limited(permit, now, 2.0)
    assert (cuts, limit.value) == (1, 160)
    assert limit.held_for(10.1) == pytest.approx(1.999)
    assert limit.held_for(12.0) > 0
    assert limit.held_for(12.1) == 0
    answer(limit, permits[100:], 12.1)
    answer(limit, permits[100:], 1000.0)
    assert limit.value == 160
    after = admitted(limit, 160)
    assert limit.limited(after[0], 1000.0, None)
    assert not limit.limited(after[1], 1000.0, None)
    assert limit.value == 128


def test_S5_a_limit_that_is_not_used_does_not_grow() -> None:
    """S5: two at a time under a limit of a hundred show nothing about a hundred and one."""
    limit = Limit(100, 400)
    for _ in range(500):
        answer(limit, admitted(limit, 2))
    assert limit.value == 100


def test_S5_a_peak_counts_for_its_own_round_only() -> None:
    """S5: that the limit was used once, long ago, shows nothing either."""
    limit = Limit(100, 400)
    limit.limited(limit.admit("search", 1, retry=False), 0.0, None)
    use_fully(limit, COOLDOWN_S)
    assert limit.value == 84
    for _ in range(500):
        answer(limit, admitted(limit, 2), COOLDOWN_S)
    assert limit.value == 84


def test_retries_never_count() -> None:
    """They come when the server was in trouble: what they show is not how much it bears."""
    limit = Limit(8, 100)
    for _ in range(100):
        answer(limit, admitted(limit, 8, retry=True))
    assert limit.value == 8


def test_nothing_grows_while_it_cools_down() -> None:
    """A longer Retry-After makes it longer; another refusal begins it anew."""
    limit = Limit(8, 100)
    limit.limited(limit.admit("search", 1, retry=False), 0.0, 20.0)
    assert limit.value == 6
    use_fully(limit, 19.9)
    assert limit.value == 6
    limit.limited(limit.admit("search", 1, retry=False), 20.0, None)
    assert limit.value == 4
    use_fully(limit, 34.9)
    assert limit.value == 4
    use_fully(limit, 35.0)
    assert limit.value == 5


def test_a_failure_makes_the_round_begin_anew() -> None:
    """It does not cut: the breaker has an opinion about failures."""
    limit = Limit(10, 100)
    permits = admitted(limit, 10)
    answer(limit, permits[:9])
    limit.failed()
    answer(limit, permits[9:])
    assert limit.value == 10
    answer(limit, admitted(limit, 9))
    assert limit.value == 20


def test_the_longest_pause_counts() -> None:
    """Two servers behind one address may ask for different ones."""
    limit = Limit(8, 100)
    limit.hold(0.0, 5.0)
    limit.hold(1.0, 2.0)
    assert limit.held_for(1.0) == 4.0
    assert limit.held_for(6.0) == 0.0


def test_first_tokens_that_come_late_cut_once_a_round() -> None:
    """A server that queues says nothing: it shows. What was in flight then counts for nothing."""
    limit = Limit(10, 100)
    use_fully(limit, 0.0, 0.2)
    use_fully(limit, 0.0, 0.2)
    assert limit.value == 40
    permits = admitted(limit, 80)
    answer(limit, permits[:40], 0.0, 3.0)
    assert limit.value == 32
    answer(limit, permits[40:], 0.0, 3.0)
    assert limit.value == 32
    use_fully(limit, 0.0, 3.0)
    assert limit.value == 25
    use_fully(limit, 0.0, 0.2)
    assert limit.value == 26, "slow start is over"


def test_late_first_tokens_never_cut_below_the_start() -> None:
    """A server that is slow for whatever reason is still asked; a 429 may cut down to one."""
    limit = Limit(10, 100)
    use_fully(limit, 0.0, 0.2)
    for _ in range(10):
        use_fully(limit, 0.0, 30.0)
    assert limit.value == 10
    for number in range(20):
        limit.limited(limit.admit("search", 1, retry=False), float(number), None)
    assert limit.value == 1
    use_fully(limit, 100.0, 0.2)
    use_fully(limit, 100.0, 60.0)
    assert limit.value == 2, "neither below the start nor back up to it"


def test_failures_do_not_hide_that_a_server_queues() -> None:
    """An overloaded server also times out: the round never ends, yet its lateness is judged."""
    limit = Limit(8, 64)
    use_fully(limit, 0.0, 0.2)
    use_fully(limit, 0.0, 0.2)
    assert limit.value == 32
    for permit in admitted(limit, 32):
        limit.failed()
        limit.answered(permit, 0.0, 9.0)
    assert limit.value == 25


def test_an_endpoint_that_comes_back_begins_from_the_start() -> None:
    """All that waited out an outage must not fall upon a server that has just been restarted."""
    limit = Limit(8, 64)
    old = admitted(limit, 8)
    answer(limit, old)
    answer(limit, admitted(limit, 16))
    assert limit.value == 32
    limit.recovered()
    assert limit.value == 8
    answer(limit, old)  # begun before the outage: says nothing about what it bears now
    assert limit.value == 8
    use_fully(limit, 0.0)
    assert limit.value == 16


def test_first_tokens_are_compared_role_by_role() -> None:
    """A judge's long prompt beside an agent's short one is no queue; its own delay is one."""
    limit = Limit(16, 400)
    for judge_s, search_s, value in ((9.0, 0.2, 32), (9.5, 0.2, 64), (9.0, 5.0, 51)):
        half = limit.value // 2
        permits = admitted(limit, limit.value)
        for permit in permits[:half]:
            limit.answered(Permit(permit.generation, "judge", retry=False), 0.0, judge_s)
        answer(limit, permits[half:], 0.0, search_s)
        assert limit.value == value


def test_first_tokens_that_come_somewhat_later_only_stop_the_growth() -> None:
    """More than twice as late: no reason to send more, none to send less."""
    limit = Limit(16, 400)
    use_fully(limit, 0.0, 1.0)
    use_fully(limit, 0.0, 2.5)
    assert limit.value == 32
    use_fully(limit, 0.0, 1.5)
    assert limit.value == 64, "still in slow start"


def test_what_was_best_long_ago_is_forgotten() -> None:
    """The prompts of a later phase are longer: the limit grows again, without a restart."""
    limit = Limit(16, 400)
    use_fully(limit, 0.0, 1.0)
    for _ in range(20):
        use_fully(limit, 0.0, 3.0)
    assert limit.value > 32


def test_a_few_first_tokens_are_no_median() -> None:
    """Seven late ones of a role say nothing yet, eight do."""
    limit = Limit(16, 400)
    for editors, late, value in ((8, 0.2, 32), (7, 60.0, 64), (8, 60.0, 51)):
        permits = admitted(limit, limit.value)
        for permit in permits[:editors]:
            limit.answered(Permit(permit.generation, "evolve", retry=False), 0.0, late)
        answer(limit, permits[editors:], 0.0, 0.2)
        assert limit.value == value


def test_answers_without_a_first_token_count_all_the_same() -> None:
    """A server that does not stream has none."""
    limit = Limit(8, 100)
    use_fully(limit, 0.0, None)
    assert limit.value == 16


class LimitMachine(RuleBasedStateMachine):
    """Anything in any order: the limit stays within its bounds, and one permit cuts once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.limit = Limit(6, 40)
        self.ceiling = 40
        self.cuts = 0
        self.out: list[tuple[Permit, int]] = []
        self.held_until = 0.0
        self.cool_until = float("-inf")

    def take(self, data: st.DataObject) -> tuple[Permit, int]:
        return self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))

    @rule(seconds=st.sampled_from([0.01, 1.0, 14.0, 16.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(count=st.integers(1, 60), role=st.sampled_from(["search", "judge"]), retry=st.booleans())
    def send(self, count: int, role: str, retry: bool) -> None:
        for _ in range(count):
            permit = self.limit.admit(role, len(self.out) + 1, retry=retry)
            self.out.append((permit, self.cuts))

    @precondition(lambda self: self.out)
    @rule(
        data=st.data(),
        count=st.integers(1, 60),
        late=st.sampled_from([None, 0.1, 0.3, 1.0, 5.0, 60.0]),
    )
    def answer(self, data: st.DataObject, count: int, late: float | None) -> None:
        for _ in range(min(count, len(self.out))):
            permit, cuts = self.take(data)
            before = self.limit.value
            changed = self.limit.answered(permit, self.now, late)
            assert changed == (self.limit.value != before)
            if changed:
                assert cuts == self.cuts, "begun before a cut"
                assert not permit.retry
                assert self.now >= self.cool_until
            if self.limit.value > before:
                assert self.limit.value <= 2 * before
            if self.limit.value < before:
                assert self.limit.value >= 6
                self.cuts += 1

    @precondition(lambda self: self.out)
    @rule(data=st.data(), wait=st.sampled_from([None, 0.5, 30.0]))
    def refuse(self, data: st.DataObject, wait: float | None) -> None:
        permit, cuts = self.take(data)
        before = self.limit.value
        cut = self.limit.limited(permit, self.now, wait)
        self.cool_until = max(self.cool_until, self.now + max(COOLDOWN_S, wait or 0.0))
        assert not (cut and cuts < self.cuts), "begun before a cut"
        assert self.limit.value == (max(1, int(before * 0.8)) if cut else before)
        self.cuts += cut

    @rule()
    def fail(self) -> None:
        before = self.limit.value
        self.limit.failed()
        assert self.limit.value == before

    @rule(seconds=st.sampled_from([0.5, 30.0]))
    def hold(self, seconds: float) -> None:
        self.limit.hold(self.now, seconds)
        self.held_until = max(self.held_until, self.now + seconds)

    @invariant()
    def within_its_bounds(self) -> None:
        assert 1 <= self.limit.value <= self.ceiling

    @invariant()
    def held_until_the_latest_time_that_was_asked_for(self) -> None:
        assert self.limit.held_for(self.now) == max(0.0, self.held_until - self.now)


TestLimitMachine = LimitMachine.TestCase
TestLimitMachine.settings = profile(max_examples=60, deadline=None)
