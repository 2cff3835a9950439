"""What goes over the wire, and what the cache key is made of (row P1-1)."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from actors.llm.request import Unencodable, plan_call
from protocol.llm import Chat, ChatMessage, ImagePart, TextPart
from protocol.settings import RoleSettings
from tests.llm.support import asked, endpoint, settings

SETTINGS = settings(endpoint("http://a/v1"))
MODELS = ("m",)


def key(chat: Chat, models: tuple[str, ...] = MODELS) -> str:
    return plan_call(chat, SETTINGS, models).key


def test_P1_1_the_salt_is_in_the_key_and_in_the_seed() -> None:
    """P1-1: another epoch resamples, a resume within one hits; no salt replays for ever."""
    first = plan_call(asked(salt="epoch1"), SETTINGS, MODELS)
    again = plan_call(asked(salt="epoch1"), SETTINGS, MODELS)
    other = plan_call(asked(salt="epoch2"), SETTINGS, MODELS)
    plain = plan_call(asked(salt=None), SETTINGS, MODELS)
    assert (first.key, first.seed) == (again.key, again.seed)
    assert len({first.key, other.key, plain.key}) == 3
    assert len({first.seed, other.seed, plain.seed}) == 3
    assert plan_call(asked(salt=""), SETTINGS, MODELS).key != plain.key


def test_P1_1_the_salt_is_in_the_key_of_an_endpoint_without_seeds() -> None:
    """P1-1: the key does not rely on the seed for it."""
    bare = settings(endpoint("http://a/v1"), send_seed=False)
    calls = [plan_call(asked(salt=salt), bare, MODELS) for salt in (None, "", "e1", "e2")]
    assert len({call.key for call in calls}) == 4
    assert {call.seed for call in calls} == {None}


def test_everything_that_changes_the_answer_is_in_the_key() -> None:
    """Text, role of a turn, model, sampling, length, schema."""
    chats = [
        asked(),
        asked("ho"),
        asked(max_tokens=65),
        asked(json_schema='{"type": "object"}'),
        Chat(role="judge", messages=asked().messages, cache_salt="s1"),
        Chat(role="search", messages=(ChatMessage(role="system", content="hi"),), cache_salt="s1"),
    ]
    keys = [key(chat) for chat in chats] + [key(asked(), models=("m2",))]
    assert len(set(keys)) == len(keys)
    assert all(len(k) == 64 for k in keys)


def test_addresses_clocks_and_spelling_are_not() -> None:
    """Another endpoint or another clock finds the same entry; so does other white space.

    The order of its properties counts: a model that is held to it writes them in that order.
    """
    far = settings(endpoint("http://b/v1", "two"), idle_s=9.0, attempts=7)
    assert plan_call(asked(), far, MODELS).key == key(asked())
    one, two = '{"type": "object", "title": "t"}', '{"type":"object","title":"t"}'
    assert key(asked(json_schema=one)) == key(asked(json_schema=two))
    other = '{"title":"t","type":"object"}'
    assert key(asked(json_schema=one)) != key(asked(json_schema=other))


def test_the_body() -> None:
    """Streaming with usage, the role's sampling, a 31-bit seed from salt and request."""
    call = plan_call(asked(json_schema='{"type": "object"}'), SETTINGS, MODELS)
    body = msgspec.json.decode(call.body("m"))
    assert body == {
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


def test_switches_and_server_defaults() -> None:
    """No seed, no format and no sampling where they are off or null."""
    bare = settings(
        endpoint("http://a/v1"),
        send_seed=False,
        structured_output=False,
        search=RoleSettings(temperature=None, top_p=None, max_tokens=None),
    )
    chat = asked(json_schema='{"type": "object"}')
    body = msgspec.json.decode(plan_call(chat, bare, MODELS).body("m"))
    assert set(body) == {"model", "messages", "stream", "stream_options"}


def test_images() -> None:
    """A turn of several parts."""
    parts = (TextPart(text="look"), ImagePart(url="data:image/jpeg;base64,AA=="))
    chat = Chat(role="vision", messages=(ChatMessage(role="user", content=parts),), cache_salt=None)
    body = msgspec.json.decode(plan_call(chat, SETTINGS, MODELS).body("m"))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AA=="}},
    ]


def test_what_cannot_be_sent() -> None:
    """A lone surrogate, and a schema that is no JSON."""
    with pytest.raises(Unencodable):
        plan_call(asked("\ud83d"), SETTINGS, MODELS)
    with pytest.raises(ValueError, match="json_schema"):
        plan_call(asked(json_schema="{"), SETTINGS, MODELS)
