"""Why an endpoint does not answer, in words that say where to look, and what to do. Pure."""

from __future__ import annotations

import re

__all__ = ["address_of", "cause_of", "remedy_of"]

_CHAT = "/chat/completions"
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_NUMBER = re.compile(r"\[Errno -?\d+\] ")
_CLASS = re.compile(r"^[A-Z]\w*(?:Error|Timeout|Protocol): ")
_CAUSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("connection refused (nothing listens there)", ("connection refused", "connect call failed")),
    (
        "the name does not resolve",
        (
            "name or service not known", "nodename nor servname", "no address associated",
            "temporary failure in name resolution", "getaddrinfo", "name does not resolve",
        ),
    ),
    ("no route to it", ("no route to host", "network is unreachable", "host is unreachable")),
    ("the connection does not come about in time", ("connecttimeout",)),
    ("its certificate is not trusted", ("certificate verify failed",)),
    ("it does not speak TLS there: http instead of https?", ("wrong_version_number",)),
)  # fmt: skip
_REMEDIES = {
    "auth": "check its key (the variable that its api_key_env names) and what the key may do",
    "quota": "top up its account",
    "retry_after_too_long": "it wants to be left alone for longer than llm.outage_s; wait, or name "
    "another endpoint",
}
_NOT_SERVED = "check its base_url and model: bin/train CONFIG --check"


def address_of(url: str) -> str:
    """An endpoint's base_url, of its address of chat completions; without credentials."""
    return _USERINFO.sub("", url.removesuffix(_CHAT))


def cause_of(error: str) -> str:
    """Of ``kind: detail``, as the pool keeps it: the cause in words, else the detail itself."""
    kind, _, detail = error.partition(": ")
    lowered = error.lower()
    for words, signs in _CAUSES:
        if any(sign in lowered for sign in signs):
            return words
    said = _NUMBER.sub("", _CLASS.sub("", detail)).strip(" :")
    return said or detail.strip(" :") or kind


def remedy_of(error: str) -> str:
    """Of ``kind: detail``, for an endpoint that serves nobody: what mends it."""
    return _REMEDIES.get(error.partition(":")[0], _NOT_SERVED)
