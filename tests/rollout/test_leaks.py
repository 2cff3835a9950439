"""No gold answer and no question id in anything that the agent or its viewer is sent.

A property over whole requests, as bytes on the wire: whatever the gold letter, the id and the
rest of what the agent must not know, not one byte of any request is another.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from actors.config import load_config
from actors.llm.endpoints import resolve_endpoints
from actors.llm.request import plan_call
from actors.rollout.actor import RolloutActor
from protocol.base import Request, Scope
from protocol.dataset import Question
from protocol.documents import Skill
from protocol.ledger import Record, Recorded
from protocol.llm import Chat, ChatAnswer
from protocol.settings import AgentSettings
from protocol.video import Frames, ObserveFrames, Picture, TreeText
from tests.rollout.script import QUESTION, call, native, reply, request, settings, submit
from tests.support.fakes import FakeAddress

CONFIG = load_config(None)
OTHER = Skill(
    task_type="Counting Problem",
    text="---\nname: counting-problem\ndescription: Use it to count.\n"
    "task_type: Counting Problem\n---\n# Counting\n",
)
LOOKS: tuple[tuple[str, dict[str, object]], ...] = (
    ("view_node", {"node_id": "-v1_L1_000"}),
    ("search_similar", {"query": "red car"}),
    ("search_similar", {"query": "red car"}),  # the same again
    ("search_subtitles", {"query": "drive", "start_s": 1}),
    ("observe_frame", {"node_ids": ["-v1_L3_000"], "question": "Which colour?"}),
    ("observe_frame", {"node_ids": ["-v1_L3_001"]}),  # no question: the question's own
    ("read_skill", {"name": "counting-problem"}),
    ("fly", {}),
)
AGENTS = {
    "json": settings(max_steps=12),
    "inline": settings(max_steps=12, vision="inline"),
    "described": settings(max_steps=12, vision="describe"),
    "chosen": settings(max_steps=12, skill_routing="manual"),
    "native": settings(max_steps=12, tool_calls="native", vision="inline"),
    "cramped": settings(max_steps=6, max_prompt_tokens=1000, vision="inline"),
}


def script(agent: AgentSettings) -> list[ChatAnswer]:
    """Every kind of turn: looks of all tools, an unreadable one, a bad answer, an answer."""
    if agent.tool_calls == "native":
        looks = [native(tool, args) for tool, args in LOOKS]
    else:
        looks = [reply(call(tool, args)) for tool, args in LOOKS]
    return [
        *looks[:2],
        reply("hm"),
        reply("cut", "length"),
        *looks[2:],
        reply(submit("A or B")),
    ] + [reply(submit("B"))] * 9


async def _bodies(agent: AgentSettings, question: Question, scope: Scope) -> list[bytes]:
    """All requests of a rollout, as they go over the wire."""
    replies = iter(script(agent))
    endpoints = resolve_endpoints(CONFIG.llm.endpoints, {}, 1)

    async def llm(asked: Request[object]) -> object:
        assert isinstance(asked, Chat)
        return reply("Navy blue.") if asked.role == "vision" else next(replies)

    async def video(asked: Request[object]) -> object:
        if isinstance(asked, ObserveFrames):
            picture = Picture(node_id="-v1_L3_000", start_s=1.0, url="data:image/jpeg;base64,AA==")
            return Frames(text="1 key frame", node_ids=asked.node_ids, pictures=(picture,))
        return TreeText(text="A red car. " * 20, node_ids=("-v1_L1_000",))

    async def ledger(asked: Request[object]) -> object:
        assert isinstance(asked, Record)
        return Recorded(rows=len(asked.rows))

    model = FakeAddress("llm", llm)
    actor = RolloutActor(agent, model, FakeAddress("video", video), FakeAddress("ledger", ledger))
    job = msgspec.structs.replace(request(), question=question, others=(OTHER,), scope=scope)
    await actor.rollout(job)
    chats = [asked for asked in model.requests if isinstance(asked, Chat)]
    return [plan_call(chat, CONFIG.llm, endpoints).body(endpoints[0]) for chat in chats]


def bodies(agent: AgentSettings, question: Question, scope: Scope) -> list[bytes]:
    return anyio.run(_bodies, agent, question, scope)


@pytest.mark.parametrize("name", AGENTS)
@hypothesis_settings(max_examples=15, deadline=None)
@given(
    gold=st.sampled_from("ABCD"),
    question_id=st.text(st.characters(codec="utf-8"), max_size=30),
    notes=st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=20), min_size=3),
    epoch=st.none() | st.integers(0, 9),
)
def test_not_a_byte_of_any_request_depends_on_what_the_agent_must_not_know(
    name: str, gold: str, question_id: str, notes: Sequence[str | None], epoch: int | None
) -> None:
    secret = msgspec.structs.replace(
        QUESTION,
        answer=gold,
        question_id=question_id,
        domain=notes[0],
        sub_category=notes[1],
        duration=notes[2],
    )
    scope = Scope(epoch=epoch, question_id=question_id)
    assert bodies(AGENTS[name], secret, scope) == bodies(AGENTS[name], QUESTION, Scope())


@pytest.mark.parametrize("name", AGENTS)
def test_the_requests_are_whole_and_hold_no_secret(name: str) -> None:
    """What the property compares is really there: every tool's result, every picture."""
    sent = bodies(AGENTS[name], QUESTION, Scope())
    assert len(sent) > 6
    assert not any(b"SECRET-QUESTION-ID" in body or b"SECRET-DOMAIN" in body for body in sent)
    assert all(b"What is shown?" in body for body in sent if b"key frames of one video" not in body)
    seen = b"image_url" in b"".join(sent)
    assert seen == (name in ("inline", "described", "native", "cramped"))
    chosen = name == "chosen"
    assert (b"Object Recognition" in sent[0]) != chosen  # the label would choose for the agent
    assert (b"SECRET-FRONT" in sent[0]) == chosen  # a skill's description is for choosing it
    if name == "described":
        (first, second) = (body for body in sent if b"key frames of one video" in body)
        assert b"Which colour?" in first
        assert b"A red car." not in first  # no option is shown to the viewer
        assert b"What is shown?" in second
