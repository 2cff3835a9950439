"""Lines of progress: the first, now and then, the last."""

from __future__ import annotations

import pytest

from actors.commands.progress import Progress
from actors.monitor.spans import duration


def test_lines_come_now_and_then() -> None:
    """At most every ten seconds, with rate and time left; the last one always."""
    now = [100.0]
    said: list[str] = []
    progress = Progress("baseline", 40, said.append, every_s=10.0, clock=lambda: now[0])
    for _ in range(40):
        now[0] += 1.0
        progress.step()
    assert said == [
        "baseline: 1/40 (2%)",
        "baseline: 11/40 (28%), 1.0/s, about 29 s left",
        "baseline: 21/40 (52%), 1.0/s, about 19 s left",
        "baseline: 31/40 (78%), 1.0/s, about 9 s left",
        "baseline: 40/40 (100%), 1.0/s",
    ]


def test_slow_work_is_counted_by_the_minute() -> None:
    """Nobody reads 0.0/s."""
    now = [0.0]
    said: list[str] = []
    progress = Progress("x", 3, said.append, clock=lambda: now[0])
    for _ in range(2):
        now[0] += 120.0
        progress.step()
    assert said[-1] == "x: 2/3 (67%), 0.5/min, about 2 min left"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 s"), (89.0, "89 s"), (90.0, "2 min"), (7200.0, "2.0 h")]
)
def test_durations(seconds: float, text: str) -> None:
    """As a person says them."""
    assert duration(seconds) == text
