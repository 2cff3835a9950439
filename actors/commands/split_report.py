"""What a split gives, in words: the report, and what to do where it lets no class train. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from actors.commands.splitting import Split, SplitFacts
from actors.places import as_called
from actors.summary import preflight_table, seen_words
from actors.tables import render
from protocol.settings import Config

__all__ = ["fewer_moves", "nothing_trains", "render_split"]


def nothing_trains(facts: SplitFacts, config: Config) -> str | None:
    """The line that says that no class would train, and what mends it; None: some would."""
    if any(one.count.trainable for one in facts.classes):
        return None
    data, parameters = config.data, facts.parameters
    lacking = (
        f"NO CLASS WOULD TRAIN on this split: a class needs {data.trainable_min_units} units in "
        f"diag (data.trainable_min_units) and {data.eval_min_per_class} questions in val "
        "(data.eval_min_per_class)."
    )
    more = f"split more videos into trainval (--n-trainval, now {parameters.n_trainval})"
    fewer = fewer_moves(facts, [one.count.task_type for one in facts.classes])
    mend = f"{more[0].upper()}{more[1:]}." if fewer is None else f"{fewer}, or {more}."
    return as_called(f"{lacking} {mend}")


def fewer_moves(facts: SplitFacts, classes: Sequence[str]) -> str | None:
    """What would let these classes train, had val not taken too much of diag; None: it had not."""
    under: dict[int, list[str]] = {}
    for one in facts.emptied:
        if one.task_type in classes:
            under.setdefault(one.val_wrong_min, []).append(one.task_type)
    if not under:
        return None
    named = "; ".join(f"{wrong} lets {', '.join(names)} train" for wrong, names in under.items())
    return (
        f"Val took videos from diag until it held {facts.parameters.val_wrong_min} wrong answers "
        "(split.val_wrong_min): split anew with a lower one (`bin/trm split --seed-folder DIR "
        f"--val-wrong-min N --force`; {named}), or with a lower split.val_ratio (--val-ratio, "
        f"now {facts.parameters.val_ratio:g})"
    )


def render_split(split: Split, config: Config) -> str:
    """The report as text."""
    facts = split.facts
    given = msgspec.to_builtins(facts.parameters)
    head = [
        f"Split of {facts.n_questions} questions in {facts.n_videos} videos by the baseline "
        f"{facts.baseline_run_id} ({len(facts.excluded)} questions excluded).",
        "Parameters: " + ", ".join(f"{key} {value}" for key, value in given.items()),
    ]
    diag, val, _ = facts.pools
    after = [
        "wrong: in the baseline. T2: of them, those in which the judge found a defect of the "
        "skill, from which an edit can be learnt; T1: lapses, the skill said it and was not "
        "followed; the rest are uncertain or not judged.",
        f"Skill defects (T2) in diag: {diag.t2} of {(diag.t2 or 0) + (val.t2 or 0)}; "
        f"lapses (T1): {diag.t1} of {(diag.t1 or 0) + (val.t1 or 0)}.",
        f"Moved from diag to val for its wrong answers: {', '.join(facts.moved) or 'no video'}; "
        f"val holds {val.questions / max(1, diag.questions + val.questions):.0%} of trainval.",
        "Smallest gain of a whole package that can be found (one-sided McNemar at "
        f"{facts.val.alpha:g}):",
        f"  val, {facts.val.n_questions} questions: {seen_words(facts.val, 'val')}.",
        f"  test, {facts.test.n_questions} questions: {seen_words(facts.test, 'test')}.",
        *_remarks(facts),
    ]
    return render(
        [
            Group(Text("\n".join(head)), _pool_table(facts), Text(as_called("\n".join(after)))),
            preflight_table(split.data, split.plan, split.power, config.trainer),
        ]
    )


def _pool_table(facts: SplitFacts) -> Table:
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(("pool", "videos", "questions", "wrong", "T2", "T1")):
        table.add_column(name, justify="left" if index == 0 else "right")
    for pool in facts.pools:
        shown = ("-" if value is None else str(value) for value in (pool.wrong, pool.t2, pool.t1))
        table.add_row(pool.pool, str(pool.videos), str(pool.questions), *shown)
    return table


def _remarks(facts: SplitFacts) -> Iterable[str]:
    if facts.unstratified:
        yield (
            f"{facts.unstratified} of {facts.n_videos} videos have no sub-category, so that test "
            "is drawn from them without strata; Video-MME's JSON and Parquet files name it."
        )
    if facts.undiagnosed:
        yield (
            f"{len(facts.undiagnosed)} wrong answers have no diagnosis and count as T0: run "
            "`bin/trm diagnose` first, so that skill defects are kept in diag."
        )
    if facts.stray_diagnoses:
        yield (
            f"{len(facts.stray_diagnoses)} diagnoses were made of other questions than these "
            f"(their fingerprint fits none) and count for nothing: "
            f"{', '.join(facts.stray_diagnoses[:10])}"
            + (" ..." if len(facts.stray_diagnoses) > 10 else "")
        )
    if facts.unknown:
        yield (
            f"{len(facts.unknown)} answers are of questions that are not among these: "
            f"{', '.join(facts.unknown[:10])}" + (" ..." if len(facts.unknown) > 10 else "")
        )
