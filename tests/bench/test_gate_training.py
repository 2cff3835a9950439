"""The simulated training keeps its promises in the small."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import msgspec
import pytest

from actors.commands.simulated.planted import STUDY, Setting, accuracies, plant, shift_for
from actors.commands.simulated.training import Training, train
from tests.bench.gate_training import RULES, Row, drawing, main, summarise, table
from tests.bench.training_figure import Bar, Panel, figure

SMALL = msgspec.structs.replace(STUDY, sizes=(8, 12, 16, 20), n_epochs=2, n_candidates=3)
GATES = [name for name in RULES if name.startswith("one draw") and "," not in name]


def trained(rule: str, setting: Setting, n_seeds: int) -> list[Training]:
    """So many trainings, each with a fresh rule."""
    return [train(plant(seed, setting), RULES[rule]()) for seed in range(1, n_seeds + 1)]


def false_accepts(trainings: list[Training]) -> int:
    """Useless and harmful candidates that were taken."""
    return sum(one.accepted[0] + one.accepted[1] for one in trainings)


def test_the_population_is_the_studys() -> None:
    """Mean .68; a shift moves the population's mean by what it is called."""
    logits = plant(1, msgspec.structs.replace(STUDY, sizes=(60_000,))).logits[0]
    assert accuracies(logits).mean() == pytest.approx(0.68, abs=0.005)
    for effect in (-0.2, 0.05, 0.2):
        moved = accuracies(logits + shift_for(effect)).mean() - accuracies(logits).mean()
        assert moved == pytest.approx(effect, abs=0.005)


@pytest.mark.parametrize("rule", ["always", "minibatch:3", "strict", "one draw .2/.1", "audit"])
def test_a_training_is_a_function_of_its_seed(rule: str) -> None:
    """Twice the same; another seed is another training."""
    assert train(plant(3, SMALL), RULES[rule]()) == train(plant(3, SMALL), RULES[rule]())
    assert plant(3, SMALL).candidates != plant(4, SMALL).candidates


def test_always_takes_all_and_no_rule_takes_more_that_is_false() -> None:
    """The order of the study's table: always, strict, then the gate with few false accepts."""
    found = {rule: trained(rule, SMALL, 12) for rule in ("always", "strict", *GATES)}
    for one in found["always"]:
        assert one.accepted == one.made
        assert one.candidate == one.baseline == 0
    most = false_accepts(found["always"])
    strict = false_accepts(found["strict"])
    assert most > strict
    for rule in GATES:
        assert false_accepts(found[rule]) < strict, rule


@pytest.mark.parametrize(("rule", "alpha"), [("one draw .2/.1", 0.2), ("one draw .3", 0.3)])
def test_the_gate_keeps_its_level_where_nothing_helps(rule: str, alpha: float) -> None:
    """P1_1a: useless candidates on a snapshot that is kept until an accept."""
    useless = msgspec.structs.replace(SMALL, useless=1.0, harmful=0.0)
    trainings = trained(rule, useless, 25)
    tests = sum(one.tests for one in trainings)
    rate = false_accepts(trainings) / tests
    print(f"{rule}: {rate:.3f} of {tests} tests")
    assert rate <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / tests)


@pytest.mark.parametrize(
    ("rule", "gain", "useless", "helpful"),
    [
        ("strict", 16.0, 13.0, 14.0),
        ("minibatch:3", 7.3, 21.0, 10.7),
        ("mcnemar:.1", 10.0, 1.7, 5.8),
    ],
)
def test_the_world_is_the_studys(rule: str, gain: float, useless: float, helpful: float) -> None:
    """Rules without a gate come out as in section 4 of the study, within Monte-Carlo error."""
    row = summarise(rule, trained(rule, STUDY, 40))
    assert abs(row.gain[0] - gain) < 4 * math.hypot(row.gain[1], 0.3)
    assert abs(row.useless[0] - useless) < 4 * row.useless[1] + 0.05 * useless
    assert abs(row.helpful[0] - helpful) < 4 * row.helpful[1] + 0.05 * helpful


def test_figure_and_table_hold_every_rule() -> None:
    """The figure is XML; a row per rule."""
    rows: list[Row] = [summarise(rule, trained(rule, SMALL, 2)) for rule in ("always", "strict")]
    texts = [element.text for element in ET.fromstring(drawing(rows)).iter() if element.text]
    assert {"always", "strict"} <= set(texts)
    assert len(table(rows).splitlines()) == 4
    one = Panel(title="t", bars=(Bar(parts=(1.0,), error=0.0),), colours=("#000",))
    with pytest.raises(ValueError, match="1 bars for 2 rules"):
        figure(["a", "b"], (one,), "c")


def test_rows_of_earlier_runs_make_the_same_table(
    tmp_path_factory: pytest.TempPathFactory, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """--json, then --rows: trained once, printed as often as wanted."""
    folder = tmp_path_factory.mktemp("rows")
    assert main(["--seeds", "2", "--rule", "always", "--json"]) == 0
    (folder / "rows.json").write_bytes(capsysbinary.readouterr().out)
    assert main(["--rows", str(folder / "rows.json"), "--write", str(folder)]) == 0
    assert b"| always | 2 |" in capsysbinary.readouterr().out
    assert (folder / "gate-training.svg").stat().st_size > 500


def test_one_training_tells_no_error() -> None:
    """A standard error of one is none."""
    with pytest.raises(SystemExit):
        main(["--seeds", "1"])
