"""How long a server asks to be left alone: its headers, read into seconds.

Whatever cannot be a delay (garbage, NaN, the past) is ignored, never an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["retry_after_s"]


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``retry-after``; None: not said.

    headers: by lower-case name. now: used for a date when the response has no ``date`` of its
    own; the server's clock is the better base, since the date was made with it.
    """
    milliseconds = _positive(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _positive(value)
    if seconds is not None:
        return seconds
    then = _date(value)
    if then is None:
        return None
    delay = (then - (_date(headers.get("date", "")) or now)).total_seconds()
    return delay if delay > 0 else None


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _date(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
