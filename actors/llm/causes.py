"""Why an endpoint does not answer, in words that say where to look. Pure."""

from __future__ import annotations

import re

__all__ = ["address_of", "cause_of"]

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
