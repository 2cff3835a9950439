"""What ``bin/trm watch`` shows of a run under the factorial gate. Pure; fits 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from actors.commands.console import visible
from actors.commands.html.words import count
from actors.commands.watch_reading import Epoch
from actors.factorial_view import VOID, FactorialView, PhasePairs

__all__ = ["COLUMNS", "epoch_cells", "epoch_columns", "head_line", "pairs_rows"]

COLUMNS = ("class", "phase", "pairs", "", "void", "edits", "adopted")


def head_line(view: FactorialView) -> Text:
    """How far the whole schedule is, or what was decided."""
    run = view.run
    if run is not None and not run.ok:
        lost = f"{run.sentinel_wins} won, {run.sentinel_losses} lost, p {run.sentinel_p:.2g}"
        return Text(f"{VOID}: sentinels {lost}", style="bold red")
    void = view.total("void")
    pairs = f"{view.total('done')} of {count(view.total('planned'), 'pair')}" + (
        f", {void} void" if void else ""
    )
    if run is None:
        return Text(f"factorial gate: {pairs}; decides after the last one")
    return Text(f"factorial gate: {pairs}; {run.adopted} of {count(run.n_edits, 'edit')} adopted")


def epoch_columns() -> tuple[str, ...]:
    """In the table of epochs, after val and test."""
    return ("new edits", "pairs", "void", "adopted")


def epoch_cells(view: FactorialView, one: Epoch) -> tuple[str, ...]:
    """The cells below them; the last epoch has the certification's pairs, too."""
    if not one.epoch or one.epoch > view.n_epochs:
        return ("",) * len(epoch_columns())
    is_last = one.epoch == view.n_epochs
    phases = (one.epoch, one.epoch + 1) if is_last else (one.epoch,)
    done, planned, void = (
        sum(view.in_phase(phase, what) for phase in phases) for what in ("done", "planned", "void")
    )
    adopted = 0 if not is_last else None if view.run is None else view.run.adopted
    return (
        str(sum(edit.row.born == one.epoch for edit in view.proposed)),
        f"{done}/{planned}",
        str(void),
        "" if adopted is None else str(adopted),
    )


def pairs_rows(table: Table, view: FactorialView, bar: Callable[[int, int], str]) -> None:
    """A line per class: the phase that it is in, and what became of its edits."""
    edits = Counter(one.row.task_type for one in view.proposed)
    adopted = Counter(one.row.task_type for one in view.proposed if one.row.state == "adopted")
    for own in view.classes:
        now = _now(own.phases)
        certifies = now.phase > view.n_epochs
        table.add_row(
            visible(own.task_type),
            "certify" if certifies else f"epoch {now.phase}",
            bar(now.done, now.planned),
            f"{now.done}/{now.planned}",
            str(own.total("void") or ""),
            str(edits[own.task_type]),
            "" if view.run is None else f"{adopted[own.task_type]}/{edits[own.task_type]}",
        )


def _now(phases: Sequence[PhasePairs]) -> PhasePairs:
    """The last phase whose pairs are laid out, else the first."""
    begun = [phase for phase in phases if phase.done or phase.waiting]
    return begun[-1] if begun else phases[0]
