"""What the factorial gate says: before the first draw, and of every edit at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import get_args

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from actors.curves import brief
from actors.estimate import Passes, factorial_estimate
from actors.factorial_documents import edited_documents, edited_package
from actors.factorial_view import EditView, FactorialView
from actors.gate.eprocess import exact_alpha
from actors.gate.factorial.preview import preview, preview_lines
from actors.gate.levels import q_of
from actors.gate.phase import schedule_of
from actors.ledger.reader import Reader
from actors.summary import KINDS
from actors.tables import WIDTH, new_table, percent, prose
from actors.twin.truth import class_accuracy, classify, package_accuracy, prompts_text
from actors.twin.world import World
from protocol.dataset import DataSummary, Question, Unit
from protocol.documents import PackageTexts
from protocol.evolver import Writing
from protocol.factorial_rows import (
    PROMPTS,
    FactorialEditRow,
    FactorialRunRow,
    FactorialScheduleRow,
)
from protocol.rows import EvaluationRow
from protocol.settings import Config

__all__ = [
    "LIMITS",
    "factorial_epochs",
    "factorial_part",
    "factorial_truth",
    "schedule_text",
    "true_gains",
]

LIMITS = (
    "Limits: nothing is adopted before the end; the whole budget is spent; two fresh documents per "
    "pair break prefix caching; overlapping edits share their credit; small effects (2-8 points) "
    "are mostly missed."
)
_MORE = "More: docs/gate-training.md#the-factorial-gate-in-words"
_DECIDED = ("adopted", "rejected", "dropped")
_NUMBERS = 5  # columns of an edit's numbers, empty before the decision


def schedule_text(
    config: Config,
    data: DataSummary,
    units: Sequence[Unit],
    calls_per_rollout: float,
    passes: Passes,
) -> Text:
    """All that will be drawn, what it can see and take, and which classes do not train.

    Raises ScheduleError: the units or the budget make no schedule.
    """
    schedule = schedule_of(config.gate, config.run.seed, config.trainer.epochs, units)
    shown = preview(schedule, q_of(config.gate), exact_alpha(config.gate.cap))
    learned = sum(unit.n_questions for own in schedule.classes for unit in own.design)
    rollouts, calls = factorial_estimate(
        passes,
        drawn=shown.rollouts,
        learned=learned * schedule.n_epochs,
        proposals=len(schedule.classes) * schedule.n_epochs,
        calls_per_rollout=calls_per_rollout,
    )
    lines = [
        f"Before spending (gate.design: factorial): {data.n_questions} questions, "
        f"{data.n_videos} videos, baseline {data.baseline_run_id}",
        *preview_lines(shown),
        *(f"Not trained: {row.task_type}: {row.reason}" for row in data.classes if row.reason),
        f"Expected: {rollouts:,.0f} rollouts with val and test, about {calls:,.0f} calls in all, "
        f"at {calls_per_rollout:.2g} per rollout.",
        f"{LIMITS} {_MORE}",
    ]
    return Text("\n").join(map(prose, lines))


# -- epochs -----------------------------------------------------------------------------


def factorial_epochs(reader: Reader, view: FactorialView) -> Group:
    """A line per whole epoch, the seed's pass first, and one for the pairs that certify."""
    passes = [
        row
        for row in sorted(reader.rows(EvaluationRow), key=lambda row: row.epoch)
        if row.pool == "val" and row.kind in ("seed", "final")
    ]
    planned = max((row.planned for row in passes), default=0)
    lost = ("missing",) if any(row.missing for row in passes) else ()
    void = ("void",) if view.total("void") else ()
    table = new_table(
        f"Epochs on val, {planned} questions (95 % interval)",
        "epoch",
        "package",
        "right",
        *lost,
        "new",
        "pairs",
        *void,
        "dropped",
        "adopted",
    )
    born = Counter(one.row.born for one in view.proposed)
    for row in passes:
        new, dropped = (str(born[row.epoch]), _dropped(view, row.epoch)) if row.epoch else ("", "")
        table.add_row(
            str(row.epoch or "seed"),
            brief(row.package),
            percent(row.right, row.planned),
            *((str(row.missing),) if lost else ()),
            new,
            *_pairs(view, row.epoch),
            dropped,
            "",
        )
    last = view.n_epochs + 1
    if view.in_phase(last, "done"):
        adopted = "-" if view.run is None else str(view.run.adopted)
        cells = ("certify", "", "", *(("",) if lost else ()), "", *_pairs(view, last), "", adopted)
        table.add_row(*cells)
    return Group(
        table,
        prose(
            "package: v2+v1 is skills/v2 with prompts/v1. new: edits proposed. pairs: answered, of",
            "those scheduled; a class without an edit left to test draws none.",
            *(("void: of them lost to infrastructure, counted for nobody.",) if void else ()),
            "dropped: edits turned off after the epoch's pairs. certify: the pairs after the last",
            "proposal, upon which the run decides once; the last epoch's package holds what it",
            "adopts.",
        ),
    )


def _pairs(view: FactorialView, phase: int) -> tuple[str, ...]:
    """Pairs of a phase, and void ones where the run has any; empty for the seed's line."""
    void = 1 if view.total("void") else 0
    if not phase:
        return ("",) * (1 + void)
    done, planned = view.in_phase(phase, "done"), view.in_phase(phase, "planned")
    return (f"{done}/{planned}", *((str(view.in_phase(phase, "void")),) if void else ()))


def _dropped(view: FactorialView, epoch: int) -> str:
    return "-" if view.run is None else str(view.dropped_in(epoch))


# -- edits ------------------------------------------------------------------------------


def factorial_part(view: FactorialView, gains: Mapping[str, float]) -> Group:
    """The decision, what it adopted, and every edit on a line by class, its sentinel last.

    gains: the planted truth by edit, where a simulator answered; else empty.
    """
    parts: list[RenderableType] = [Text("Edits, tested together", style="bold")]
    parts += [prose(*_decision_words(view.run)), *_adopted(view)]
    classes = sorted({one.row.task_type for one in view.edits})
    for name in classes:
        own = [one for one in view.edits if one.row.task_type == name]
        parts += [Text(), _class_table(_title(name), own, gains), *_groups(own)]
    return Group(*parts, prose(*_legend(view, gains)), prose(LIMITS, _MORE))


def _title(name: str) -> str:
    return "System prompt and tool prompts, in every class's pairs" if name == PROMPTS else name


def _class_table(name: str, edits: Sequence[EditView], gains: Mapping[str, float]) -> Table:
    known = ("truly",) if gains else ()
    columns = ("edit", "state", "W", "L", "pairs", "p", "gain, points", *known)
    table = new_table(name, *columns)
    for one in edits:
        own = gains.get(one.row.edit_id)
        truth = "" if own is None else f"{classify(own)} {100 * own:+.1f}"
        table.add_row(*_cells(one), *((truth,) if gains else ()))
    return table


def _cells(one: EditView) -> tuple[str, ...]:
    row = one.row
    state, name = "" if row.sentinel else row.state, _short(row)
    if one.edit is not None and one.edit.op in get_args(Writing):
        name = f"{name} ({one.edit.op})"
    if row.wins is None or row.losses is None:
        return (name, state, *("-",) * _NUMBERS)
    gain = "-"
    if row.effect is not None and row.low is not None and row.high is not None:
        gain = f"{100 * row.effect:+.1f} [{100 * row.low:+.1f}, {100 * row.high:+.1f}]"
    p = one.coin_p if row.sentinel else row.p
    told = "-" if p is None else f"{p:.2g}"
    return (name, state, str(row.wins), str(row.losses), str(row.pairs), told, gain)


def _short(row: FactorialEditRow) -> str:
    """``e1/3`` below its class; the whole name is ``e1/counting-problem/3``."""
    if row.sentinel:
        return "sentinel"
    epoch, _, rest = row.edit_id.partition("/")
    return f"{epoch}/{rest.rpartition('/')[2]}"


def _adopted(view: FactorialView) -> list[Text]:
    """The first line of what every adopted edit says, cut to the width."""
    lines = []
    for one in view.edits:
        if one.row.state == "adopted" and one.edit is not None:
            text = one.edit.content.strip() or f"{one.edit.op}: {one.edit.target.strip()}"
            told = f"  {one.row.edit_id}: {text.splitlines()[0] if text else one.edit.op}"
            lines.append(Text(told if len(told) <= WIDTH else f"{told[: WIDTH - 2]}.."))
    return [prose("Adopted:"), *lines] if lines else []


def _groups(edits: Sequence[EditView]) -> list[Text]:
    """Which of a class's edits exclude each other."""
    groups: dict[str, list[str]] = {}
    for one in edits:
        if one.row.group_id is not None:
            groups.setdefault(one.row.group_id, []).append(_short(one.row))
    return [prose(f"One group: {', '.join(names)}.") for names in groups.values() if names[1:]]


def _decision_words(run: FactorialRunRow | None) -> list[str]:
    if run is None:
        return ["The run has not decided yet: that happens once, after the last pair."]
    q, cap = float(Fraction(run.q)), float(Fraction(run.cap))
    cut = "no p is small enough" if run.cut is None else f"cut {run.cut:.4g}"
    lines = [
        f"{run.adopted} of {run.n_edits} edits adopted: q {q:g}, cap {cap:g}, tau {run.tau:.4g}, "
        f"{cut}, {run.passed} at or below it.",
        f"Sentinels, edits that change nothing: {run.sentinel_wins} won, {run.sentinel_losses} "
        f"lost, p = {run.sentinel_p:.2g} (two-sided, over all of them): "
        + ("they look like coins." if run.ok else "THEY DO NOT LOOK LIKE COINS."),
    ]
    if not run.ok:
        return [*lines, "No claim stands: nothing is adopted, and no p counts."]
    return [
        *lines,
        f"Guarantee: of the adopted edits a share of at most {q:g} is expected to change nothing.",
        "Known from simulation alone: harmful edits inside that share, interactions, edits that",
        "help some units and hurt others, groups.",
    ]


def _legend(view: FactorialView, gains: Mapping[str, float]) -> list[str]:
    """What columns and terms mean; none of what is not shown."""
    lines = [
        "e1/3: the third edit of epoch 1, of the class above it. W, L: pairs won and lost. p: how",
        "probable so many wins are if the edit changes nothing (one-sided); of a sentinel: W and L",
        "as uneven (two-sided).",
    ]
    if any(one.row.group_id is not None for one in view.proposed):
        lines.append("One group: edits of which at most one can be on, so they share pairs.")
    if view.run is None:
        return [*lines, "live: under test."]
    lines += [
        "adopted: in the documents; rejected: not shown to help; dropped: turned off for its",
        "losses, p = 1. q: the share that the decision bounds. tau: the largest p that may be",
        "adopted at all, never above the cap. cut: the largest p that was, of a group only the",
        "smallest. gain: mean over random backgrounds of the other edits, with its 95 % interval;",
        "of adopted ones too large on average, as they were chosen for W.",
    ]
    if gains:
        lines.append("truly: the planted gain over the class, alone.")
    return lines


def factorial_truth(view: FactorialView, gains: Mapping[str, float]) -> list[Group]:
    """State against planted truth; empty without either."""
    if view.run is None or not gains:
        return []
    table = new_table("Verdicts against the planted truth", "verdict", *KINDS)
    counted = Counter(
        (one.row.state, str(classify(gains[one.row.edit_id])))
        for one in view.proposed
        if one.row.edit_id in gains
    )
    for state in _DECIDED:
        cells = [counted[state, kind] for kind in KINDS]
        if any(cells):
            table.add_row(state, *map(str, cells))
    words = "The endpoint was the simulator, so the truth is known: the gain over the whole class."
    return [Group(table, prose(words))]


def true_gains(
    reader: Reader,
    config: Config,
    base: PackageTexts,
    world: World,
    questions: Sequence[Question],
) -> dict[str, float]:
    """What every edit is truly worth, alone on the base.

    Over its class's questions; an edit of the prompts over those of all classes that train.
    """
    trained = {row.task_type for row in reader.rows(FactorialScheduleRow)}
    everyone = [one for one in questions if one.task_type in trained]
    before = prompts_text(base.prompts)
    gains = {}
    for document in edited_documents(base, reader.rows(FactorialEditRow), config.evolver):
        name = document.scope
        for row in document.rows:
            alone = {row.edit_id}
            if name == PROMPTS:
                after = edited_package(base, [document], alone)
                was, is_ = (package_accuracy(world, everyone, texts) for texts in (base, after))
            else:
                was, is_ = (
                    class_accuracy(world, questions, name, text, before)
                    for text in (document.text, document.under(alone))
                )
            gains[row.edit_id] = is_ - was
    return gains
