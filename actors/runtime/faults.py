"""A testing switch in the product: crashes on demand, at an exact message.

``llm@20`` lets the 20th message that ``llm`` begins raise ``InjectedCrash``, once. A message
that is handed out again counts again, so the same message passes the second time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from actors.runtime.errors import InjectedCrash, WiringError

__all__ = ["FaultPlan"]

_ENTRY = re.compile(r"(?P<actor>.+)@(?P<nth>[1-9][0-9]*)")


class FaultPlan:
    """Counts every actor's messages against the entries.

    Raises WiringError for an entry that is not ``actor@n`` or names no actor.
    """

    def __init__(self, entries: Sequence[str], actors: Collection[str]) -> None:
        self._due: set[tuple[str, int]] = set()
        self._begun: Counter[str] = Counter()
        for entry in entries:
            match = _ENTRY.fullmatch(entry)
            if match is None or match["actor"] not in actors:
                known = ", ".join(actors)
                raise WiringError(f"inject_crash {entry!r} is not actor@n with one of {known}")
            self._due.add((match["actor"], int(match["nth"])))

    def begin(self, actor: str) -> None:
        """Count a message. Raises InjectedCrash if it is the one."""
        self._begun[actor] += 1
        nth = self._begun[actor]
        if (actor, nth) in self._due:
            raise InjectedCrash(f"{actor}@{nth}")
