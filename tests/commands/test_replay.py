"""``bin/trm replay`` on runs of the real gate and baseline store, in a real ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from actors.commands.replay_reading import rebuild, stored_run
from actors.commands.replay_reading import units_of as class_units
from actors.commands.replay_rules import parse_rule, redecide
from actors.commands.replay_tally import replayed
from actors.config import load_config
from actors.dataset.folds import fold_units
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_dataset
from actors.launch import fresh
from actors.ledger import schema
from actors.ledger.reader import open_reader
from actors.places import launcher
from protocol.base import Scope
from protocol.dataset import Unit
from protocol.documents import Skill
from protocol.gate import Trial
from protocol.keys import step_key
from protocol.rollout import Rollout
from protocol.rows import AnyRow, DecisionRow, DocumentRow, OutcomeRow
from protocol.settings import Config, GateSettings
from tests.commands.house import Trm
from tests.gate.world import CLASS, PROMPTS, SEED_SKILL, SETTINGS, World, units_of

pytestmark = pytest.mark.anyio

N_UNITS = 14


def fate(request: Rollout) -> float | None:
    """Even videos are easy; a skill helps by the digit that it ends with; one tree is broken."""
    easy = int(request.question.video_id[1:]) % 2 == 0
    last = request.skill.text[-1]
    gain = int(last) / 10 if last.isdigit() else 0.0
    if request.question.video_id == "v5" and request.run_key.endswith("/b1") and last == "4":
        return None
    return min(0.95, (0.8 if easy else 0.25) + gain)


async def train(settings: GateSettings, *, seeded: Mapping[str, bool] | None = None) -> World:
    """Three epochs of five candidates; what is accepted stands."""
    world = World(fate, settings, seeded=dict(seeded or {}))
    current = SEED_SKILL
    for epoch in (1, 2, 3):
        for step, gain in enumerate((0, 3, 1, 4, 6), start=1):
            text = f"epoch {epoch} step {step} gains {gain}"
            found = await world.trial(
                text, current=current, epoch=epoch, step=step, n_units=N_UNITS
            )
            if getattr(found, "verdict", "") == "accept":
                current = Skill(task_type=CLASS, text=text)
        await world.end_epoch(epoch)
    return world


def configured(settings: GateSettings) -> Config:
    """The run's configuration: every unit is in the ladder."""
    config = load_config(None)
    return msgspec.structs.replace(
        config,
        run=msgspec.structs.replace(config.run, seed=7),
        data=msgspec.structs.replace(config.data, trainable_min_units=N_UNITS),
        gate=settings,
    )


def store(path: Path, rows: list[AnyRow]) -> Path:
    """A ledger with these rows."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in schema.ddl():
            connection.execute(statement)
        for row in rows:
            connection.execute(schema.upsert_sql(type(row)), schema.parameters(row))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="balanced"),
        pytest.param({"draws_small": 3, "fresh_after": 2}, id="three draws, redrawn"),
        pytest.param({"small_units": 8, "alpha_large": 0.3}, id="large"),
        pytest.param({"profile": "growth"}, id="growth"),
        pytest.param({"profile": "audit"}, id="audit"),
    ],
)
@pytest.mark.parametrize("seeded", [False, True])
async def test_the_gate_decides_again_as_the_run_did(
    tmp_path: Path, changes: dict[str, object], seeded: bool
) -> None:
    """Ladder, order, snapshot, difficulty and missing answers come back from the rows alone."""
    settings = msgspec.structs.replace(SETTINGS, **changes)
    answers = {f"v{i}-0": i % 2 == 0 for i in range(N_UNITS)} if seeded else None
    world = await train(settings, seeded=answers)
    path = store(tmp_path / "run.db", list(world.rows.values()))
    decisions = world.decisions()
    with open_reader(path) as reader:
        tests, lost = rebuild(configured(settings), {CLASS: units_of(N_UNITS)}, decisions, reader)
    assert lost == {}
    assert len(tests) == len(decisions) >= 10
    assert {row.verdict for row in decisions} >= {"accept", "reject"}
    for test in tests:
        found = redecide(parse_rule("gate", settings), test)
        row = test.row
        assert (found.verdict, found.wins, found.losses) == (row.verdict, row.wins, row.losses)
        seen_before = any(unit.ema is not None for unit in test.stages[0].ladder)
        assert seen_before == (row.epoch > 1)


async def test_a_ladder_that_is_not_the_one_that_was_asked_is_told(tmp_path: Path) -> None:
    """Another seed or another fold: no verdict is made up."""
    world = await train(SETTINGS)
    path = store(tmp_path / "run.db", list(world.rows.values()))
    config = configured(SETTINGS)
    other = msgspec.structs.replace(config, run=msgspec.structs.replace(config.run, seed=8))
    units = {CLASS: units_of(N_UNITS)}
    with open_reader(path) as reader:
        _, strange = rebuild(other, units, world.decisions(), reader)
        _, shorter = rebuild(config, {CLASS: units_of(9)}, world.decisions(), reader)
    assert any("would not hold it by config.yaml" in why for why in strange.values())
    assert all("had 14 units and would have 9" in why for why in shorter.values())
    assert len(shorter) == len(world.decisions())


async def demo_run(folder: Path) -> Path:
    """A workspace of the demo with the decisions of one epoch, of one class."""
    launch = fresh(None, (), folder)
    launch.lock.release()
    config = launch.config
    frozen = load_frozen(folder, load_dataset(launch.paths.questions, None).questions)
    units = class_units(config, frozen)[CLASS]
    ladder = fold_units(
        units,
        seed=config.run.seed,
        epoch=1,
        design_share=config.data.design_share,
        trainable_min_units=config.data.trainable_min_units,
    ).ladder
    world = await _decided(config, ladder)
    texts = [
        DocumentRow(hash=skill.hash, task_type=CLASS, text=skill.text)
        for skill in {row.skill for row in world.rolled}
    ]
    store(folder / "run.db", [*world.rows.values(), *texts])
    return folder


async def _decided(config: Config, ladder: tuple[Unit, ...]) -> World:
    def answer(request: Rollout) -> float:
        last = request.skill.text[-1]
        return 0.4 + (int(last) / 10 if last.isdigit() else 0.0)

    world = World(answer, config.gate)
    world.gate._seed = config.run.seed
    for step, gain in enumerate((0, 5, 2), start=1):
        await world.gate.test(
            Trial(
                scope=Scope(epoch=1, step=step, task_type=CLASS),
                run_key=step_key(1, CLASS, step),
                current=Skill(task_type=CLASS, text="as it stood"),
                candidate=Skill(task_type=CLASS, text=f"candidate {gain}"),
                prompts=PROMPTS,
                units=ladder,
                in_sample=False,
            )
        )
    return world


async def test_a_workspace_is_replayed(tmp_path: Path, trm: Trm) -> None:
    """Every rule by default, the truth of the simulator beside it; --json for machines."""
    workspace = await demo_run(tmp_path / "run")
    found = stored_run(workspace)
    rules = [parse_rule(name, found.config.gate) for name in ("always", "gate")]
    report = replayed(workspace, found, rules)
    assert report.same == report.compared == 3
    always = report.rules[0]
    assert (always.accepted, always.false_accepts, always.useless) == (3, 3, 3)
    run = trm("replay", workspace, "--json")
    told = msgspec.json.decode(run.out)
    assert {"always", "strict", "minibatch:3", "mcnemar", "gate", "gate:audit"} <= {
        row["rule"] for row in told["rules"]
    }
    run = trm("replay", workspace, "--rule", "strict", "--decisions")
    assert "decides 3 of 3 as the run did" in run.out
    assert run.out.count("/s1") == 1


async def test_a_minibatch_larger_than_a_ladder_is_told(tmp_path: Path, trm: Trm) -> None:
    """It is the whole ladder then, which its name does not say."""
    workspace = await demo_run(tmp_path / "run")
    for words in (("--rule", "minibatch:99999"), ("--rule", "minibatch:3")):
        told = msgspec.json.decode(trm("replay", workspace, *words, "--json").out)
        longest = told["longest"]
        short = 3 if "99999" in words[1] else 0
        assert told["rules"][0]["short"] == short
        line = f"{words[1]}: 3 of 3 ladders have fewer questions (the longest {longest})"
        assert (line in trm("replay", workspace, *words).out) is bool(short)
    exact = trm("replay", workspace, "--rule", f"minibatch:{longest}").out
    assert "fewer questions" not in exact


async def test_a_run_without_tests_is_named_by_a_line_to_paste(
    tmp_path: Path, trm: Trm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a path with a blank, from a folder that has no bin/."""
    workspace = await demo_run(tmp_path / "my run")
    with closing(sqlite3.connect(workspace / "run.db")) as connection, connection:
        connection.execute(f'DELETE FROM "{DecisionRow.TABLE}"')
    monkeypatch.chdir(tmp_path)
    line = f"{launcher()} --resume 'my run'"
    assert line in trm("replay", workspace, expect=2).err
    assert line.startswith("/")


async def test_what_differs_from_the_stored_verdict_ends_with_1(tmp_path: Path, trm: Trm) -> None:
    """A row that was changed is found."""
    workspace = await demo_run(tmp_path / "run")
    with closing(sqlite3.connect(workspace / "run.db")) as connection, connection:
        connection.execute("UPDATE decisions SET verdict = 'undecided' WHERE step = 1")
    run = trm("replay", workspace, "--rule", "gate", expect=1)
    assert "decides 2 of 3 as the run did" in run.out


async def test_a_run_without_answers_says_what_to_do(tmp_path: Path, trm: Trm) -> None:
    """No decision, no answer, no ledger, no such rule: exit 2 and a remedy."""
    workspace = await demo_run(tmp_path / "run")
    assert "is none of always" in trm("replay", workspace, "--rule", "best", expect=2).err
    for table, remedy in ((OutcomeRow.TABLE, "restore run.db"), (DecisionRow.TABLE, "--resume")):
        with closing(sqlite3.connect(workspace / "run.db")) as connection, connection:
            connection.execute(f'DELETE FROM "{table}"')
        assert remedy in trm("replay", workspace, expect=2).err
    (workspace / "run.db").unlink()
    assert "run.db" in trm("replay", workspace, expect=2).err
    assert "no workspace" in trm("replay", tmp_path, expect=2).err
