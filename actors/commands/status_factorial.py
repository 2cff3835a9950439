"""What ``trm status`` says of a run under the factorial gate. Reads only."""

from __future__ import annotations

from collections import Counter

from actors.commands.status_parts import Facts, Looking
from actors.factorial_view import VOID, FactorialView, factorial_view
from actors.ledger.reader import Reader

__all__ = ["look_at_factorial"]


def look_at_factorial(looking: Looking, reader: Reader) -> bool:
    """The facts of such a run; False where it is none. Void claims come before everything."""
    view = factorial_view(reader)
    if view is None:
        return False
    if view.void:
        why = "its sentinels do not look like coins; nothing was adopted"
        looking.facts = {"claims": f"{VOID}: {why}"} | looking.facts
    facts = looking.facts
    facts["gate"] = "factorial"
    facts["phases"] = {
        view.phase_name(phase): f"{view.in_phase(phase, 'done')}/{view.in_phase(phase, 'planned')}"
        for phase in range(1, view.n_epochs + 2)
    }
    facts["pairs"] = {
        "done": view.total("done"),
        "planned": view.total("planned"),
        "void": view.total("void"),
    }
    facts["draws"] = {"spent": view.spent, "planned": view.planned, "budget": view.budget}
    facts["edits"] = dict(sorted(Counter(one.row.state for one in view.proposed).items()))
    facts["sentinels"] = _sentinels(view)
    return True


def _sentinels(view: FactorialView) -> Facts | str:
    run = view.run
    if run is None:
        return "told with the decision, after the last pair"
    return {
        "won": run.sentinel_wins,
        "lost": run.sentinel_losses,
        "p": float(f"{run.sentinel_p:.3g}"),
        "look like coins": run.ok,
    }
