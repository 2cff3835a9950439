"""Retry-After in all its spellings."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from actors.llm.retry_after import retry_after_s

NOW = datetime(2026, 7, 16, 12, 0, 0, tzinfo=UTC)
IN_A_MINUTE = "Thu, 16 Jul 2026 12:01:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": IN_A_MINUTE}, 60.0),
        # the server's own clock is ten seconds ahead
        ({"retry-after": IN_A_MINUTE, "date": "Thu, 16 Jul 2026 12:00:10 GMT"}, 50.0),
        ({"retry-after": "Thu, 16 Jul 2026 11:00:00 GMT"}, None),
        ({"retry-after": "Thu, 16 Jul 99999999 11:00:00 GMT"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    """What cannot be a delay is ignored."""
    assert retry_after_s(headers, NOW) == seconds
