"""Nothing starts with a time to live that means "for ever", or without its Redis."""

from __future__ import annotations

import pytest

from actors.cache.settings import CacheChoice, resolve_cache
from tests.cache.support import cache_settings

_URL = "redis://127.0.0.1:6379/0"
_BAD = ["0", "-1", "", " ", "1.5", "1e3", "+5", "1_000", "forever", "None", "٣", "9" * 5000]


@pytest.mark.parametrize("text", _BAD, ids=lambda text: repr(text[:8]))
@pytest.mark.parametrize("backend", ["sqlite", "redis", "none"])
def test_P1_1_a_ttl_that_is_not_positive_is_refused(text: str, backend: str) -> None:
    """P1-1: ``REDIS_CACHE_TTL=0`` meant for ever; now nothing starts, and the message helps."""
    settings = cache_settings(backend, redis_url=_URL)  # type: ignore[arg-type]  # a table of names
    with pytest.raises(ValueError, match=r"REDIS_CACHE_TTL=.* positive whole number .*unset it"):
        resolve_cache(settings, {"REDIS_CACHE_TTL": text})


@pytest.mark.parametrize("ttl_s", [0, -1, 10**11])
def test_P1_1_the_configured_ttl_is_held_to_the_same(ttl_s: int) -> None:
    """P1-1: the SQLite time to live too."""
    with pytest.raises(ValueError, match=r"cache\.ttl_s=.* positive whole number .*config"):
        resolve_cache(cache_settings(ttl_s=ttl_s), {})


def test_the_variable_wins_for_redis_and_leaves_sqlite_alone() -> None:
    """Each backend has one time to live, known beforehand."""
    environ = {"REDIS_CACHE_TTL": "90"}
    assert resolve_cache(cache_settings(ttl_s=60), environ).ttl_s == 60
    settings = cache_settings("redis", ttl_s=60, redis_url=_URL)
    assert resolve_cache(settings, environ).ttl_s == 90
    assert resolve_cache(settings, {}).ttl_s == 60


def test_REDIS_URL_wins() -> None:
    """The environment names the server of this machine."""
    settings = cache_settings("redis", redis_url="redis://config:1/0")
    assert resolve_cache(settings, {"REDIS_URL": _URL}).redis_url == _URL
    assert resolve_cache(settings, {}).redis_url == "redis://config:1/0"


@pytest.mark.parametrize(
    ("environ", "backend"),
    [({}, "sqlite"), ({"REDIS_URL": ""}, "sqlite"), ({"REDIS_URL": _URL}, "redis")],
)
def test_auto_is_redis_where_the_environment_names_one(
    environ: dict[str, str], backend: str
) -> None:
    """Without a word in the config, REDIS_URL decides."""
    assert resolve_cache(cache_settings("auto"), environ).backend == backend


def test_other_backends_hold_no_url() -> None:
    """A REDIS_URL that lies about changes nothing for them."""
    found = resolve_cache(cache_settings("none"), {"REDIS_URL": "nonsense"})
    assert found == CacheChoice(backend="none", ttl_s=60, redis_url=None)


@pytest.mark.parametrize(
    ("configured", "environ", "named"),
    [
        (None, {}, r"cache\.redis_url is not set"),
        ("", {}, r"cache\.redis_url is empty"),
        (_URL, {"REDIS_URL": ""}, "REDIS_URL is empty"),
        (_URL, {"REDIS_URL": "127.0.0.1:6379"}, "REDIS_URL is not a Redis URL"),
        ("http://127.0.0.1", {}, r"cache\.redis_url is not a Redis URL"),
        ("redis://:secret@host:port/0", {}, r"cache\.redis_url is not a Redis URL"),
    ],
    ids=["none", "empty", "empty variable", "no scheme", "other scheme", "no port"],
)
def test_redis_without_a_usable_url_is_refused(
    configured: str | None, environ: dict[str, str], named: str
) -> None:
    """The message names where the URL came from, says what to do, and keeps the password."""
    with pytest.raises(ValueError, match=named) as caught:
        resolve_cache(cache_settings("redis", redis_url=configured), environ)
    assert "redis://host:port/db" in str(caught.value)
    assert "secret" not in str(caught.value)
