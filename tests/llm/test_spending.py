"""What a workspace may spend (S18): counted from what former processes spent on."""

from __future__ import annotations

import pytest

from actors.llm.spending import Spending
from protocol.llm import Usage
from protocol.settings import LimitSettings
from tests.llm.support import NO_LIMITS


def limits(
    max_calls: int | None = None, max_tokens: int | None = None, max_usd: float | None = None
) -> LimitSettings:
    return LimitSettings(max_calls=max_calls, max_tokens=max_tokens, max_usd=max_usd)


def reason(spending: Spending) -> str:
    """Which limit it is and how much was spent, without the advice that follows."""
    over = spending.over()
    assert over is not None
    return over.partition(";")[0]


def test_calls_count_when_they_are_sent() -> None:
    """Not when they are answered: what is in flight is paid for."""
    spending = Spending(limits(max_calls=3), calls=1)
    spending.begin()
    assert spending.over() is None
    spending.begin()
    assert reason(spending) == "limits.max_calls = 3: 3 calls were made"


def test_tokens_count_both_ways() -> None:
    """Prompt and completion; what is cached or thought is a part of these."""
    spending = Spending(limits(max_tokens=100), tokens=80)
    spending.add(
        Usage(prompt_tokens=15, completion_tokens=4, cached_tokens=9, reasoning_tokens=3), None
    )
    assert spending.over() is None
    spending.add(Usage(prompt_tokens=1), None)
    assert reason(spending) == "limits.max_tokens = 100: 100 tokens were used"


def test_money_counts_where_the_price_is_known() -> None:
    """Unknown prices add nothing."""
    spending = Spending(limits(max_usd=2.0), usd=1.5)
    spending.add(Usage(prompt_tokens=9), None)
    spending.add(Usage(prompt_tokens=9), 0.25)
    assert spending.over() is None
    spending.add(Usage(), 0.25)
    assert reason(spending) == "limits.max_usd = 2: $2.00 were spent"


def test_null_is_no_limit() -> None:
    """Whatever was spent."""
    spending = Spending(NO_LIMITS, calls=10**9, tokens=10**12, usd=1e9)
    spending.begin()
    assert spending.over() is None


@pytest.mark.parametrize(
    ("bound", "name"),
    [
        (limits(max_calls=5), "max_calls"),
        (limits(max_tokens=50), "max_tokens"),
        (limits(max_usd=0.5), "max_usd"),
    ],
)
def test_a_limit_that_former_processes_reached_holds_at_once(
    bound: LimitSettings, name: str
) -> None:
    """A restart is no way around it."""
    spending = Spending(bound, calls=5, tokens=50, usd=0.5)
    assert reason(spending).startswith(f"limits.{name}")
