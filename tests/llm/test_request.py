"""What goes over the wire, and what the cache key is made of (row P1-1)."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from actors.llm.endpoints import ResolvedEndpoint, resolve_endpoints
from actors.llm.request import KEY_VERSION, PlannedCall, Unencodable, plan_call
from protocol.llm import Chat, ChatMessage, ImagePart, TextPart, ToolCall, ToolSpec
from protocol.settings import RoleSettings
from tests.llm.support import asked, endpoint, settings

SETTINGS = settings(endpoint("http://a/v1"))
SCHEMA = '{"type": "object"}'


def serving(name: str = "one", **changes: object) -> ResolvedEndpoint:
    wanted = msgspec.structs.replace(endpoint("http://a/v1", name), **changes)
    return resolve_endpoints((wanted,), {}, 32)[0]


ONE = (serving(),)


def plan(chat: Chat, *endpoints: ResolvedEndpoint) -> PlannedCall:
    return plan_call(chat, SETTINGS, endpoints or ONE)


def key(chat: Chat, *endpoints: ResolvedEndpoint) -> str:
    return plan(chat, *endpoints).key


def sent(chat: Chat, to: ResolvedEndpoint = ONE[0]) -> dict[str, object]:
    return msgspec.json.decode(plan(chat).body(to), type=dict[str, object])


def test_P1_1_the_salt_is_in_the_key_and_in_the_seed() -> None:
    """P1-1: another epoch resamples, a resume within one hits; no salt replays for ever."""
    first = plan(asked(salt="epoch1"))
    again = plan(asked(salt="epoch1"))
    other = plan(asked(salt="epoch2"))
    plain = plan(asked(salt=None))
    assert (first.key, first.seed) == (again.key, again.seed)
    assert len({first.key, other.key, plain.key}) == 3
    assert len({first.seed, other.seed, plain.seed}) == 3
    assert key(asked(salt="")) != plain.key


def test_P1_1_the_salt_is_in_the_key_of_an_endpoint_without_seeds() -> None:
    """P1-1: the key does not rely on the seed for it."""
    bare = settings(endpoint("http://a/v1"), send_seed=False)
    calls = [plan_call(asked(salt=salt), bare, ONE) for salt in (None, "", "e1", "e2")]
    assert len({call.key for call in calls}) == 4
    assert {call.seed for call in calls} == {None}


def test_everything_that_changes_the_answer_is_in_the_key() -> None:
    """Text, role of a turn, sampling, length, schema; model, format and fields of the endpoint."""
    chats = [
        asked(),
        asked("ho"),
        asked(max_tokens=65),
        asked(json_schema=SCHEMA),
        Chat(role="judge", messages=asked().messages, cache_salt="s1"),
        Chat(role="search", messages=(ChatMessage(role="system", content="hi"),), cache_salt="s1"),
    ]
    served = [
        serving(model="m2"),
        serving(json_output="object"),
        serving(extra_body={"min_p": 0.1}),
        serving(extra_body={"min_p": 0.2}),
    ]
    thinking = RoleSettings(
        temperature=0.7, top_p=None, max_tokens=64, extra_body={"enable_thinking": True}
    )
    keys = [key(chat) for chat in chats] + [key(asked(), one) for one in served]
    keys += [key(asked(), *ONE, served[0])]
    keys += [plan_call(asked(), settings(search=thinking), ONE).key]
    assert len(set(keys)) == len(keys)
    assert all(len(k) == 64 for k in keys)


def test_addresses_clocks_and_spelling_are_not() -> None:
    """Another endpoint or another clock finds the same entry; so does other white space.

    The order of its properties counts: a model that is held to it writes them in that order.
    """
    far = settings(endpoint("http://b/v1", "two"), idle_s=9.0, attempts=7, concurrency=1)
    assert plan_call(asked(), far, ONE).key == key(asked())
    replica = serving("two", base_url="http://b/v1", concurrency=4, usd_per_m_prompt=1.0)
    assert key(asked(), replica) == key(asked(), *ONE, replica) == key(asked())
    other = serving(model="m2")
    assert key(asked(), *ONE, other) == key(asked(), other, *ONE)
    one, two = '{"type": "object", "title": "t"}', '{"type":"object","title":"t"}'
    assert key(asked(json_schema=one)) == key(asked(json_schema=two))
    turned = '{"title":"t","type":"object"}'
    assert key(asked(json_schema=one)) != key(asked(json_schema=turned))


def test_a_key_is_the_same_in_every_process() -> None:
    """An answer that was paid for is found again; where it must not be, KEY_VERSION is raised."""
    several = [serving(model=f"m{number}") for number in (3, 1, 5, 2, 4)]
    assert KEY_VERSION == 2
    found = key(asked(json_schema=SCHEMA), *several)
    assert found == "923fab19004dd0e0e616b65c39a328ac8c9b0d36593ad9d2afca7326efd11ee0"


def test_the_body() -> None:
    """Streaming with usage, the role's sampling, a 31-bit seed from salt and request."""
    call = plan(asked(json_schema=SCHEMA))
    assert sent(asked(json_schema=SCHEMA)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.7,
        "max_tokens": 64,
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": call.seed,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": {"type": "object"}},
        },
    }
    canonical = msgspec.json.encode(call.asked, order="sorted")
    digest = hashlib.sha256(b"s1\n" + canonical).digest()
    assert call.seed == int.from_bytes(digest[:4], "big") >> 1


def test_an_endpoint_is_held_to_what_it_can_enforce() -> None:
    """A schema, any object, or nothing; without a schema nobody is held to anything."""
    chat = asked(json_schema=SCHEMA)
    assert sent(chat, serving(json_output="object"))["response_format"] == {"type": "json_object"}
    assert "response_format" not in sent(chat, serving(json_output="none"))
    for what in ("schema", "object", "none"):
        assert "response_format" not in sent(asked(), serving(json_output=what))


def test_the_model_is_that_of_the_endpoint_which_is_asked() -> None:
    """One call may go to several."""
    assert sent(asked(), serving(model="m2"))["model"] == "m2"


def test_extra_fields_go_out_untouched() -> None:
    """Of the role and of the endpoint, in their own order, beside all others."""
    thinking = RoleSettings(
        temperature=0.7, top_p=None, max_tokens=64, extra_body={"z": 1, "a": [2.50, None]}
    )
    call = plan_call(asked(), settings(search=thinking), ONE)
    body = call.body(serving(extra_body={"chat_template_kwargs": {"y": True, "b": "ü"}}))
    plain = plan(asked()).body(ONE[0])
    assert body.startswith(plain[:-1])
    assert body.endswith(b',"z":1,"a":[2.5,null],"chat_template_kwargs":{"y":true,"b":"\xc3\xbc"}}')
    assert len(msgspec.json.decode(body)) == len(msgspec.json.decode(plain)) + 3


def test_switches_and_server_defaults() -> None:
    """No seed, no format and no sampling where they are off or null."""
    bare = settings(
        endpoint("http://a/v1"),
        send_seed=False,
        search=RoleSettings(temperature=None, top_p=None, max_tokens=None),
    )
    mute = serving(json_output="none")
    body = msgspec.json.decode(plan_call(asked(json_schema=SCHEMA), bare, (mute,)).body(mute))
    assert set(body) == {"model", "messages", "stream", "stream_options"}


def test_images() -> None:
    """A turn of several parts."""
    parts = (TextPart(text="look"), ImagePart(url="data:image/jpeg;base64,AA=="))
    chat = Chat(role="vision", messages=(ChatMessage(role="user", content=parts),), cache_salt=None)
    body = msgspec.json.decode(plan(chat).body(ONE[0]))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AA=="}},
    ]


def test_native_tools_go_over_the_wire_and_into_the_key() -> None:
    """The calls of an assistant, a tool's answer, and the tools themselves (clients.md A2.11)."""
    tool = ToolSpec(name="look", description="Looks.", parameters=SCHEMA)
    turns = (
        ChatMessage(
            role="assistant",
            content="",
            tool_calls=(ToolCall(call_id="c1", name="look", arguments='{"n":1}'),),
        ),
        ChatMessage(role="tool", content="A red car.", call_id="c1"),
    )
    chat = Chat(role="search", messages=turns, cache_salt="s", tools=(tool,))
    body = sent(chat)
    assert body["messages"] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "type": "function",
                    "id": "c1",
                    "function": {"name": "look", "arguments": '{"n":1}'},
                }
            ],
        },
        {"role": "tool", "content": "A red car.", "tool_call_id": "c1"},
    ]
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Looks.",
                "parameters": {"type": "object"},
            },
        }
    ]
    assert key(chat) != key(msgspec.structs.replace(chat, tools=()))
    assert "tools" not in sent(asked())


def test_what_cannot_be_sent() -> None:
    """A lone surrogate, and a schema that is no JSON."""
    with pytest.raises(Unencodable):
        plan(asked("\ud83d"))
    with pytest.raises(ValueError, match="JSON schema of a search chat"):
        plan(asked(json_schema="{"))
