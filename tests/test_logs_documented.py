"""``docs/logs.md`` names every event that the program logs, and none that it does not."""

from __future__ import annotations

import re

from actors.places import ROOT

_LOGGED = re.compile(
    r"""\b(?:_?log\.(?:info|warning|error|exception)|tell)\(\s*"([a-z_]+\.?[a-z_]+)""", re.DOTALL
)
_WARNED = re.compile(r'self\._warn\("([a-z_.]+)"')
_CHOSEN = re.compile(r'\blog\.\w+\(\s*"([a-z_.]+)" if [^"]+ else "([a-z_.]+)"')
_NAMED = re.compile(r"`((?:[a-z]+_?[a-z]*\.[a-z_]+)|progress|heartbeat)`")
_NOT_EVENTS = re.compile(r"^(run\.(?:db|log_level)|runtime\.stats_s|docs\.|.*\.jsonl)$")


def test_every_event_is_documented_and_every_documented_event_exists() -> None:
    logged = {"log.lost"}
    for path in (ROOT / "actors").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        logged |= set(_LOGGED.findall(source)) | set(_WARNED.findall(source))
        logged |= {name for pair in _CHOSEN.findall(source) for name in pair}
    told = set(_NAMED.findall((ROOT / "docs" / "logs.md").read_text(encoding="utf-8")))
    told = {name for name in told if not _NOT_EVENTS.match(name)}
    assert logged - told == set(), "not in docs/logs.md"
    assert told - logged == set(), "in docs/logs.md, but never logged"
