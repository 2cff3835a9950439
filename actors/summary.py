"""The tables around a run: what it can see, what became of its edits, what it cost.

Everything is read from the workspace's files, so that the same table can be made at any time.
When the endpoint was the simulator, the planted truth stands beside every verdict: no other
run can know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from actors.estimate import (
    CALLS_PER_ROLLOUT,
    SIMULATED_CALLS_PER_ROLLOUT,
    TYPICAL,
    Rates,
    RunShape,
    estimate,
)
from actors.gate.package_power import PackagePower, enough_questions
from actors.ledger.reader import Reader
from actors.tables import class_name, new_table, prose
from protocol.dataset import DataSummary, EpochPlan, Question
from protocol.gate import PowerTable
from protocol.ledger import Where
from protocol.rows import AttemptRow, DecisionRow, DocumentRow, OutcomeRow, StepRow
from protocol.settings import TrainerSettings

__all__ = [
    "VERDICTS",
    "OnTest",
    "Truth",
    "calls_table",
    "classes_table",
    "cost_text",
    "packages_text",
    "preflight_table",
    "seen_words",
    "skill_texts",
    "truth_table",
    "where_lines",
]

VERDICTS = ("accept", "reject", "undecided", "untestable")
_ROLE_NAMES = {"search": "agent", "judge": "judge", "evolve": "editor", "vision": "vision"}
_EMBED = "embed"
KINDS = ("helpful", "useless", "harmful")
_RESULTS = {
    "accepted": "accept",
    "rejected": "reject",
    "untestable": "untestable",
    "undecided": "undecided",
}
_ALL = "all"
# val and no other pool is judged on the classes that train, and was chosen by the answers
_OF_TRAINED = {"val": " of a class that trains"}
_CHOSEN = {"val": "; its count on val itself is no forecast, as val was chosen by it"}
_COUNTED = {"baseline": "", "run": " in this run"}


class OnTest(msgspec.Struct, frozen=True):
    """Test under two packages as question id -> right; a missing question has no entry, nor has
    one of another pool.
    """

    questions: Sequence[Question]
    before: Mapping[str, bool]
    after: Mapping[str, bool]

    @property
    def right(self) -> tuple[int, int]:
        """How many are, under each."""
        return sum(self.before.values()), sum(self.after.values())

    def counts(self, ids: Sequence[str]) -> tuple[str, ...]:
        """``16/36`` under each."""
        if not ids:
            return ("", "")
        sides = (self.before, self.after)
        return tuple(f"{sum(side.get(one, False) for one in ids)}/{len(ids)}" for side in sides)


class Truth(msgspec.Struct, frozen=True):
    """A decision with what the planted world knows of it. gain: in accuracy, [-1, 1]."""

    decision: DecisionRow
    gain: float
    kind: str


def preflight_table(
    data: DataSummary, plan: EpochPlan, power: PowerTable, trainer: TrainerSettings
) -> Group:
    """Every class with its ladder and the gains that it can see (GATE.md, before spending)."""
    table = new_table(
        f"Before spending: {data.n_questions} questions, {data.n_videos} videos, "
        f"baseline {data.baseline_run_id}",
        "class",
        "diag",
        "val",
        "test",
        "ladder",
        "wrong",
        "alpha",
        "p=.5",
        "p=.8",
        "steps",
    )
    works = {work.task_type: work for work in plan.classes}
    powers = {row.task_type: row for row in power.classes}
    steps = 0
    for row in data.classes:
        counts = (class_name(row.task_type), str(row.n_diag), str(row.n_val), str(row.n_test))
        if row.task_type not in works:
            table.add_row(*counts, *("",) * 6)
            continue
        work, seen = works[row.task_type], powers[row.task_type]
        own = len(work.batches[: trainer.max_batches]) * trainer.epochs
        steps += own
        table.add_row(
            *counts,
            str(seen.n_units),
            str(seen.n_wrong),
            f"{seen.alpha:g}",
            _gain(seen.gain_50),
            _gain(seen.gain_80),
            str(own),
        )
    return Group(table, *_preflight_words(data, plan, power, f"{steps} in {trainer.epochs} epochs"))


def _preflight_words(
    data: DataSummary, plan: EpochPlan, power: PowerTable, steps: str
) -> list[Text]:
    """What the columns mean, and what is to be said of single classes."""
    lines = [
        prose(
            "ladder: units (a class's questions in one video) that the gate tests on; wrong: of",
            "them in the baseline. p=.5, p=.8: the gain (the share of units that an edit must",
            f"truly win) that is accepted with that probability. steps: gate decisions, at most "
            f"{steps}. More: docs/concepts.md#the-gate-in-one-page",
        )
    ]
    tested = [row for row in power.classes if row.testable]
    if any(row.gain_80 is None for row in tested):
        lines.append(
            prose(
                "none: not even an edit that answers every question right is accepted that often:",
                "the ladder is too short, or too little of it is wrong. More videos of the class",
                "bring a gain within reach, or more draws of each question (gate.draws_small).",
            )
        )
    in_sample = [work.task_type for work in plan.classes if work.in_sample]
    if in_sample:
        lines.append(
            prose(
                f"In sample: {', '.join(in_sample)}: too few videos to keep the tested ones from",
                "the editor, so that only val shows whether an edit generalises.",
            )
        )
    lost = [row.task_type for row in power.classes if not row.testable]
    if lost:
        lines.append(
            prose(
                f"Untestable: {', '.join(lost)}: no edit could be accepted; more videos of the",
                "class mend that.",
            )
        )
    lines += [
        prose(f"Not trained: {row.task_type}: {row.reason}")
        for row in data.classes
        if row.task_type not in {work.task_type for work in plan.classes}
    ]
    return lines


def packages_text(pools: Sequence[tuple[str, PackagePower]]) -> Text:
    """What val and test can see of a whole package (exact one-sided McNemar)."""
    return Text("\n").join(
        prose(
            f"A whole package on {pool}, {power.n_questions} questions at {power.alpha:g}:",
            f"{seen_words(power, pool)}.",
        )
        for pool, power in pools
    )


def seen_words(power: PackagePower, pool: str) -> str:
    """The gains of a whole package that ``pool`` can see, and how many are wrong for that.

    Where a gain is out of reach, what it would take.
    """
    if not power.n_questions:
        return f"no gain is found: it holds no question{_OF_TRAINED.get(pool, '')}"
    if power.gain_50 is not None and power.gain_80 is not None:
        found = f"a gain of +{power.gain_50:.1%} is found with p=.5, +{power.gain_80:.1%} with p=.8"
        return found if power.basis == "baseline" else f"{found}, {_wrong_words(power, pool)}"
    much = "no gain, however large, is found with p=.8"
    if power.gain_50 is None:
        much = "no gain, however large, is found even with p=.5"
    else:
        much = f"a gain of +{power.gain_50:.1%} is found with p=.5; {much}"
    enough = enough_questions(power)
    remedy = "more questions" if enough is None else f"about {enough} such questions"
    return f"{much}, {_wrong_words(power, pool)}; {remedy} would bring one within reach"


def _wrong_words(power: PackagePower, pool: str) -> str:
    """How many are wrong, and how that is known."""
    if power.basis == "trainval":
        return (
            f"if about {power.n_wrong} of them are wrong (an estimate: the baseline's share of "
            f"wrong answers over trainval{_CHOSEN.get(pool, '')})"
        )
    return f"as {power.n_wrong} of them are wrong{_COUNTED[power.basis]}"


def cost_text(shape: RunShape, *, simulated: bool) -> Text:
    """What the configured epochs will buy, by the model of ``actors.estimate``.

    simulated: rollouts are as short as the simulator makes them.
    """
    calls = SIMULATED_CALLS_PER_ROLLOUT if simulated else CALLS_PER_ROLLOUT
    rates = Rates(
        search=TYPICAL["search"],
        judge=TYPICAL["judge"],
        evolve=TYPICAL["evolve"],
        calls_per_rollout=calls,
        concurrency=1,
    )
    made = estimate(shape, rates)
    return prose(
        f"Expected: {made.all_rollouts.expected:,.0f} (at most {made.all_rollouts.most:,.0f})",
        f"rollouts, {made.all_calls.expected:,.0f} (at most {made.all_calls.most:,.0f}) calls at",
        f"{calls:g} per rollout; bin/train --check measures tokens, money and hours.",
    )


def _gain(share: float | None) -> str:
    return "none" if share is None else f"+{share:.0%}"


def classes_table(steps: Sequence[StepRow] | None, tested: OnTest | None) -> Group:
    """By class: test under the seed and the best package, and what became of its edits.

    steps: None where edits are tested together; tested: None where test was not evaluated.
    """
    sides = () if tested is None else ("seed", "best")
    table = new_table("By class", "class", *sides, *(_RESULTS if steps else ()))
    asked: dict[str, list[str]] = {}
    for question in () if tested is None else tested.questions:
        asked.setdefault(question.task_type, []).append(question.question_id)
    results: dict[str, Counter[str]] = {}
    for row in steps or ():
        results.setdefault(row.task_type, Counter())[row.result] += 1
    names = sorted({*asked, *results})
    every = [one for ids in asked.values() for one in ids]
    total = sum(results.values(), Counter[str]())
    for one in [*names, _ALL]:
        ids, counted = (every, total) if one is _ALL else (asked.get(one, []), results.get(one))
        table.add_row(
            class_name(one),
            *(() if tested is None else tested.counts(ids)),
            *(() if not steps else _results(counted)),
            end_section=one == names[-1] if names else False,
        )
    words = [] if tested is None else ["seed, best: test questions right under that package."]
    if not steps:
        return Group(table, prose(*words))
    proposed = sum(total[verdict] for verdict in VERDICTS)
    return Group(
        table,
        prose(
            *words,
            f"{total.total()} steps, {total.total() - proposed} of them without an edit to test.",
            "untestable: not even all wins could have been accepted, so that nothing was spent;",
            "undecided: infrastructure lost too much of the evidence.",
        ),
    )


def _results(counted: Counter[str] | None) -> tuple[str, ...]:
    if counted is None:
        return ("",) * len(_RESULTS)
    return tuple(str(counted[verdict]) for verdict in _RESULTS.values())


def truth_table(truths: Sequence[Truth]) -> Group:
    """Verdict against planted truth; every decision with its own stands in ``bin/trm report``."""
    table = new_table("Verdicts against the planted truth", "verdict", *KINDS)
    counted = Counter((truth.decision.verdict, truth.kind) for truth in truths)
    for verdict in VERDICTS:
        cells = [counted[verdict, kind] for kind in KINDS]
        if any(cells):
            table.add_row(verdict, *map(str, cells))
    known = prose(
        "The endpoint was the simulator, so the truth is known: the gain over the whole class.",
        "The report below has it for every edit.",
    )
    return Group(table, known)


def calls_table(reader: Reader, restarts: int, seconds: float) -> Table:
    """What it cost, and what went wrong on the way."""
    every = reader.rows(AttemptRow)
    attempts = [row for row in every if row.role != _EMBED]
    embedded = [row for row in every if row.role == _EMBED]
    by_outcome = Counter(row.outcome for row in attempts)
    cached = by_outcome.pop("cached", 0)
    failed = {kind: n for kind, n in sorted(by_outcome.items()) if kind != "ok"}
    missing = Counter(
        row.missing_kind
        for row in reader.rows(OutcomeRow, Where(column="outcome", value="missing"))
    )
    table = new_table("Cost", "", "")
    table.show_header = False
    table.add_row("model calls answered", str(by_outcome["ok"]))
    table.add_row("answered from the cache", str(cached))
    table.add_row("failed tries", _counts(failed))
    for role, name in _ROLE_NAMES.items():
        own = [row for row in attempts if row.role == role]
        if own:
            table.add_row(f"tokens in / out, {name}", _tokens(own))
    table.add_row("tokens in / out, all", _tokens(attempts))
    if any(row.usd is not None for row in attempts):
        unpriced = sum(row.usd is None and row.outcome != "cached" for row in attempts)
        note = f" ({unpriced} tries without a price)" if unpriced else ""
        table.add_row("US dollars", f"{sum(row.usd or 0.0 for row in attempts):.4f}{note}")
    if embedded:
        failures = sum(row.outcome != "ok" for row in embedded)
        tokens = sum(row.prompt_tokens for row in embedded)
        told = f"{len(embedded)}, of which {failures} failed; {tokens} tokens"
        table.add_row("embedding requests", told)
    table.add_row("missing outcomes", _counts({str(k): n for k, n in missing.items()}))
    table.add_row("actor restarts", str(restarts))
    table.add_row("seconds in this process", f"{seconds:.1f}")
    return table


def _tokens(attempts: Sequence[AttemptRow]) -> str:
    sent = sum(row.prompt_tokens for row in attempts)
    return f"{sent} / {sum(row.completion_tokens for row in attempts)}"


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {n}" for kind, n in counted.items()) if counted else "0"


def skill_texts(reader: Reader) -> dict[str, str]:
    """Every skill text that the run tested, by hash."""
    return {row.hash: row.text for row in reader.rows(DocumentRow)}


def where_lines(workspace: Path, report: str, resume: str | None) -> Text:
    """Where everything lies, and the lines that make a page of it and train further.

    resume: None where that cannot be. Commands and paths are for copying, so that nothing breaks
    them.
    """
    lines = [
        f"Workspace {workspace}",
        "  documents in skills/ and prompts/, rows in run.db, log in logs/train.jsonl",
        f"All of it on one page:  {report}",
    ]
    if resume is not None:
        lines += [f"To train further:       {resume} --set trainer.epochs=N"]
    return Text("\n".join(lines))
