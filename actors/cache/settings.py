"""Which store, how long entries live, and where Redis is: decided once, at start.

A time to live of 0 used to mean for ever (row P1-1). There is no "for ever" here: what is
not a positive whole number of seconds is refused before anything runs. Messages never hold
a URL, which may carry a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from protocol.settings import CacheSettings

__all__ = ["CacheChoice", "resolve_cache"]

_TTL_VARIABLE = "REDIS_CACHE_TTL"
_URL_VARIABLE = "REDIS_URL"
_MAX_TTL_S = 10**10  # about 300 years; Redis refuses numbers that overflow its milliseconds
_SCHEMES = ("redis", "rediss", "unix")


class CacheChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings and the environment come to.

    ttl_s: seconds, positive. redis_url: set exactly when backend is ``redis``.
    """

    backend: Literal["sqlite", "redis", "none"]
    ttl_s: int
    redis_url: str | None


def resolve_cache(settings: CacheSettings, environ: Mapping[str, str]) -> CacheChoice:
    """Join settings and environment; row P1-1.

    ``REDIS_URL`` turns the backend ``auto`` into redis and wins over ``cache.redis_url``;
    ``REDIS_CACHE_TTL`` is checked whenever it is set and wins over ``cache.ttl_s`` for redis.

    Raises ValueError naming the variable at fault and the remedy.
    """
    backend = settings.backend
    if backend == "auto":
        backend = "redis" if environ.get(_URL_VARIABLE) else "sqlite"
    ttl_s = _positive("cache.ttl_s", str(settings.ttl_s), "set it in the config")
    text = environ.get(_TTL_VARIABLE)
    if text is not None:
        redis_ttl_s = _positive(_TTL_VARIABLE, text, "set it so, or unset it to use cache.ttl_s")
        if backend == "redis":
            ttl_s = redis_ttl_s
    url = _redis_url(settings, environ) if backend == "redis" else None
    return CacheChoice(backend=backend, ttl_s=ttl_s, redis_url=url)


def _positive(name: str, text: str, remedy: str) -> int:
    """The number that a text is. Raises ValueError."""
    digits = text.strip()
    plain = digits.isascii() and digits.isdigit() and len(digits) <= len(str(_MAX_TTL_S))
    value = int(digits) if plain else 0
    if not 0 < value <= _MAX_TTL_S:
        raise ValueError(
            f"{name}={text!r}: a time to live is a positive whole number of seconds, at most "
            f"{_MAX_TTL_S}, for example 2592000 (30 days); {remedy}. To do without a cache, "
            "set cache.backend to none"
        )
    return value


def _redis_url(settings: CacheSettings, environ: Mapping[str, str]) -> str:
    """The URL to use. Raises ValueError if there is none or it is not a Redis URL."""
    named = environ.get(_URL_VARIABLE)
    source, url = (
        ("cache.redis_url", settings.redis_url) if named is None else (_URL_VARIABLE, named)
    )
    remedy = (
        f"set {_URL_VARIABLE} or cache.redis_url to redis://host:port/db, "
        "or cache.backend to sqlite"
    )
    if not url:
        state = "empty" if url == "" else "not set"
        raise ValueError(f"cache.backend is redis, but {source} is {state}; {remedy}")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _SCHEMES and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number, a broken address
        usable = False
    if not usable:
        raise ValueError(f"{source} is not a Redis URL; {remedy}")
    return url
