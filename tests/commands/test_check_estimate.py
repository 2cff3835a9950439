"""What a run will cost: the arithmetic, and a real small run held against it."""

from __future__ import annotations

import math
import os
from argparse import Namespace
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands.check_calls import Heard
from actors.commands.check_data import Material, look_at_data
from actors.commands.check_preview import preview_of, rates_of
from actors.commands.check_probes import Probe
from actors.commands.check_subject import subject_of
from actors.config import load_config
from actors.estimate import (
    OWN_S,
    TYPICAL,
    ClassShape,
    Range,
    Rates,
    RoleRate,
    RunShape,
    estimate,
)
from actors.ledger.reader import open_reader
from protocol.llm import Chat, ChatAnswer, ChatMessage, Usage
from protocol.rows import AttemptRow, EvaluationRow, OutcomeRow
from protocol.settings import Config, Endpoint
from tests.system.runs import SMALL, run_to_end, settings

ONE = ClassShape(task_type="Counting", batches=(10, 10, 5), ladder=30, blocks=5, draws=3)
SHAPE = RunShape(
    epochs=2,
    fresh=True,
    classes=(ONE,),
    val=40,
    test=100,
    test_seed=True,
    seed_draw=False,
    stages=1,
    slow=20,
    wrong=0.4,
    prompts=5,
)
RATES = Rates(
    search=RoleRate(prompt=1000.0, completion=100.0, seconds=2.0),
    judge=RoleRate(prompt=2000.0, completion=100.0, seconds=3.0),
    evolve=RoleRate(prompt=3000.0, completion=200.0, seconds=10.0),
    calls_per_rollout=3.0,
    concurrency=10,
    growth=0.0,
)


def test_the_phases() -> None:
    """As the docstring of the module says it, number by number."""
    made = estimate(SHAPE, RATES)
    rollouts = made.rollouts
    assert rollouts["design"] == Range(50.0, 50.0)
    assert rollouts["val"] == Range(200.0, 200.0)  # the seed's, then two per epoch
    assert rollouts["slow"] == Range(80.0, 80.0)
    assert rollouts["test"] == Range(300.0, 300.0)
    assert rollouts["gate"].most == 30 * 3 * 2
    assert rollouts["gate"].expected == pytest.approx(180 * 0.9 * 0.7)
    assert rollouts["snapshots"].most == 3 * 30 * 3 * 2
    assert rollouts["snapshots"].expected == pytest.approx(90 * 1.6 * 1.75)
    assert made.calls["judge"] == Range(20.0, 100.0)
    assert made.calls["search"].most == made.all_rollouts.most * 3
    assert made.usd is None


def test_what_the_seed_saves() -> None:
    """Its answers are a draw of the first snapshots, and stand for the seed package on test."""
    saved = estimate(msgspec.structs.replace(SHAPE, test_seed=False, seed_draw=True), RATES)
    full = estimate(SHAPE, RATES)
    assert full.all_rollouts.expected - saved.all_rollouts.expected == pytest.approx(100 + 30)


def test_two_stages_ask_more() -> None:
    """The profile ``audit``: at most everything twice."""
    both, one = estimate(msgspec.structs.replace(SHAPE, stages=2), RATES), estimate(SHAPE, RATES)
    for phase in ("gate", "snapshots"):
        assert both.rollouts[phase].most == 2 * one.rollouts[phase].most
        assert both.rollouts[phase].expected > one.rollouts[phase].expected


def test_money_and_hours() -> None:
    """Money wants the price of every role; hours want the seconds of a call."""
    priced = {
        role: msgspec.structs.replace(rate, usd_per_m_prompt=1.0, usd_per_m_completion=10.0)
        for role, rate in (("search", RATES.search), ("judge", RATES.judge))
    }
    assert estimate(SHAPE, msgspec.structs.replace(RATES, **priced)).usd is None
    free = msgspec.structs.replace(RATES.evolve, usd_per_m_prompt=0.0, usd_per_m_completion=0.0)
    made = estimate(SHAPE, msgspec.structs.replace(RATES, **priced, evolve=free))
    assert made.usd is not None
    wanted = made.calls["search"].expected * 0.002 + made.calls["judge"].expected * 0.003
    assert made.usd.expected == pytest.approx(wanted)
    assert made.hours is not None
    passes_s = (200 + 80 + 300) * 6.0 / 10
    assert made.hours.expected * 3600 >= passes_s
    slow = msgspec.structs.replace(RATES, concurrency=1)
    assert estimate(SHAPE, slow).hours.expected > made.hours.expected  # type: ignore[union-attr]  # seconds are known
    unknown = msgspec.structs.replace(RATES, search=TYPICAL["search"])
    assert estimate(SHAPE, unknown).hours is None


def test_this_programs_own_work_is_counted() -> None:
    """Beside a server that answers at once it is all there is; beside a slow one it is added."""

    def seconds(call_s: float) -> float:
        search = RoleRate(prompt=1000.0, completion=100.0, seconds=call_s)
        made = estimate(SHAPE, msgspec.structs.replace(RATES, search=search))
        assert made.hours is not None
        return made.hours.expected * 3600

    quick = RoleRate(prompt=1.0, completion=1.0, seconds=0.0)
    at_once = msgspec.structs.replace(RATES, search=quick, judge=quick, evolve=quick)
    made = estimate(SHAPE, at_once)
    assert made.hours is not None
    assert made.hours.expected * 3600 == pytest.approx(made.all_calls.expected * OWN_S)
    assert made.hours.most * 3600 == pytest.approx(made.all_calls.most * OWN_S)
    assert seconds(2.0) - seconds(1.0) == pytest.approx(
        (seconds(3.0) - seconds(1.0)) / 2
    )  # nothing but calls grows with the seconds of a call


def test_the_second_call_is_the_one_that_is_timed() -> None:
    """The first also pays for the connection, which a run does once in thousands of calls."""
    endpoint = Endpoint(name="e", base_url="http://h/v1", model="m", roles=("search",))
    chat = Chat(role="search", messages=(ChatMessage(role="user", content="?"),), cache_salt=None)

    def heard(kind: Literal["role", "pace"], seconds: float) -> Heard:
        reply = ChatAnswer(
            text="x",
            finish="stop",
            usage=Usage(prompt_tokens=2000, completion_tokens=30),
            endpoint="e",
            cached=False,
            seconds=seconds,
            attempts=(),
        )
        return Heard(Probe(endpoint=endpoint, role="search", kind=kind, chat=chat), reply, seconds)

    rates, assumed = rates_of(load_config(None), [heard("role", 0.9), heard("pace", 0.3)], None)
    assert rates.search.seconds == pytest.approx(0.3)
    assert rates.search.prompt == 2000
    assert any("0.30 s per call of the agent" in one for one in assumed)
    rates, _ = rates_of(load_config(None), [heard("role", 0.9)], None)
    assert rates.search.seconds == pytest.approx(0.9)


@given(
    epochs=st.integers(0, 5),
    fresh=st.booleans(),
    batches=st.lists(st.integers(1, 10), max_size=5),
    ladder=st.integers(1, 80),
    draws=st.integers(1, 3),
    stages=st.integers(1, 2),
    seed_draw=st.booleans(),
)
def test_what_is_expected_is_possible(
    epochs: int,
    fresh: bool,
    batches: list[int],
    ladder: int,
    draws: int,
    stages: int,
    seed_draw: bool,
) -> None:
    """Never below nothing, never above the most; another epoch never costs less."""
    one = msgspec.structs.replace(ONE, batches=tuple(batches), ladder=ladder, draws=draws)
    shape = msgspec.structs.replace(
        SHAPE, epochs=epochs, fresh=fresh, classes=(one,), stages=stages, seed_draw=seed_draw
    )
    made = estimate(shape, RATES)
    for value in (*made.rollouts.values(), *made.calls.values(), made.tokens, made.hours):
        assert value is not None
        assert 0 <= value.expected <= value.most + 1e-9
        assert math.isfinite(value.most)
    longer = estimate(msgspec.structs.replace(shape, epochs=epochs + 1), RATES)
    assert longer.all_calls.expected >= made.all_calls.expected - 1e-9


@pytest.mark.system
def test_a_real_run_is_within_a_factor(tmp_path: Path) -> None:
    """Two epochs of two classes against the simulator: rollouts, calls and tokens.

    Before the run nothing is measured but sizes; after it, its own numbers replace the typical.
    """
    workspace = tmp_path / "run"
    arguments = Namespace(
        aa=None, resume=None, workspace=workspace, config=None, assignments=SMALL, accept_change=[]
    )
    subject = subject_of(arguments)
    _, material = look_at_data(subject.config, subject.source, None)
    preview = preview_of(subject.config, material, (), None, 0)
    assert preview is not None
    said = run_to_end(*settings(SMALL), "--workspace", str(workspace)).stderr
    assert "(an estimate: the baseline's share of wrong answers" in " ".join(said.split())
    with open_reader(workspace / "run.db", at_rest=True) as reader:
        outcomes = len(reader.rows(OutcomeRow))
        attempts = reader.rows(AttemptRow)
    made = preview.estimate
    calls = sum(row.outcome in ("ok", "cached") for row in attempts)
    judged = sum(row.role == "judge" for row in attempts)
    edited = sum(row.role == "evolve" for row in attempts)
    tokens = sum(row.prompt_tokens + row.completion_tokens for row in attempts)
    for what, seen, told, factor in (
        ("rollouts", outcomes, made.all_rollouts, 1.35),
        ("calls", calls, made.all_calls, 1.5),
        ("judge", judged, made.calls["judge"], 2.5),
        ("editor", edited, made.calls["evolve"], 2.5),
        ("tokens", tokens, made.tokens, 2.0),
    ):
        print(f"{what}: expected {told.expected:.0f} (at most {told.most:.0f}), was {seen}")
        assert told.expected / factor <= seen <= told.expected * factor, what
        assert seen <= told.most, what
    rates, assumed = rates_of(load_config(None), (), workspace)
    assert rates.calls_per_rollout == pytest.approx(
        sum(row.role == "search" and row.outcome == "ok" for row in attempts) / outcomes
    )
    assert rates.search.measured
    assert "of this run so far" in assumed[0]
    _its_own_count_on_val_is_known(subject.config, subject.source, material, workspace)


def _its_own_count_on_val_is_known(
    config: Config, source: Path, before: Material, workspace: Path
) -> None:
    """What the forecast stood for until then; the run says the same before it goes on."""
    assert before.split is not None
    assert before.split.facts.val.basis == "trainval"
    with open_reader(workspace / "run.db", at_rest=True) as reader:
        (row,) = [
            one for one in reader.rows(EvaluationRow) if (one.pool, one.kind) == ("val", "seed")
        ]
    there = set(os.listdir(workspace))  # noqa: PTH208  # names only
    _, after = look_at_data(config, source, workspace)
    assert after.split is not None
    wrong = row.planned - row.missing - row.right
    assert (after.split.facts.val.n_wrong, after.split.facts.val.basis) == (wrong, "run")
    assert after.split.facts.test == before.split.facts.test
    assert set(os.listdir(workspace)) == there  # noqa: PTH208  # names only
    said = run_to_end("--resume", str(workspace)).stderr
    assert f"{wrong} of them are wrong in this run" in " ".join(said.split())
