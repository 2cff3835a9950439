"""What the gate says of a test on its way, and when it cannot go on."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from actors.gate.looks import accept_rule
from protocol.base import Refused
from protocol.gate import Look, Trial
from protocol.rollout import Missed, reasons_of

__all__ = ["outage", "tell"]

log = structlog.get_logger("gate")


def tell(run_key: str, look: Look, n_units: int, alpha: float) -> None:
    """One line per block, for whoever watches; nothing that decides reads it.

    accept_from: the e-value that accepts, at a look that may accept and is not the last.
    """
    log.info(
        "gate.look",
        run_key=run_key,
        units=look.units,
        n_units=n_units,
        wins=look.wins,
        losses=look.losses,
        missing=look.missing,
        e=round(look.e, 4),
        accept_from=round(1 / alpha, 2),
        accept_rule=accept_rule(look.units, n_units),
    )


def outage(request: Trial, lost: Sequence[Missed]) -> Refused:
    """Why a trial is not decided."""
    return Refused(
        what=f"{request.run_key}: {len(lost)} questions of the ladder stayed missing",
        remedy="mend what the reasons name, then resume; what was answered is in the cache",
        details=reasons_of(lost),
        passing=True,
    )
