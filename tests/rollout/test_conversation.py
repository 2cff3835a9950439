"""Room in the conversation, and what is left of the budgets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.rollout.budget import Budget
from actors.rollout.conversation import PICTURE_TOKENS, Conversation, tokens_of
from protocol.llm import ChatMessage, ImagePart, TextPart, ToolCall
from tests.rollout.script import settings

OPENING = (
    ChatMessage(role="system", content="s" * 400),
    ChatMessage(role="user", content="u" * 400),
)


def _told(text: str) -> tuple[ChatMessage, ...]:
    return (ChatMessage(role="user", content=text),)


@given(
    sizes=st.lists(st.integers(0, 3000), max_size=12),
    limit=st.integers(50, 2000),
    shrink_at=st.integers(0, 12),
)
def test_whatever_comes_the_estimate_is_that_of_the_messages(
    sizes: list[int], limit: int, shrink_at: int
) -> None:
    """Nothing but observations ever goes, oldest first, the newest only for the endpoint's sake."""
    talk = Conversation(OPENING, limit)
    for step, size in enumerate(sizes, start=1):
        talk.say(ChatMessage(role="assistant", content=f"call {step}"))
        talk.show(_told(f"{step}:" + "x" * size), step, _told(f"stub {step}"))
        talk.make_room()
        assert talk.shows(step)
        if step == shrink_at:
            before = talk.tokens
            assert (talk.shrink() > 0) == (talk.tokens < before)
        assert talk.tokens == tokens_of(talk.messages)
        texts = [str(message.content) for message in talk.messages]
        assert texts[:2] == [str(message.content) for message in OPENING]
        assert texts[2::2] == [f"call {n}" for n in range(1, step + 1)]
        shown = [talk.shows(n) for n in range(1, step + 1)]
        assert shown == sorted(shown)


def test_what_is_measured_stands_in_for_the_estimate() -> None:
    talk = Conversation(OPENING, 1000)
    talk.measured(0)  # an endpoint that does not count
    assert talk.tokens == tokens_of(OPENING)
    talk.measured(700)
    talk.say(ChatMessage(role="assistant", content="x" * 400))
    assert talk.tokens == 700 + 104


def test_a_stub_that_would_be_longer_is_not_used() -> None:
    talk = Conversation(OPENING, 10)
    for step in (1, 2):
        talk.show(_told("no"), step, _told("a stub of many words " * 9))
    talk.make_room()
    assert [message.content for message in talk.messages[2:]] == ["no", "no"]


def test_what_is_to_stay_stays() -> None:
    """A strategy that was read is no observation of the video."""
    talk = Conversation(OPENING, 250)
    talk.show(_told("strategy" * 50), 1, None)
    for step in (2, 3):
        talk.show(_told("x" * 400), step, _told("stub"))
    assert (talk.make_room(), talk.shrink()) == (1, 1)
    assert [talk.shows(step) for step in (1, 2, 3)] == [True, False, False]
    assert str(talk.messages[2].content).startswith("strategy")


def test_calls_and_pictures_count() -> None:
    made = ToolCall(call_id="c", name="view_node", arguments="a" * 400)
    assert tokens_of([ChatMessage(role="assistant", content="", tool_calls=(made,))]) > 100
    picture = (TextPart(text=""), ImagePart(url="data:" + "A" * 100_000))
    assert tokens_of([ChatMessage(role="user", content=picture)]) < PICTURE_TOKENS + 10


@pytest.mark.parametrize(
    ("steps", "tokens", "seconds", "ended"),
    [
        (0, 0, 0.0, ""),
        (4, 0, 0.0, "steps"),
        (4, 9999, 999.0, "steps"),
        (1, 899, 0.0, ""),
        (1, 900, 0.0, "tokens"),
        (1, 0, 99.9, ""),
        (1, 0, 100.0, "time"),
    ],
)
def test_the_first_budget_that_ends_is_named(
    steps: int, tokens: int, seconds: float, ended: str
) -> None:
    """The next request, of 100 tokens, must still be paid for."""
    budget = Budget(settings(token_budget=1000))
    budget.steps = steps
    budget.spend(tokens, seconds)
    assert budget.ended(100) == ended


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0, ""), (49.9, ""), (50.0, "50"), (60.0, "40"), (61.0, "40"), (99.9, "10"), (150.0, "0")],
)
def test_what_is_left_is_told_in_tenths_from_half_on(seconds: float, said: str) -> None:
    """Finer, and no run could be repeated: a request would hold the second."""
    budget = Budget(settings())
    budget.spend(0, seconds)
    assert budget.line() == "Step 0 of 4." + (f" Time left: {said} %." if said else "")
