"""Edits of the prompts under the factorial gate: a coin in every pair of every class."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from actors.gate.factorial.course import OpenPairs
from protocol.factorial import Certify, EditorCoins, PhaseDone
from protocol.factorial_prompts import documents_in, with_documents
from protocol.factorial_rows import PROMPTS as SCOPE
from protocol.factorial_rows import FactorialEditRow, FactorialRunRow, PairRow
from protocol.rollout import Rollout
from protocol.rows import OutcomeRow
from tests.gate.factorial_house import (
    BASE,
    CLASS,
    OTHER,
    PROMPTS,
    SETTINGS,
    House,
    edit_row,
    opened,
    units_of,
)

pytestmark = pytest.mark.anyio

GOOD, BAD = (edit_row(name, nth, scope=SCOPE) for nth, name in enumerate(("good", "bad"), 1))
IDLE = edit_row("idle", 1)
TWO = (*units_of(12), *units_of(9, name=OTHER))


def truth(request: Rollout) -> float:
    """``good`` in the system prompt adds .4, ``bad`` takes .45, a skill's lines change nothing."""
    said = request.prompts.system.split()
    return 0.5 + 0.4 * ("good" in said) - 0.45 * ("bad" in said)


async def test_every_class_tests_them_and_all_classes_decide(tmp_path: Path) -> None:
    """W, L and D_seen are sums over the classes; also one without an edit of its own draws."""
    async with opened(tmp_path, truth) as house:
        house.units = TWO
        gate = await house.start()
        plan = await house.plan(gate, GOOD, BAD, IDLE)
        await house.whole(gate)
        decided = await gate.certify(Certify(bases=house.bases(), prompts=PROMPTS))
        pairs = await house.rows(PairRow)
        assert len(pairs) == plan.n_pairs
        edits = {row.edit_id: row for row in await house.rows(FactorialEditRow)}
        assert (edits["good"].state, edits["bad"].state) == ("adopted", "dropped")
        assert edits["idle"].state in ("rejected", "dropped")
        for name in ("good", "bad", "_prompts/sentinel"):
            found = _counted(pairs, name)
            assert (edits[name].wins, edits[name].losses) == (found["won"], found["lost"]), name
            assert edits[name].seen == sum(row.outcome != 0 for row in pairs), name
        assert {row.task_type for row in pairs if '"good"' in row.coins} == {CLASS, OTHER}
        assert decided.skills == ()
        assert [(one.name, one.text) for one in decided.prompts] == [("system", "s\ngood\n")]
        (run,) = await house.rows(FactorialRunRow)
        assert (run.n_edits, run.adopted) == (3, 1)


def _counted(pairs: tuple[PairRow, ...], name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in pairs:
        for edit, sign, virtual in msgspec.json.decode(row.coins):
            if edit == name and not virtual and row.outcome:
                found["won" if sign * row.outcome > 0 else "lost"] += 1
    return found


async def test_a_drop_waits_for_every_class(tmp_path: Path) -> None:
    """A class cannot begin the next phase while another has pairs of this one left to draw."""
    async with opened(tmp_path, truth) as house:
        house.units = TWO
        gate = await house.start()
        await house.plan(gate, GOOD)
        assert isinstance(await gate.run_phase(house.phase(1)), PhaseDone)
        with pytest.raises(ValueError, match="Temporal Reasoning: the pairs of phase 1"):
            await gate.run_phase(house.phase(2))
        house.dies_at = len(house.rolled) + 3
        with pytest.raises(ExceptionGroup):
            await gate.run_phase(house.phase(1, OTHER))
        gate, house.dies_at = await house.start(), None
        with pytest.raises(OpenPairs, match=OTHER):
            await gate.run_phase(house.phase(2))
        with pytest.raises(OpenPairs, match=OTHER):
            await gate.editor_coins(_coins(2))
        assert isinstance(await gate.run_phase(house.phase(1, OTHER)), PhaseDone)
        assert isinstance(await gate.run_phase(house.phase(2)), PhaseDone)


@pytest.mark.parametrize("dies_at", [1, 9, 40, 90, 170])
async def test_a_death_changes_nothing(tmp_path: Path, dies_at: int) -> None:
    """Killed in any class's pairs: the same rows in the end, and nothing is asked twice."""
    (tmp_path / "whole").mkdir()
    async with opened(tmp_path / "whole", truth) as house:
        house.units = TWO
        gate = await house.start()
        await house.plan(gate, GOOD, BAD, IDLE)
        await house.whole(gate)
        await house.certify(gate)
        undisturbed = await _rows(house)
    async with opened(tmp_path, truth) as house:
        house.units, house.dies_at = TWO, dies_at
        gate = await house.start()
        await house.plan(gate, GOOD, BAD, IDLE)
        with pytest.raises(ExceptionGroup):
            await house.whole(gate)
        house.dies_at = None
        stored = {(row.run_key, row.question_id) for row in await house.rows(OutcomeRow)}
        gate = await house.start()
        await house.plan(gate)
        await house.whole(gate)
        await house.certify(gate)
        assert await _rows(house) == undisturbed
        assert {house.asked[key] for key in stored} <= {1}


async def test_an_answer_belongs_to_its_prompts(tmp_path: Path) -> None:
    """Composed prompts have a version of their own, by their texts; another's answer is refused."""
    async with opened(
        tmp_path, truth, msgspec.structs.replace(SETTINGS, missing_retries=0)
    ) as house:
        gate = await house.start()
        await house.plan(gate, GOOD, IDLE)
        house.dies_at = 20
        with pytest.raises(ExceptionGroup):
            await house.whole(gate)
        versions = {job.prompts.system: job.prompts.version for job in house.rolled}
        assert versions == {text: _version(text) for text in ("s\n", "s\ngood\n")}
        assert versions["s\n"] == "v1"
        assert versions["s\ngood\n"].startswith("v1+")
        rows = await house.rows(OutcomeRow)
        assert {row.prompts_version for row in rows} == set(versions.values())
        house.dies_at = None
        other = msgspec.structs.replace(PROMPTS, version="v2")
        request = msgspec.structs.replace(house.phase(1), prompts=other)
        with pytest.raises(ExceptionGroup) as raised:
            await (await house.start()).run_phase(request)
        assert raised.group_contains(ValueError, match="under another document")


def _version(system: str) -> str:
    changed = msgspec.structs.replace(documents_in(PROMPTS)[0], text=system)
    return with_documents(PROMPTS, [changed]).version


async def test_the_editor_draws_under_them_too(tmp_path: Path) -> None:
    """Epoch 1: the base. Epoch 2: live ones by own coins in every class's draws, dropped ones
    never."""
    async with opened(tmp_path, truth) as house:
        house.units = TWO
        gate = await house.start()
        await house.plan(gate, GOOD, BAD)
        first = await gate.editor_coins(_coins(1))
        assert {arm.prompts for arm in first.arms} == {PROMPTS}
        await house.whole(gate, (1,))
        second = await gate.editor_coins(_coins(2))
        assert {arm.skill.text for arm in second.arms} == {BASE.text}
        assert {arm.prompts.system for arm in second.arms} == {"s\n", "s\ngood\n"}


def _coins(epoch: int) -> EditorCoins:
    names = tuple(f"u{n:02d}" for n in range(12))
    return EditorCoins(epoch=epoch, base=BASE, prompts=PROMPTS, unit_ids=names)


async def _rows(house: House) -> tuple[object, ...]:
    return (
        await house.rows(FactorialEditRow),
        await house.rows(PairRow),
        await house.rows(FactorialRunRow),
    )
