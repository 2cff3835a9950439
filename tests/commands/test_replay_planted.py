"""``bin/trm replay --planted``: designs at the same cost, in worlds whose truth is known."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from actors.commands.replay_planted import PlantedRequest, _twin_setting, compared
from actors.commands.simulated.comparison import (
    STRICT,
    full_cost,
    run_designs,
    summarise_designs,
)
from actors.commands.simulated.factorial_run import QS, simulate
from actors.commands.simulated.planted import STUDY, Planted, plant
from actors.commands.simulated.rules import Strict
from actors.commands.simulated.training import train
from actors.commands.simulated.twin_world import TwinSetting, plant_twin
from actors.config import load_config
from actors.twin.layout import body_of
from actors.twin.truth import class_accuracy
from actors.twin.world import SKILL
from protocol.settings import GateSettings
from tests.commands.house import Trm

SMALL = msgspec.structs.replace(STUDY, sizes=(8, 12, 26, 30), n_epochs=2, n_candidates=3)
GATE = load_config(None).gate
LARGE = msgspec.structs.replace(GATE, small_units=1)  # one draw everywhere: quick


@pytest.fixture(scope="module")
def twin() -> TwinSetting:
    """The demo's own world."""
    return _twin_setting(load_config(None))


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("ladder", [LARGE, GATE], ids=["one draw", "three draws"])
def test_no_design_draws_more_than_the_others_may(share: float, ladder: GateSettings) -> None:
    """Strict and factorial spend it all, but for what makes no test or pair; the ladder stops."""
    world = plant(1, SMALL)
    budget = int(full_cost(world) * share)
    found = run_designs(world, budget, [ladder])
    assert list(found) == ["ladder balanced", STRICT, "factorial q 0.15", "factorial q 0.20"]
    assert all(one.evaluations <= budget for one in found.values())
    assert found[STRICT].evaluations > budget - 2 * max(SMALL.sizes)
    assert found["factorial q 0.15"].evaluations > budget * 0.9
    assert found["factorial q 0.15"].evaluations == found["factorial q 0.20"].evaluations
    assert len({one.made for one in found.values()}) == 1


def test_the_whole_cost_tests_every_edit_once() -> None:
    """Every class once as it stands, then once per edit."""
    world = plant(3, SMALL)
    whole = train(world, Strict(), full_cost(world))
    assert whole == train(world, Strict())
    assert whole.evaluations == full_cost(world) == 7 * sum(SMALL.sizes)
    assert whole.tests == sum(whole.made)
    short = train(world, Strict(), full_cost(world) - 1)
    assert short.tests == whole.tests - 1


def test_a_world_follows_from_its_seed() -> None:
    """Questions, edits, luck and results, every time; another seed is another world."""
    once, again, other = (run_designs(plant(seed, SMALL), 300, [LARGE]) for seed in (5, 5, 6))
    assert once == again != other


def test_fresh_questions_are_other_questions_with_the_same_effects() -> None:
    """A helpful edit gains on both sets, a useless one on none."""
    world = plant(2, msgspec.structs.replace(SMALL, useless=0.0, harmful=0.0))
    assert not np.array_equal(world.logits[3], world.fresh[3])
    good = train(world, Strict())
    assert good.gain > 5.0
    assert good.fresh_gain > 5.0
    assert good.fresh_gain != good.gain
    idle = train(plant(2, msgspec.structs.replace(SMALL, useless=1.0)), Strict())
    assert idle.accepted[0] > 0
    assert (idle.gain, idle.fresh_gain) == (0.0, 0.0)


def test_the_factorial_gate_takes_a_fraction_of_what_is_false() -> None:
    """The study's table at equal cost: gain level with strict, false adoptions a small part."""
    worlds = [plant(seed) for seed in range(1, 13)]
    rows = {
        row.design: row
        for row in summarise_designs([run_designs(world, 3900, []) for world in worlds])
    }
    strict, low, high = (rows[name] for name in (STRICT, "factorial q 0.15", "factorial q 0.20"))
    assert strict.evaluations == 3900
    assert low.evaluations == pytest.approx(3900, abs=60)
    assert abs(low.over_strict.mean) < 2.0
    assert low.false_accepts < strict.false_accepts / 5
    assert low.false_accepts <= high.false_accepts < strict.false_accepts / 4
    assert strict.false_share == pytest.approx(0.5, abs=0.08)
    assert low.false_share < 0.15
    assert low.fresh_gain.low < low.fresh_gain.mean < low.fresh_gain.high


def test_void_runs_adopt_nothing() -> None:
    """Where the sentinels do not look like coins the simulated run does what the gate does."""
    world = plant(4, msgspec.structs.replace(SMALL, useless=0.0, harmful=0.0))
    sound = simulate(world, 600)[0]
    # every second pair goes as the sentinel's coin falls, the others as the first edit's
    lost = simulate(
        world,
        600,
        answering=lambda draws: [drawn.coins[drawn.pair.index % 2].sign for drawn in draws.pairs],
    )
    assert sound.sentinels_ok
    assert sum(sound.accepted) > 0
    assert [one.sentinels_ok for one in lost] == [False] * len(QS)
    assert [sum(one.accepted) for one in lost] == [0] * len(QS)


# -- the simulator's own world ------------------------------------------------------------


def test_the_twin_answers_by_the_same_chances(twin: TwinSetting) -> None:
    """A class's accuracy with a lesson or a trap added is what the simulator itself would have."""
    world = plant_twin(1, twin)
    assert len(world.names) >= 5
    for task, name in enumerate(world.names):
        body = body_of(twin.texts.skill_for(name).text)
        before = class_accuracy(twin.world, twin.diag[name], name, body)
        assert _mean(world, task, None) == pytest.approx(before)
        lines = [
            one for one in twin.world.lessons if (one.document, one.task_type) == (SKILL, name)
        ]
        truly = sorted(
            class_accuracy(twin.world, twin.diag[name], name, f"{body}\n{line.text}\n") - before
            for line in lines
        )
        edits = {one for epoch in world.candidates[task] for one in epoch if one.sign > 0}
        found = sorted(
            _mean(world, task, edit.shifts(world.sizes[task])) - before for edit in edits
        )
        for gain in found:
            assert any(math.isclose(gain, known, abs_tol=1e-9) for known in truly)


def _mean(world: Planted, task: int, added: np.ndarray | None) -> float:
    logits = world.logits[task] if added is None else world.logits[task] + added
    return float((1.0 / (1.0 + np.exp(-logits))).mean())


def test_the_twin_says_nothing_twice(twin: TwinSetting) -> None:
    """A lesson or a trap is proposed once at most; other seeds propose in another order."""
    worlds = [plant_twin(seed, twin) for seed in (1, 2)]
    assert worlds[0].candidates != worlds[1].candidates
    for world in worlds:
        for name, own in zip(world.names, world.candidates, strict=True):
            edits = [one for epoch in own for one in epoch]
            assert len(edits) == twin.n_epochs * twin.n_candidates
            lessons = sum(lesson.task_type == name for lesson in twin.world.lessons)
            traps = sum(trap.task_type == name for trap in twin.world.traps)
            assert sum(one.sign > 0 for one in edits) <= lessons
            assert sum(one.sign < 0 for one in edits) <= traps
            assert all(one.shift == 0.0 for one in edits if one.sign == 0 and one.on is None)


# -- the command --------------------------------------------------------------------------


def test_the_command_compares(trm: Trm) -> None:
    """A table for people, and once more the same numbers for machines."""
    arguments = ("replay", "--planted", "twin", "--runs", "2", "--evaluations", "320")
    told = msgspec.json.decode(trm(*arguments, "--json").out)
    assert (told["world"], told["runs"], told["evaluations"]) == ("twin", 2, 320)
    assert [row["design"] for row in told["designs"]] == [
        "ladder balanced",
        "strict",
        "factorial q 0.15",
        "factorial q 0.20",
    ]
    shown = trm(*arguments).out
    assert "2 worlds (--planted twin, seeds 1 to 2)" in shown
    gain = told["designs"][2]["fresh_gain"]
    assert f"{gain['mean']:+.1f} [{gain['low']:+.1f}, {gain['high']:+.1f}]" in shown


def test_how_far_it_is_is_told_within_a_world() -> None:
    """A line in ten seconds, with what is left; none for a comparison that is quick."""
    request = PlantedRequest(world="twin", runs=2, first=1, evaluations=320, profiles=("balanced",))
    said: list[str] = []
    compared(request, said.append, iter(range(0, 10_000, 4)).__next__)
    assert said == [
        "bin/trm replay: world 1 of 2, class 3 of 6, 12 s, about 36 s left",
        "bin/trm replay: world 1 of 2, class 6 of 6, 24 s, about 24 s left",
        "bin/trm replay: world 2 of 2, class 3 of 6, 36 s, about 12 s left",
        "bin/trm replay: world 2 of 2, class 6 of 6, 48 s",
    ]
    compared(request, said.append, lambda: 0.0)
    assert len(said) == 4


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ((), "name a WORKSPACE"),
        (("somewhere", "--planted", "study"), "leave one of the two out"),
        (("somewhere", "--runs", "3"), "--runs: goes with --planted"),
        (("somewhere", "--profile", "growth"), "--profile: goes with --planted"),
        (("--planted", "study", "--rule", "strict"), "are for a WORKSPACE"),
        (("--planted", "study", "--decisions"), "are for a WORKSPACE"),
        (("--planted", "study", "--runs", "1"), "at least 2"),
        (("--planted", "study", "--seed", "-1"), "0 or more"),
        (("--planted", "study", "--evaluations", "0"), "must be positive"),
        (("--planted", "study", "--evaluations", "200"), "--evaluations 200: are too few"),
        (("--planted", "twin", "--evaluations", "9999999"), "9999999: at most 1000000"),
    ],
)
def test_what_cannot_be_compared_is_said(arguments: tuple[str, ...], remedy: str, trm: Trm) -> None:
    """Exit 2 and what to do."""
    assert remedy in trm("replay", *arguments, expect=2).err
