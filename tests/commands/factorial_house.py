"""A made-up workspace of a run under the factorial gate; its numbers are the gate's own.

Of three edits the first helps, the second harms and is turned off, the third changes nothing. One
pair is void.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import msgspec

from actors.config import load_config
from actors.evolver.compose import compose, render
from actors.evolver.factorial_prompts import compose_prompt
from actors.gate.factorial.course import course
from actors.gate.factorial.schedule import Schedule, phase_pairs
from actors.gate.factorial.states import FactorialEdit
from actors.gate.phase import (
    answered,
    decision_rows,
    edits_as_born,
    logged,
    opened,
    schedule_of,
    schedule_rows,
    sentinel_rows,
    voided,
)
from actors.trainer.factorial_rows import adoption_rows, prompt_adoption_rows
from actors.workspace.manifest import read_manifest, write_manifest
from actors.workspace.versions import read_prompts, write_prompts, write_skills
from protocol.dataset import Question, Unit
from protocol.documents import Document, Package, Skill
from protocol.evolver import Edit, Op, Writing
from protocol.factorial_rows import PROMPTS, FactorialEditRow, FactorialRunRow, PairRow
from protocol.rows import AnyRow, DocumentRow, EpochRow, EvaluationRow, OutcomeRow, StepRow
from tests.commands.house import CLASS, Made, add_rows, edit_row, fresh_workspace, row
from tests.workspace.material import skill_text

__all__ = ["EDITS", "VOID_PAIR", "make_factorial"]

SETTINGS = ("gate.design=factorial", "trainer.slow_update=false", "trainer.epochs=2")
EDITS = ("- Count twice.", "- Guess boldly.", "- Take your time.")
VOID_PAIR = 5
_SEED = 3  # of the first few the one in which the third edit is neither adopted nor turned off
_DROP, _Q, _CAP = Fraction(3, 10), Fraction(3, 20), Fraction(1, 10)


def make_factorial(
    folder: Path,
    *,
    until: int = 4,
    sentinel: bool = True,
    common: bool = False,
    first: Op | Writing = "append",
) -> Made:
    """The workspace; texts: the seed's skill, and what was adopted. first: what the first edit is.

    until: 1 to 3: a run under way, whose pairs of this phase wait; 4: one that has decided.
    sentinel: False: the sentinel wins every pair that has a better arm, which no coin does.
    common: the first edit is one of the system prompt, and texts are those of the system prompt.
    """
    workspace = fresh_workspace(folder, *SETTINGS)
    seed = skill_text(CLASS)
    schedule = _schedule()
    ops: list[Op | Writing] = [first, "append", "append"]
    born = [_edit(number, op) for number, op in enumerate(ops)]
    if common:
        born[0] = _of_prompts(born[0])
    rows = [*sentinel_rows(schedule), *born]
    pairs: list[PairRow] = []
    for phase in range(1, min(until, schedule.certification) + 1):
        before = _after(schedule, rows, pairs, phase - 1)
        live = [edit for edit in before if edit.born <= phase]
        wanted = opened(schedule.seed, phase_pairs(schedule, CLASS, phase), live, {})
        pairs += wanted if phase == until else [_drawn(one, sentinel) for one in wanted]
    text = seed
    ledger: list[AnyRow] = [*schedule_rows(schedule), *pairs, *_steps(seed), *_passes(until)]
    if until > schedule.certification:
        rows, run = _decided(schedule, rows, pairs)
        adopted = [one for one in rows if one.state == "adopted"]
        ledger.append(run)
        if adopted and common:
            began, ended, told = _adopted_prompt(workspace, adopted)
            add_rows(workspace, *ledger, *told, *rows)
            _at_the_end(workspace)
            return Made(workspace, (began, ended))
        if adopted:
            text = _adopted(workspace, seed, adopted)
            skills = [Skill(task_type=CLASS, text=one) for one in (seed, text)]
            ledger += adoption_rows(2, 4, skills[0], skills[1], adopted)
        _at_the_end(workspace)
    add_rows(workspace, *ledger, *rows)
    return Made(workspace, (seed, text))


def _schedule() -> Schedule:
    question = Question(
        question_id="001-1",
        video_id="001",
        task_type=CLASS,
        question="What?",
        options=("a", "b"),
        answer="A",
    )  # any: only their number counts here
    units = [
        Unit(unit_id=f"u{n:02}", video_id=f"v{n:02}", task_type=CLASS, questions=(question,))
        for n in range(16)
    ]
    return schedule_of(load_config(None, [*SETTINGS, "gate.budget=200"]).gate, _SEED, 2, units)


def _edit(number: int, op: Op | Writing) -> FactorialEditRow:
    edit = Edit(
        op=op,
        target="",
        content=EDITS[number] if op == "append" else EDITS[number].removeprefix("- "),
        support=("001-1",),
        reason=f"reason {number + 1}",
    )
    born = 1 if number < 2 else 2
    return FactorialEditRow(
        edit_id=f"e{born}/counting-problem/{number + 1 if born == 1 else 1}",
        task_type=CLASS,
        born=born,
        position=number + 1,
        edit=msgspec.json.encode(edit).decode(),
        group_id=None,
        sentinel=False,
        proposed_by=f"e{born}/counting-problem/s1",
    )


def _after(
    schedule: Schedule, rows: list[FactorialEditRow], pairs: list[PairRow], phase: int
) -> tuple[FactorialEdit, ...]:
    log = [logged(one) for one in pairs]
    return course(edits_as_born(rows), log, _DROP, until=phase, n_epochs=schedule.n_epochs)


def _drawn(one: PairRow, sentinel: bool) -> PairRow:
    """Two of three pairs follow the first edit's coin, the third goes against the second's."""
    if one.pair == VOID_PAIR:
        return voided(one, (True,), (None,))
    signs = {coin.edit_id: coin.sign for coin in logged(one).coins.coins}
    name = "e1/_prompts/1" if "e1/_prompts/1" in signs else "e1/counting-problem/1"
    first, second = signs[name], signs["e1/counting-problem/2"]
    better: int = first if one.pair % 3 else -second
    if not sentinel:
        better = signs["counting-problem/sentinel"]
    if one.pair % 7 == 0:
        better = 0
    whole = answered(one, (better >= 0,), (better <= 0,))
    assert whole is not None, "both arms are answered"
    return whole


def _decided(
    schedule: Schedule, rows: list[FactorialEditRow], pairs: list[PairRow]
) -> tuple[list[FactorialEditRow], FactorialRunRow]:
    """As the gate decides."""
    ended = _after(schedule, rows, pairs, schedule.certification)
    run, final, _ = decision_rows(rows, ended, _Q, _CAP)
    return list(final), run


def _adopted(workspace: Path, seed: str, adopted: list[FactorialEditRow]) -> str:
    edits = [msgspec.json.decode(one.edit, type=Edit) for one in adopted]
    text = render(compose(seed, edits, 8000), range(len(edits)))
    write_skills(workspace / "skills", "v1", [Skill(task_type=CLASS, text=text)], "epoch-2")
    manifest = read_manifest(workspace)
    best = Package(skills="v2", prompts="v1")
    write_manifest(
        workspace,
        msgspec.structs.replace(manifest, current=best, best_hard=best, best_mixed=best),
    )
    return text


def _of_prompts(row: FactorialEditRow) -> FactorialEditRow:
    return msgspec.structs.replace(
        row,
        edit_id="e1/_prompts/1",
        task_type=PROMPTS,
        document="system",
        proposed_by="e1/_prompts/s1",
    )


def _adopted_prompt(
    workspace: Path, adopted: list[FactorialEditRow]
) -> tuple[str, str, tuple[AnyRow, ...]]:
    base = read_prompts(workspace / "prompts", "v1")
    edits = [msgspec.json.decode(one.edit, type=Edit) for one in adopted]
    document = Document(name="system", text=base.system)
    changed = Document(
        name="system", text=render(compose_prompt(document, edits, 12000), range(len(edits)))
    )
    write_prompts(workspace / "prompts", "v1", [changed], "epoch-2")
    best = Package(skills="v1", prompts="v2")
    manifest = read_manifest(workspace)
    write_manifest(
        workspace,
        msgspec.structs.replace(manifest, current=best, best_hard=best, best_mixed=best),
    )
    return base.system, changed.text, prompt_adoption_rows(2, 4, base, [changed], adopted)


def _at_the_end(workspace: Path) -> None:
    write_manifest(workspace, msgspec.structs.replace(read_manifest(workspace), epoch=2))


def _steps(seed: str) -> list[AnyRow]:
    made: list[AnyRow] = [
        DocumentRow(hash=Skill(task_type=CLASS, text=seed).hash, task_type=CLASS, text=seed)
    ]
    for epoch in (1, 2):
        key = f"e{epoch}/counting-problem/s1"
        made.append(
            row(
                StepRow,
                run_key=key,
                epoch=epoch,
                step=1,
                task_type=CLASS,
                result="proposed",
                skill_before=Skill(task_type=CLASS, text=seed).hash,
                skill_after=Skill(task_type=CLASS, text=seed).hash,
            )
        )
        made.append(edit_row(f"{key}/proposal", 0, "- Leaks.", status="leak", reason="told"))
    made.append(
        row(
            OutcomeRow,
            run_key="factorial/counting-problem/p1/1/a",
            question_id="001-1",
            task_type=CLASS,
            outcome="right",
            missing_kind=None,
        )
    )
    return made


def _passes(until: int) -> list[AnyRow]:
    """Epochs whose boundary was reached, with the seed's pass on val."""
    done = range(1, min(until, 3)) if until < 4 else range(1, 3)
    made: list[AnyRow] = [
        row(
            EpochRow,
            epoch=epoch,
            skills_version="v1",
            tests=0,
            accepted=0,
            sum_alpha=0.0,
            epochs_since_best_improved=9,  # patience is no matter of this design
        )
        for epoch in done
    ]
    for epoch, kind in ((0, "seed"), *((epoch, "final") for epoch in done)):
        made.append(
            row(
                EvaluationRow,
                run_key=f"e{epoch}/val/{kind}",
                epoch=epoch,
                pool="val",
                kind=kind,
                skills_version="v1",
                prompts_version="v1",
                planned=1,
                right=1,
                missing=0,
                outcomes_key="e0/val/seed",
            )
        )
    made.append(
        row(
            OutcomeRow,
            run_key="e0/val/seed",
            question_id="002-1",
            task_type=CLASS,
            outcome="right",
            missing_kind=None,
        )
    )
    return made
