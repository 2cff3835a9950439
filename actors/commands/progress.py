"""How far a long command is: a line on stderr now and then, with rate and time left."""

from __future__ import annotations

import time
from collections.abc import Callable

from actors.monitor.spans import duration

__all__ = ["Progress"]

_EVERY_S = 10.0


class Progress:
    """Counts what is done of ``total`` and says so.

    say: writes a line. every_s: seconds between two lines; the first and the last are always
    said, the first without a guess at what is left.
    """

    def __init__(
        self,
        label: str,
        total: int,
        say: Callable[[str], None],
        *,
        every_s: float = _EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label = label
        self._total = total
        self._say = say
        self._every_s = every_s
        self._clock = clock
        self._done = 0
        self._begun = clock()
        self._said = float("-inf")

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        now = self._clock()
        if self._done == self._total or now - self._said >= self._every_s:
            self._said = now
            self._say(self._line(now - self._begun))

    def _line(self, seconds: float) -> str:
        share = self._done / self._total
        line = f"{self._label}: {self._done}/{self._total} ({share:.0%})"
        if seconds <= 0 or self._done == 1:
            return line
        rate = self._done / seconds
        line += f", {rate:.1f}/s" if rate >= 1 else f", {rate * 60:.1f}/min"
        left = self._total - self._done
        return f"{line}, about {duration(left / rate)} left" if left else line
