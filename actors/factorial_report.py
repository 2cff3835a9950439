"""What the factorial gate says: before the first draw, and of every edit at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import get_args

import msgspec
from rich.console import Group
from rich.text import Text

from actors.evolver.compose import compose, render
from actors.factorial_view import FactorialView
from actors.gate.eprocess import exact_alpha
from actors.gate.factorial.preview import preview, preview_lines
from actors.gate.levels import q_of
from actors.gate.phase import schedule_of
from actors.ledger.reader import Reader
from actors.tables import new_table, share
from actors.twin.truth import class_accuracy, classify, prompts_text
from actors.twin.world import World
from protocol.dataset import DataSummary, Question, Unit
from protocol.documents import PackageTexts
from protocol.evolver import Edit, Writing
from protocol.factorial_rows import FactorialEditRow, FactorialRunRow
from protocol.rows import EvaluationRow
from protocol.settings import Config

__all__ = ["LIMITS", "factorial_epochs", "factorial_part", "schedule_text", "true_gains"]

LIMITS = (
    "Limits: nothing is adopted before the end; the whole budget is spent; two fresh documents "
    "per\npair break prefix caching; overlapping edits share their credit; small effects (2-8 "
    "points) are\nmostly missed."
)


def schedule_text(
    config: Config, data: DataSummary, units: Sequence[Unit], calls_per_rollout: float
) -> Text:
    """All that will be drawn and what it can see, and which classes do not train.

    Raises ScheduleError: the units or the budget make no schedule.
    """
    schedule = schedule_of(config.gate, config.run.seed, config.trainer.epochs, units)
    shown = preview(schedule, q_of(config.gate), exact_alpha(config.gate.cap))
    lines = [
        f"Before spending: {data.n_questions} questions, {data.n_videos} videos, baseline "
        f"{data.baseline_run_id}; gate.design: factorial",
        *preview_lines(shown, calls_per_rollout, None),
        *(f"{row.task_type}: {row.reason}" for row in data.classes if row.reason),
        LIMITS,
    ]
    return Text("\n".join(lines))


def factorial_epochs(reader: Reader, view: FactorialView) -> Group:
    """One line per whole epoch, the seed's pass first: what was proposed, drawn and turned off."""
    table = new_table(
        "Epochs (accuracy on val, 95 % interval)",
        "epoch",
        "package",
        "val",
        "missing",
        "new edits",
        "pairs",
        "void",
        "dropped",
        "adopted",
    )
    born = Counter(one.row.born for one in view.proposed)
    passes = [row for row in reader.rows(EvaluationRow) if row.pool == "val"]
    for row in sorted(passes, key=lambda row: row.epoch):
        if row.kind not in ("seed", "final"):
            continue
        table.add_row(
            str(row.epoch or "seed"),
            str(row.package),
            share(row.right, row.planned),
            str(row.missing),
            *(_epoch_cells(view, row.epoch, born[row.epoch]) if row.epoch else ("",) * 5),
        )
    last = view.n_epochs + 1
    lines = [
        f"Then {view.in_phase(last, 'done')} of {view.in_phase(last, 'planned')} pairs to certify "
        f"({view.in_phase(last, 'void')} void), which belong to the last epoch's line too.",
        "pairs: answered or void, of those that were scheduled; a class without an edit left to "
        "test\ndraws none. void: an arm was lost to infrastructure; counted for nobody. dropped: "
        "turned off\nafter the epoch's pairs. Nothing is adopted before the end.",
    ]
    return Group(table, Text("\n".join(lines)))


def _epoch_cells(view: FactorialView, epoch: int, born: int) -> tuple[str, ...]:
    phases = (epoch,) if epoch < view.n_epochs else (epoch, epoch + 1)
    done, planned, void = (
        sum(view.in_phase(phase, what) for phase in phases) for what in ("done", "planned", "void")
    )
    decided = view.run is not None
    adopted = view.run.adopted if view.run is not None and epoch == view.n_epochs else 0
    return (
        str(born),
        f"{done}/{planned}",
        str(void),
        str(view.dropped_in(epoch)) if decided else "-",
        str(adopted) if decided or epoch < view.n_epochs else "-",
    )


def factorial_part(reader: Reader, gains: Mapping[str, float]) -> Group:
    """Every edit on a line, sentinels last, and what the decision rests on.

    gains: the planted truth by edit, where a simulator answered; else empty.
    """
    known = ("true gain", "truly") if gains else ()
    table = new_table(
        "Edits, tested together",
        "edit",
        "state",
        "group",
        "W",
        "L",
        "D",
        "pairs",
        "p",
        "effect (95 % interval)",
        *known,
    )
    rows = sorted(
        reader.rows(FactorialEditRow), key=lambda row: (row.sentinel, row.task_type, row.position)
    )
    for row in rows:
        own = gains.get(row.edit_id)
        truth = ("-", "-") if own is None else (f"{own:+.1%}", classify(own))
        table.add_row(*_cells(row), *(truth if gains else ()))
    return Group(table, Text("\n".join(_decision_lines(reader))))


def _name(row: FactorialEditRow) -> str:
    """The edit's id; with what it is, if it is no edit of the body."""
    edit = msgspec.json.decode(row.edit, type=Edit) if row.edit else None
    writing = edit is not None and edit.op in get_args(Writing)
    return f"{row.edit_id} ({edit.op})" if edit is not None and writing else row.edit_id


def _cells(row: FactorialEditRow) -> tuple[str, ...]:
    state, name = "sentinel" if row.sentinel else row.state, _name(row)
    if row.wins is None or row.losses is None:
        return (name, state, row.group_id or "", *("-",) * 6)
    discordant = row.seen if row.state == "dropped" else row.wins + row.losses
    effect = "-"
    if row.effect is not None and row.low is not None and row.high is not None:
        effect = f"{row.effect:+.1%} [{row.low:+.1%}, {row.high:+.1%}]"
    return (
        name,
        state,
        row.group_id or "",
        str(row.wins),
        str(row.losses),
        str(discordant),
        str(row.pairs),
        "-" if row.p is None else f"{row.p:.3g}",
        effect + (" selected" if row.state == "adopted" else ""),
    )


def _decision_lines(reader: Reader) -> list[str]:
    lines = []
    for run in reader.rows(FactorialRunRow):
        q, cap = float(Fraction(run.q)), float(Fraction(run.cap))
        cut = "no p is small enough" if run.cut is None else f"cut {run.cut:.4g}"
        lines += [
            f"{run.adopted} of {run.n_edits} edits adopted: q {q:g}, cap {cap:g}, "
            f"tau {run.tau:.4g}, {cut}, {run.passed} at or below it.",
            f"Sentinels, edits that change nothing: {run.sentinel_wins} won, "
            f"{run.sentinel_losses} lost, p = {run.sentinel_p:.2g}: "
            + ("they look like coins." if run.ok else "THEY DO NOT LOOK LIKE COINS."),
            *(
                _guarantee(q)
                if run.ok
                else ["No claim stands: nothing is adopted, and no p counts."]
            ),
        ]
    return [
        *lines,
        "effect: mean gain over random backgrounds of the other edits; selected: adopted because W "
        "was\nhigh, so that it is too large on average. D: discordant pairs seen; of a dropped "
        "edit also\nafter it was turned off. W, L: pairs won and lost.",
        LIMITS,
    ]


def _guarantee(q: float) -> list[str]:
    return [
        f"Guarantee: of the adopted edits a share of at most {q:g} is expected to change "
        "nothing (T7).",
        "By simulation only: harmful edits inside that share, interactions, edits that help "
        "some units",
        "and hurt others, groups.",
    ]


def true_gains(
    reader: Reader,
    config: Config,
    base: PackageTexts,
    world: World,
    questions: Sequence[Question],
) -> dict[str, float]:
    """What every edit is truly worth, alone on the base, over its class's questions."""
    rows: dict[str, list[FactorialEditRow]] = {}
    for row in reader.rows(FactorialEditRow):
        if not row.sentinel:
            rows.setdefault(row.task_type, []).append(row)
    prompts = prompts_text(base.prompts)
    gains = {}
    for task_type, members in rows.items():
        ordered = sorted(members, key=lambda row: row.position)
        text = base.skill_for(task_type).text
        edits = [msgspec.json.decode(row.edit, type=Edit) for row in ordered]
        composed = compose(text, edits, config.evolver.max_skill_chars)
        before = class_accuracy(world, questions, task_type, text, prompts)
        for place, row in enumerate(ordered):
            edited = render(composed, (place,))
            after = class_accuracy(world, questions, task_type, edited, prompts)
            gains[row.edit_id] = after - before
    return gains
