"""The slow update: what is compared, what is kept, and that it happens once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.config import load_config
from actors.trainer.compare import choose, compared, counts, judge
from actors.trainer.score import mcnemar
from protocol.base import Refused
from protocol.dataset import ClassWork
from protocol.diagnoser import GetCasePacks
from protocol.ledger import Select, rows_of
from protocol.ledger import Selected as Rows
from protocol.rollout import Answered, Missed
from protocol.rows import EvaluationRow, RejectedRow, SlowRow
from protocol.slow import SYSTEM, Compared, EvolvePrompt, WriteMomentum, change_of, changed_first
from protocol.trainer import Train, TrainingEnded
from tests.trainer.house import CLASSES, QUESTIONS, House, opened


async def slow_rows(house: House) -> tuple[SlowRow, ...]:
    rows = Rows(rows=await house.database.select(Select(table="slow_updates")))
    return rows_of(SlowRow, rows)


async def evaluations(house: House) -> list[EvaluationRow]:
    rows = Rows(rows=await house.database.select(Select(table="evaluations")))
    return [row for row in rows_of(EvaluationRow, rows) if row.pool == "val"]


def no_edit(house: House) -> House:
    house.edit = lambda _: None
    return house


@pytest.mark.anyio
async def test_P2_5_a_kept_candidate_is_the_epochs_one_final_row(tmp_path: Path) -> None:
    """P2-5: ``fast``, ``slow_candidate``, and ``final``, which counts the candidate's outcomes."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        no_edit(house).prompt = lambda asked: "good\n" if asked.document.name == SYSTEM else None
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        assert (ended.best_hard.skills, ended.best_hard.prompts) == ("v1", "v2")
        rows = [row for row in await evaluations(house) if row.epoch == 1]
        assert [(row.kind, row.right) for row in rows] == [
            ("fast", 0),
            ("final", 10),
            ("slow_candidate", 10),
        ]
        assert rows[1].outcomes_key == rows[2].run_key == "e1/val/slow_candidate"
        (slow,) = await slow_rows(house)
        assert (slow.result, slow.wins, slow.losses, slow.prompt_edits) == ("kept", 10, 0, 1)
        assert house.prompts["v2"] == {SYSTEM: "you\ngood\n", "look": "see\n"}


@pytest.mark.anyio
async def test_a_harmful_candidate_is_dropped_and_remembered(tmp_path: Path) -> None:
    """6.2: the fast package stands; every part lies in the rejected ledger with its evidence."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.momentum = lambda asked: "bad\n" if asked.skill.task_type == CLASSES[0] else None
        house.edit = lambda request: "good\n" if not request.run_key.count("s2") else None
        house.prompt = lambda asked: "hm\n" if asked.document.name == "look" else None
        # something has to fare otherwise than before, or no momentum is asked for
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        (slow,) = await slow_rows(house)
        assert (slow.result, slow.losses, slow.momentum, slow.prompt_edits) == ("dropped", 5, 1, 1)
        assert "harm" in slow.reason
        assert (ended.best_hard.skills, ended.best_hard.prompts) == ("v2", "v1")
        final = next(row for row in await evaluations(house) if row.kind == "final")
        assert final.outcomes_key == "e1/val/fast"
        found = Rows(rows=await house.database.select(Select(table="rejected")))
        rejected = {row.document: row for row in rows_of(RejectedRow, found)}
        assert rejected["momentum"].task_type == CLASSES[0]
        assert rejected["momentum"].notes == '["bad\\n"]'
        assert rejected["look"].losses == 5
        assert rejected["look"].e_value == 0.5**5


@pytest.mark.anyio
async def test_a_slow_update_is_judged_once(tmp_path: Path) -> None:
    """Resumed after the verdict: neither the editor nor the agent is asked again."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        no_edit(house).prompt = lambda asked: "good\n" if asked.document.name == SYSTEM else None
        house.fail_checkpoint = "epoch 1 observed"
        with pytest.raises(OSError, match="No space"):
            await (await house.start(tasks)).train(Train())
        before = await evaluations(house), await slow_rows(house)
        asked, rolled = len(house.asked), len(house.rolled)
        house.fail_checkpoint = None
        await (await house.start(tasks)).train(Train())
        assert (await evaluations(house), await slow_rows(house)) == before
        assert (len(house.asked), len(house.rolled)) == (asked, rolled)
        assert len(house.prompts) == 2


@pytest.mark.anyio
async def test_a_verdict_holds_for_the_package_that_it_was_judged_against(tmp_path: Path) -> None:
    """More steps followed before the epoch closed: the candidate was built from another text.

    Taken unseen, it dropped an edit that the gate had accepted meanwhile.
    """
    async with opened(tmp_path, "trainer.epochs=1", "trainer.max_batches=1") as (house, tasks):
        no_edit(house).prompt = lambda asked: "good\n" if asked.document.name == SYSTEM else None
        house.fail_checkpoint = "epoch 1 observed"
        with pytest.raises(OSError, match="No space"):
            await (await house.start(tasks)).train(Train())
        house.fail_checkpoint = None
        house.config = load_config(None, ["trainer.epochs=1"])
        house.edit = lambda request: "good\n" if "/s2/" in request.run_key else None
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        (slow,) = await slow_rows(house)
        assert (slow.fast_skills, slow.fast_prompts) == ("v2", "v1")
        finals = [row for row in await evaluations(house) if row.kind == "final"]
        assert [row.skills_version for row in finals] == ["v2"]


@pytest.mark.anyio
async def test_a_verdict_that_was_switched_off_says_so(tmp_path: Path) -> None:
    """The fast package stands, and no line claims that a candidate was kept."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        no_edit(house).prompt = lambda asked: "good\n" if asked.document.name == SYSTEM else None
        house.fail_checkpoint = "epoch 1 observed"
        with pytest.raises(OSError, match="No space"):
            await (await house.start(tasks)).train(Train())
        house.fail_checkpoint = None
        house.config = load_config(None, ["trainer.epochs=1", "trainer.slow_update=false"])
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, TrainingEnded)
        (slow,) = await slow_rows(house)
        assert (slow.result, slow.prompts_version) == ("off", "v1")
        assert ended.best_hard.prompts == "v1"


@pytest.mark.anyio
async def test_an_editor_that_is_away_stops_the_slow_update(tmp_path: Path) -> None:
    """P1-4: an outage decides nothing; the next run begins the slow update anew."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        house.on_step = lambda key: setattr(house, "editor_away", "s2" in key)
        house.edit = lambda _: None
        ended = await (await house.start(tasks)).train(Train())
        assert isinstance(ended, Refused)
        assert ended.passing
        assert await slow_rows(house) == ()
        assert not [row for row in await evaluations(house) if row.kind == "final"]
        house.on_step = lambda _: None
        house.editor_away = False
        assert isinstance(await (await house.start(tasks)).train(Train()), TrainingEnded)
        assert [row.result for row in await slow_rows(house)] == ["nothing"]


@pytest.mark.anyio
async def test_no_editor_reads_what_the_gate_tests_on(tmp_path: Path) -> None:
    """Only the epoch's design folds: in what is compared, in the packs, in the leak check."""
    async with opened(tmp_path, "trainer.epochs=1") as (house, tasks):
        await (await house.start(tasks)).train(Train())
    shown = {question.question_id for group in QUESTIONS.values() for question in group}
    for request in house.asked:
        if isinstance(request, WriteMomentum):
            assert {one.question.question_id for one in request.compared} <= shown
        else:
            assert isinstance(request, GetCasePacks | EvolvePrompt)
            assert {question.question_id for question in request.questions} == shown
    documents = {one.document.name for one in house.asked if isinstance(one, EvolvePrompt)}
    assert documents == {SYSTEM, "look"}


@pytest.mark.anyio
async def test_the_slow_update_can_be_switched_off(tmp_path: Path) -> None:
    """``fast`` and ``final`` are then the same pass."""
    async with opened(tmp_path, "trainer.epochs=1", "trainer.slow_update=false") as (house, tasks):
        await (await house.start(tasks)).train(Train())
        assert house.asked == []
        assert await slow_rows(house) == ()
        kinds = [row.kind for row in await evaluations(house) if row.epoch == 1]
        assert kinds == ["fast", "final"]


def works() -> tuple[ClassWork, ...]:
    return tuple(
        ClassWork(task_type=name, batches=(group[:2], group[2:]), ladder=(), in_sample=False)
        for name, group in QUESTIONS.items()
    )


@given(n=st.integers(1, 12), seed=st.integers(0, 5), epoch=st.integers(1, 5))
def test_the_choice_serves_every_class_and_nothing_twice(n: int, seed: int, epoch: int) -> None:
    """As many as there are, the classes within one of each other, whatever their order."""
    chosen = choose(works(), n, seed, epoch)
    assert len(chosen) == len(set(chosen)) == min(n, 8)
    counted = [sum(q.task_type == name for q in chosen) for name in CLASSES]
    assert max(counted) - min(counted) <= 1
    assert chosen == choose(tuple(reversed(works())), n, seed, epoch)


def test_the_choice_moves_with_the_epoch() -> None:
    """Or a class's same few questions would be compared for ever."""
    assert len({choose(works(), 2, 0, epoch) for epoch in range(1, 9)}) > 1


def answered(right: bool | None, name: str) -> Answered | Missed:
    if right is None:
        return Missed(question_id=name, kind="timeout", detail="")
    return Answered(
        question_id=name,
        right=right,
        letter="A",
        submitted="A",
        confidence=0.5,
        stop="submitted",
        n_steps=1,
    )


RIGHTS = st.lists(st.sampled_from([True, False, None]), min_size=4, max_size=4)


@given(before=RIGHTS, after=RIGHTS)
def test_the_four_ways_and_missing_is_none_of_them(
    before: Sequence[bool | None], after: Sequence[bool | None]
) -> None:
    """Every pair that was answered twice falls into exactly one of four groups."""
    questions = QUESTIONS[CLASSES[0]]
    found = compared(
        questions,
        [answered(right, "q") for right in before],
        [answered(right, "q") for right in after],
        ("b", "a"),
    )
    whole = [(b, a) for b, a in zip(before, after, strict=True) if None not in (b, a)]
    fared = counts(found)
    assert sum(fared.values()) == len(found) == len(whole)
    assert fared["regressed"] == whole.count((True, False))
    assert fared["persistent"] == whole.count((False, False))
    assert fared["improved"] == whole.count((False, True))
    assert fared["stable"] == whole.count((True, True))


def test_regressions_come_first() -> None:
    """The order in which the editor reads; within a group nothing moves."""
    ways = [(True, True), (False, True), (True, False), (False, False), (True, False)]
    found = [
        Compared(
            question=QUESTIONS[CLASSES[0]][0],
            change=change_of(before=before, after=after),
            before_key=f"{index}",
            after_key="",
        )
        for index, (before, after) in enumerate(ways)
    ]
    assert [one.before_key for one in changed_first(found)] == ["2", "4", "3", "1", "0"]


def evaluation(right: int, mixed: float) -> EvaluationRow:
    return EvaluationRow(
        run_key="",
        epoch=1,
        pool="val",
        kind="fast",
        skills_version="v1",
        prompts_version="v1",
        planned=20,
        right=right,
        missing=0,
        soft=mixed,
        mixed=mixed,
        outcomes_key="",
    )


@pytest.mark.parametrize(
    ("wins", "losses", "mixed", "keep"),
    [
        (0, 0, 0.5, True),  # nothing changed, nothing is worse
        (0, 0, 0.49, False),  # as many right, but less sure of it
        (1, 3, 0.6, True),  # P(Bin(4, 1/2) >= 3) = .3125: no harm shown
        (0, 3, 0.6, False),  # .125: harm
        (5, 0, 0.6, True),
        (5, 0, 0.4, False),
    ],
)
def test_kept_unless_harm_is_shown_or_the_mixed_score_falls(
    wins: int, losses: int, mixed: float, keep: bool
) -> None:
    """ALGORITHM.md 6.2, both conditions, at the default level."""
    before = dict.fromkeys((f"w{i}" for i in range(wins)), False)
    before |= dict.fromkeys((f"l{i}" for i in range(losses)), True)
    paired = mcnemar(before, {name: not right for name, right in before.items()})
    found = judge(evaluation(10, 0.5), evaluation(10, mixed), paired, 0.2)
    assert found.keep is keep
    assert found.reason


@given(wins=st.integers(0, 30), losses=st.integers(0, 30), ties=st.integers(0, 30))
def test_the_interval_of_a_gain_holds_the_gain(wins: int, losses: int, ties: int) -> None:
    """And mirrors when the arms are exchanged; the exact p does too."""
    before = {f"w{i}": False for i in range(wins)} | {f"l{i}": True for i in range(losses)}
    after = {name: not right for name, right in before.items()}
    before |= {f"t{i}": True for i in range(ties)}
    after |= {f"t{i}": True for i in range(ties)}
    one, other = mcnemar(before, after), mcnemar(after, before)
    assert one.low == pytest.approx(-other.high)
    assert one.p == other.p_loss
    if one.pairs:
        assert one.low - 0.06 <= (wins - losses) / one.pairs <= one.high + 0.06
    assert msgspec.structs.asdict(mcnemar({}, {}))["high"] == 1.0
