"""The protocol over a real socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest

from actors.twin.layout import LABELS
from actors.twin.server import Knobs, Twin, serve
from actors.twin.shares import Shares
from actors.twin.sockets import base_url_of, bind_loopback
from actors.twin.wire import MODELS, Turn
from tests.twin.conversations import (
    SHARES,
    agent_turns,
    demo,
    editor_turns,
    judge_turns,
    skill_of,
)
from tests.twin.requests import momentum_turns

pytestmark = pytest.mark.anyio
Body = dict[str, Any]  # the JSON of a foreign protocol
TASK_TYPE = "Counting Problem"


def knobs(delay_s: float = 0.0) -> Knobs:
    return Knobs(world_seed=7, shares=SHARES, hostile=0.0, judge_noise=0.1, chunk_delay_s=delay_s)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server on loopback."""
    async with serving(knobs()) as found:
        yield found


class serving:  # noqa: N801  # read as a verb
    """A simulator in this process, for as long as the block lasts."""

    def __init__(self, settings: Knobs) -> None:
        self._twin = Twin(demo(), settings)
        self._until = anyio.Event()

    async def __aenter__(self) -> httpx.AsyncClient:
        self._listener = bind_loopback()
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(serve, self._twin, self._listener, self._until)
        self._client = httpx.AsyncClient(
            base_url=base_url_of(self._listener), trust_env=False, timeout=20
        )
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
        self._until.set()
        await self._tasks.__aexit__(None, None, None)
        self._listener.close()


def chat(model: str, turns: tuple[Turn, ...], **more: object) -> Body:
    messages = [{"role": turn.role, "content": turn.text} for turn in turns]
    return {"model": model, "messages": messages, **more}


def agent_body(**more: object) -> Body:
    entry = next(e for e in demo().entries if e.row.task_type == TASK_TYPE)
    return chat("twin-agent", agent_turns(entry, skill_of(TASK_TYPE)), seed=11, **more)


def events_of(text: str) -> list[Body]:
    """The data events of a stream that ends as it should."""
    parts = text.split("\n\n")
    assert parts[-2:] == ["data: [DONE]", ""]
    assert all(part.startswith("data: ") for part in parts[:-1])
    return [json.loads(part.removeprefix("data: ")) for part in parts[:-2]]


async def test_stream_has_the_documented_shape(client: httpx.AsyncClient) -> None:
    """Role, content in three or four pieces, finish, usage, end marker; created 0."""
    body = agent_body(stream=True, stream_options={"include_usage": True})
    reply = await client.post("/chat/completions", json=body)
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert "simulator" in reply.headers["server"]
    *chunks, usage = events_of(reply.text)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    pieces = [chunk["choices"][0]["delta"]["content"] for chunk in chunks[1:-1]]
    assert 3 <= len(pieces) <= 4
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * (
        len(chunks) - 1
    )
    assert usage["choices"] == []
    text = "".join(pieces)
    assert usage["usage"]["completion_tokens"] == -(-len(text) // 4)
    assert usage["usage"]["total_tokens"] > usage["usage"]["prompt_tokens"] > 100
    for chunk in (*chunks, usage):
        assert chunk["object"] == "chat.completion.chunk"
        assert chunk["system_fingerprint"] == "simulator"
        assert chunk["created"] == 0
        assert chunk["id"] == usage["id"]


async def test_whole_and_stream_agree(client: httpx.AsyncClient) -> None:
    """The same text, in one object; without include_usage there is no usage event."""
    whole = (await client.post("/chat/completions", json=agent_body())).json()
    chunks = events_of((await client.post("/chat/completions", json=agent_body(stream=True))).text)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": text}
    assert whole["object"] == "chat.completion"
    assert whole["system_fingerprint"] == "simulator"
    assert all(chunk["usage"] is None for chunk in chunks)


TOOLS = [
    {"type": "function", "function": {"name": name, "description": "d", "parameters": {}}}
    for name in ("search_similar", "view_node", "submit_answer")
]


async def test_offered_tools_are_called(client: httpx.AsyncClient) -> None:
    """A request with tools: the thought as text, the action as a call; whole and streamed alike."""
    plain = (await client.post("/chat/completions", json=agent_body())).json()
    said = json.loads(plain["choices"][0]["message"]["content"])
    whole = (await client.post("/chat/completions", json=agent_body(tools=TOOLS))).json()
    (choice,) = whole["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == said["thought"]
    (made,) = choice["message"]["tool_calls"]
    assert made["function"]["name"] == said["action"]["tool"]
    assert json.loads(made["function"]["arguments"]) == said["action"]["args"]
    stream = await client.post("/chat/completions", json=agent_body(tools=TOOLS, stream=True))
    deltas = [chunk["choices"][0]["delta"] for chunk in events_of(stream.text)]
    assert "".join(delta.get("content", "") for delta in deltas) == said["thought"]
    (part,) = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert (part["index"], part["function"]) == (0, made["function"])


async def test_a_conversation_of_native_calls_goes_on(client: httpx.AsyncClient) -> None:
    """Calls and their answers are read back: the plan is in the text beside the first call."""
    body = agent_body(tools=TOOLS)
    first = (await client.post("/chat/completions", json=body)).json()["choices"][0]["message"]
    messages = body["messages"]
    assert isinstance(messages, list)
    call_id = first["tool_calls"][0]["id"]
    told = {"role": "tool", "tool_call_id": call_id, "content": "Last step. Submit now."}
    again = await client.post(
        "/chat/completions", json=body | {"messages": [*messages, first, told]}
    )
    (made,) = again.json()["choices"][0]["message"]["tool_calls"]
    assert made["function"]["name"] == "submit_answer"


async def test_equal_requests_get_equal_bytes(client: httpx.AsyncClient) -> None:
    """Purity, through the whole server, for all three models and another process state."""
    entry = demo().entries[0]
    skill = skill_of(entry.row.task_type)
    bodies = [
        agent_body(stream=True),
        chat("twin-judge", judge_turns(entry, "B", skill, "x")),
        chat("twin-editor", editor_turns(skill, [(entry.row.question_id, "defect")])),
    ]
    first = [(await client.post("/chat/completions", json=body)).content for body in bodies]
    async with serving(knobs()) as other:
        for body, expected in zip(reversed(bodies), reversed(first), strict=True):
            assert (await other.post("/chat/completions", json=body)).content == expected
    async with serving(
        Knobs(world_seed=8, shares=SHARES, hostile=0.0, judge_noise=0.1, chunk_delay_s=0)
    ) as o:
        changed = (await o.post("/chat/completions", json=bodies[0])).content
    assert changed != first[0]


async def test_delay_changes_pace_only() -> None:
    """Every event is a piece of its own, with the same bytes."""
    body = agent_body(stream=True)
    async with serving(knobs()) as quick:
        expected = (await quick.post("/chat/completions", json=body)).content
    async with (
        serving(knobs(0.01)) as slow,
        slow.stream("POST", "/chat/completions", json=body) as reply,
    ):
        pieces = [piece async for piece in reply.aiter_raw()]
    assert b"".join(pieces) == expected
    assert len(pieces) >= 5


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_max_tokens_cuts_with_finish_length(client: httpx.AsyncClient, name: str) -> None:
    """Four characters a token."""
    whole = (await client.post("/chat/completions", json=agent_body(**{name: 5}))).json()
    choice = whole["choices"][0]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["content"]) == 20
    assert whole["usage"]["completion_tokens"] == 5


async def test_parts_are_read_like_text(client: httpx.AsyncClient) -> None:
    """Text parts are joined; an image cannot be seen."""
    body = agent_body()
    plain = (await client.post("/chat/completions", json=body)).json()["choices"]
    body["messages"][1]["content"] = [{"type": "text", "text": body["messages"][1]["content"]}]
    assert (await client.post("/chat/completions", json=body)).json()["choices"] == plain
    body["messages"][1]["content"].append({"type": "image_url", "image_url": {"url": "data:,"}})
    refused = await client.post("/chat/completions", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported_part")


def _without(block: str) -> Body:
    body = agent_body()
    body["messages"][1]["content"] = body["messages"][1]["content"].replace(block, "")
    return body


def _other_option() -> Body:
    body = agent_body()
    entry = next(e for e in demo().entries if e.row.task_type == TASK_TYPE)
    line = f"{LABELS[0]}. {entry.row.options[0]}"
    body["messages"][1]["content"] = body["messages"][1]["content"].replace(line, "A. other", 1)
    return body


REFUSED: dict[str, tuple[bytes, str]] = {
    "unknown model": (json.dumps(agent_body() | {"model": "gpt"}).encode(), "model_not_found"),
    "no JSON": (b"{", "invalid_body"),
    "not UTF-8": (b'{"model": "\xff"}', "invalid_body"),
    "no messages": (json.dumps(agent_body() | {"messages": []}).encode(), "invalid_body"),
    "bad limit": (json.dumps(agent_body() | {"max_tokens": 0}).encode(), "invalid_body"),
    "missing block": (json.dumps(_without("Options:")).encode(), "missing_block"),
    "unknown question": (json.dumps(_without("How many")).encode(), "not_in_world"),
    "other options": (json.dumps(_other_option()).encode(), "not_in_world"),
    "judge without blocks": (
        json.dumps(agent_body() | {"model": "twin-judge"}).encode(),
        "missing_block",
    ),
    "editor without blocks": (
        json.dumps(agent_body() | {"model": "twin-editor"}).encode(),
        "missing_block",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_refusals_are_error_objects(client: httpx.AsyncClient, case: str) -> None:
    """400 and what is wrong, as an OpenAI client expects it."""
    content, code = REFUSED[case]
    reply = await client.post("/chat/completions", content=content)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert (error["code"], error["type"], error["param"]) == (code, "invalid_request_error", None)
    assert error["message"]


async def test_health_and_models_say_what_this_is(client: httpx.AsyncClient) -> None:
    """Nobody can take it for a language model."""
    await client.post("/chat/completions", json=agent_body())
    await client.post("/chat/completions", content=b"{")
    health = (await client.get(str(client.base_url).replace("/v1/", "/health"))).json()
    assert health["simulator"] is True
    assert "not a language model" in health["note"]
    assert (health["status"], health["served"], health["world"]) == ("ok", 1, "demo")
    models = (await client.get("/models")).json()
    assert [model["id"] for model in models["data"]] == list(MODELS)
    assert {model["owned_by"] for model in models["data"]} == {"simulator"}


async def test_other_routes_are_refused(client: httpx.AsyncClient) -> None:
    """With an error object too."""
    assert (await client.post("/embeddings", json={})).status_code == 404
    wrong = await client.get("/chat/completions")
    assert wrong.status_code == 405
    assert "not a language model" in wrong.json()["error"]["message"]


async def test_unusual_shares_are_served() -> None:
    """An editor that never makes a sound reply, asked again, still answers in form."""
    entry = demo().entries[1]
    turns = editor_turns(skill_of(entry.row.task_type), [(entry.row.question_id, "defect")])
    settings = Knobs(
        world_seed=7,
        shares=Shares(0.0, 0.0, 0.0, 1.0),
        hostile=0.0,
        judge_noise=0.0,
        chunk_delay_s=0.0,
    )
    async with serving(settings) as client:
        again = (*turns, Turn("assistant", "?"), Turn("user", "Your reply could not be read: x"))
        reply = await client.post("/chat/completions", json=chat("twin-editor", again))
    assert json.loads(reply.json()["choices"][0]["message"]["content"])["edits"]


async def test_a_hostile_editor_says_what_it_likes() -> None:
    """A reply that claims to be cut off, and one that is far beyond the limit of the request."""
    entry = demo().entries[1]
    turns = editor_turns(skill_of(entry.row.task_type), [(entry.row.question_id, "defect")])
    settings = Knobs(world_seed=7, shares=SHARES, hostile=1.0, judge_noise=0.0, chunk_delay_s=0.0)
    finishes: set[str] = set()
    longest = 0
    async with serving(settings) as client:
        for seed in range(60):
            body = chat("twin-editor", turns, seed=seed, max_tokens=4096)
            choice = (await client.post("/chat/completions", json=body)).json()["choices"][0]
            finishes.add(choice["finish_reason"])
            longest = max(longest, len(choice["message"]["content"]))
    assert finishes == {"stop", "length"}
    assert longest > 100_000


async def test_a_layout_without_its_block_is_refused(client: httpx.AsyncClient) -> None:
    """With 400 and the block's name, as for every other request."""
    text = momentum_turns(skill_of(TASK_TYPE), [("demo-001-1", "stable")])[0].text
    broken = (Turn("user", text.replace("Momentum budget:", "Room:")),)
    reply = await client.post("/chat/completions", json=chat("twin-editor", broken))
    assert reply.status_code == 400
    assert "Momentum budget:" in reply.json()["error"]["message"]
    assert reply.json()["error"]["code"] == "missing_block"
