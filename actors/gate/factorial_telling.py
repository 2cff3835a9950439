"""The factorial gate's lines in the log: one a pair, one an edit, one for the decision."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from protocol.factorial_rows import FactorialEditRow, FactorialRunRow, PairRow

__all__ = ["tell_decision", "tell_edit", "tell_pair"]

log = structlog.get_logger("gate")


def tell_pair(row: PairRow) -> None:
    """A pair that is drawn or void; its outcome says nothing of an edit without its coins."""
    log.info(
        "factorial.pair",
        **{"class": row.task_type},
        phase=row.phase,
        pair=row.pair,
        unit=row.unit_id,
        state=row.state,
        outcome=row.outcome,
    )


def tell_edit(row: FactorialEditRow) -> None:
    """What an edit, or a sentinel, came to in the end."""
    log.info(
        "factorial.edit",
        **{"class": row.task_type},
        edit=row.edit_id,
        sentinel=row.sentinel,
        state=row.state,
        wins=row.wins,
        losses=row.losses,
        seen=row.seen,
        pairs=row.pairs,
        p=row.p,
        effect=row.effect,
    )


def tell_decision(run: FactorialRunRow, adopted: Sequence[str]) -> None:
    """An error where the run's claims are void."""
    tell = log.info if run.ok else log.error
    tell(
        "factorial.decided",
        edits=run.n_edits,
        adopted=list(adopted),
        tau=run.tau,
        cut=run.cut,
        sentinels_ok=run.ok,
        sentinel_wins=run.sentinel_wins,
        sentinel_losses=run.sentinel_losses,
        sentinel_p=run.sentinel_p,
        next="what was adopted is evaluated" if run.ok else "the run ends; its claims are void",
    )
