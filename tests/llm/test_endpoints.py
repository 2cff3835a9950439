"""Keys from the environment, and what of an endpoint's settings a call needs."""

from __future__ import annotations

import msgspec
import pytest

from actors.llm.endpoints import ResolvedEndpoint, resolve_endpoints
from protocol.llm import Usage
from protocol.settings import Endpoint
from tests.llm.support import endpoint

PLAIN = endpoint("http://a/v1/", "a")


def resolved(**changes: object) -> ResolvedEndpoint:
    wanted: Endpoint = msgspec.structs.replace(PLAIN, **changes)
    (found,) = resolve_endpoints((wanted,), {"A_KEY": "secret"}, 32)
    return found


def test_keys_come_from_the_named_variable() -> None:
    """And are never shown."""
    keyed = resolved(api_key_env="A_KEY")
    assert keyed.api_key == "secret"
    assert keyed.url == "http://a/v1/chat/completions"
    assert "secret" not in repr(keyed)
    assert resolved().api_key is None


@pytest.mark.parametrize("environ", [{}, {"A_KEY": " "}])
def test_a_missing_key_names_variable_and_endpoint(environ: dict[str, str]) -> None:
    """At start, not at the first call."""
    keyed = msgspec.structs.replace(PLAIN, api_key_env="A_KEY")
    with pytest.raises(ValueError, match=r"A_KEY.*'a'"):
        resolve_endpoints((keyed,), environ, 32)


@pytest.mark.parametrize("key", ["two\nlines", "two words", "clé"])
def test_a_key_that_no_header_can_carry_names_its_variable(key: str) -> None:
    """And does not show the key."""
    keyed = msgspec.structs.replace(PLAIN, api_key_env="A_KEY")
    with pytest.raises(ValueError, match=r"A_KEY.*'a'") as caught:
        resolve_endpoints((keyed,), {"A_KEY": key}, 32)
    assert key not in str(caught.value)


def test_an_endpoint_may_have_a_bound_of_its_own() -> None:
    """Null: that of the configuration."""
    assert resolved().concurrency == 32
    assert resolved(concurrency=4).concurrency == 4


def test_extra_fields_are_kept_as_the_bytes_they_are_sent_as() -> None:
    """None: an empty object."""
    assert resolved().extra_body == b"{}"
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    assert msgspec.json.decode(resolved(extra_body=extra).extra_body) == extra


def test_money_is_known_only_with_both_prices() -> None:
    """Prices are for a million tokens; a free model costs nothing, an unpriced one is unknown."""
    usage = Usage(prompt_tokens=2_000_000, completion_tokens=500_000)
    assert resolved(usd_per_m_prompt=1.5, usd_per_m_completion=4.0).usd(usage) == 5.0
    assert resolved(usd_per_m_prompt=0.0, usd_per_m_completion=0.0).usd(usage) == 0.0
    assert resolved(usd_per_m_prompt=1.5).usd(usage) is None
    assert resolved().usd(usage) is None
