"""What the factorial gate asks of a configuration, and what may not change in its run."""

from __future__ import annotations

import msgspec
import pytest

from actors.config import ROOT, ConfigError, changed_keys, load_config, subject_of
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_dataset
from actors.factorial_config import fixed_problems
from actors.gate.levels import q_of
from actors.launch_data import check_data

ON = ("gate.design=factorial", "trainer.slow_update=false")


@pytest.mark.parametrize(
    ("assignment", "key"),
    [
        ("trainer.slow_update=true", "trainer.slow_update"),
        ("trainer.max_batches=1", "trainer.max_batches"),
        ("gate.profile=audit", "gate.profile"),
        ("gate.q=1", "gate.q"),
        ("gate.budget=0", "gate.budget"),
        ("gate.design=other", "gate.design"),
    ],
)
def test_what_does_not_go_together_is_named(assignment: str, key: str) -> None:
    """Refused at the start, with the key."""
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        load_config(None, (*ON, assignment))


def test_the_ladder_is_the_default_and_knows_nothing_of_it() -> None:
    """Its fingerprint has no key of the other design, so that older runs can be resumed."""
    config = load_config(None)
    assert config.gate.design == "ladder"
    keys = subject_of(config)
    assert not {"gate.design", "gate.q", "gate.budget", "trainer.epochs"} & keys.keys()
    assert changed_keys(config, load_config(None, ["gate.budget=7", "trainer.epochs=9"])) == []


@pytest.mark.parametrize(
    "assignment",
    [
        "trainer.epochs=4",
        "gate.budget=9999",
        "gate.fold=.5",
        "gate.q=.3",
        "gate.cap=.2",
        "gate.drop_harm=.1",
        "gate.profile=growth",
        "run.seed=1",
    ],
)
def test_T7_nothing_that_was_fixed_can_be_changed(assignment: str) -> None:
    """Not even by name: there is no --accept-change for it."""
    before, after = load_config(None, ON), load_config(None, (*ON, assignment))
    changed = changed_keys(before, after)
    first, *_, last = fixed_problems(before, after, changed)
    assert first.startswith(assignment.partition("=")[0])
    assert "fresh run" in last


def test_a_run_keeps_its_design() -> None:
    """Neither way; pace and place may change as ever."""
    ladder, factorial = load_config(None, ["trainer.slow_update=false"]), load_config(None, ON)
    for before, after in ((ladder, factorial), (factorial, ladder)):
        assert any(
            line.startswith("gate.design")
            for line in fixed_problems(before, after, changed_keys(before, after))
        )
    faster = load_config(None, (*ON, "agent.concurrency=7"))
    assert changed_keys(factorial, faster) == []
    audit = load_config(None, ["gate.profile=audit", "run.seed=3"])
    assert fixed_problems(ladder, audit, changed_keys(ladder, audit)) == []


def test_q_by_profile() -> None:
    """Exact."""
    gate = load_config(None, ON).gate
    assert str(q_of(gate)) == "3/20"
    assert str(q_of(msgspec.structs.replace(gate, profile="growth"))) == "1/5"


def test_a_schedule_that_cannot_be_made_is_told_before_anything_is_written() -> None:
    """The budget, or a class without a unit to test on: by key, with what is needed."""
    demo = ROOT / "seeds" / "demo"
    frozen = load_frozen(demo, load_dataset(demo / "questions.jsonl", None).questions)
    check_data(load_config(None, ON), frozen)
    for assignment, key in (("gate.budget=50", "gate.budget"), ("gate.fold=.999", "gate.fold")):
        with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
            check_data(load_config(None, (*ON, assignment)), frozen)
    check_data(load_config(None, ["gate.budget=50"]), frozen)
