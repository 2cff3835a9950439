"""``bin/trm replay`` on a run with ``gate.design: factorial``, decided by the gate's own code."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest

from actors.commands.replay_factorial import factorial_replay, stored_factorial
from actors.commands.replay_factorial_rules import (
    FactorialRule,
    StoredClass,
    decide_again,
    parse_factorial_rule,
)
from actors.config import load_config
from actors.gate.factorial.coins import draw_coins
from actors.gate.factorial.course import LoggedPair, course
from actors.gate.factorial.schedule import Schedule, UnitSize, make_schedule, phase_pairs
from actors.gate.factorial.states import FactorialEdit, conclude, needs_pairs
from actors.gate.factorial.stepup import evidence_of, step_up
from actors.gate.factorial.tally import Outcome
from actors.gate.phase import final_rows, schedule_rows, sentinel_rows
from actors.launch import fresh
from actors.ledger import schema
from actors.places import launcher
from actors.twin.world import SKILL, load_world
from protocol.evolver import Edit
from protocol.factorial_rows import FactorialEditRow, FactorialRunRow, PairRow
from protocol.rows import AnyRow
from tests.commands.house import Trm

CLASS = "Counting Problem"
DROP = Fraction(3, 10)
OWN = FactorialRule(
    name="factorial", kind="factorial", q=Fraction(3, 20), cap=Fraction(1, 10), drop_harm=DROP
)
SETTINGS = ("gate.design=factorial", "trainer.slow_update=false", "gate.budget=600")
GAINS = {"good": 1.2, "fine": 0.9, "idle": 0.0, "other": 0.0, "bad": -1.5, "worse": -0.8}
"""Edits of the run in canonical order, in logits; the last two are proposed in epoch 2."""


def drawn(
    schedule: Schedule, edits: tuple[FactorialEdit, ...], gains: dict[str, float], seed: int
) -> list[LoggedPair]:
    """The pairs of a class, its edits dropped as the run drops them."""
    luck = np.random.default_rng(seed)
    log: list[LoggedPair] = []
    for phase in range(1, schedule.certification + 1):
        now = course(edits, log, DROP, until=phase - 1, n_epochs=schedule.n_epochs)
        born = [edit for edit in now if edit.born <= phase]
        if not needs_pairs(born):
            continue
        for pair in phase_pairs(schedule, CLASS, phase):
            coins = draw_coins(schedule.seed, pair, born)
            right = [
                luck.random()
                < 1 / (1 + np.exp(-sum(gains.get(name, 0.0) for name in coins.on(arm))))
                for arm in ("a", "b")
            ]
            outcome: Outcome = 0 if right[0] == right[1] else 1 if right[0] else -1
            log.append(LoggedPair(coins, outcome, drawn=True))
    return log


def scheduled(seed: int = 3, budget: int = 600) -> Schedule:
    """Two epochs of one class."""
    units = [UnitSize(f"u{n:02d}") for n in range(20)]
    return make_schedule({CLASS: units}, seed=seed, n_epochs=2, budget=budget)


def edits_of(groups: dict[str, str] | None = None) -> tuple[FactorialEdit, ...]:
    """The sentinel and the edits, as they were born."""
    named = [
        FactorialEdit(
            edit_id=name,
            task_type=CLASS,
            born=2 if name in ("bad", "worse") else 1,
            group=(groups or {}).get(name),
        )
        for name in GAINS
    ]
    return (FactorialEdit(edit_id="s", task_type=CLASS, born=1, sentinel=True), *named)


@pytest.fixture(scope="module")
def stored() -> StoredClass:
    """A class in which the run dropped something."""
    edits = edits_of()
    log = drawn(scheduled(), edits, GAINS, 1)
    ended = course(edits, log, DROP, until=3, n_epochs=2)
    assert any(edit.state == "dropped" for edit in ended)
    return StoredClass(edits=edits, log=tuple(log))


def test_the_runs_own_rule_says_what_the_gate_says(stored: StoredClass) -> None:
    """Every edit's fate, W, L and p come back from coins and outcomes."""
    ended = course(stored.edits, stored.log, DROP, until=3, n_epochs=2)
    decided = step_up(evidence_of(ended), OWN.q, OWN.cap)
    found = decide_again(OWN, [stored], 2, ok=True)
    states = {edit.edit_id: edit for edit in conclude(ended, decided.adopted) if not edit.sentinel}
    assert set(decided.adopted) >= {"good"}
    for name, one in found.items():
        edit = states[name]
        assert {"adopt": "adopted", "reject": "rejected", "dropped": "dropped"}[
            one.said
        ] == edit.state
        assert (one.wins, one.losses, one.lacking) == (edit.wins, edit.losses, 0)


def test_a_larger_q_adopts_no_less_and_a_smaller_cap_no_more(stored: StoredClass) -> None:
    """The step-up is monotone in both."""

    def taken(text: str) -> set[str]:
        said = decide_again(parse_factorial_rule(text, OWN), [stored], 2, ok=True)
        return {name for name, one in said.items() if one.said == "adopt"}

    assert taken("factorial:q=0.01") <= taken("factorial") <= taken("factorial:q=1/2")
    assert taken("factorial:cap=0.001") <= taken("factorial")
    assert taken("one-sided:0.0001") <= taken("one-sided:0.3") <= taken("strict")
    assert taken("strict") < taken("always") == set(GAINS)


def test_what_the_run_dropped_is_not_guessed(stored: StoredClass) -> None:
    """A rule that would have kept an edit lacks its pairs; one that drops more lacks nothing."""
    own = decide_again(OWN, [stored], 2, ok=True)
    keeps = decide_again(
        msgspec.structs.replace(OWN, drop_harm=Fraction(1, 10**6)), [stored], 2, ok=True
    )
    drops = decide_again(
        msgspec.structs.replace(OWN, drop_harm=Fraction(9, 10)), [stored], 2, ok=True
    )
    gone = {name for name, one in own.items() if one.said == "dropped"}
    assert {name for name, one in keeps.items() if one.lacking} == gone
    assert all(keeps[name].p is None and keeps[name].said != "dropped" for name in gone)
    assert any(one.said == "unknown" for one in keeps.values())
    assert all(one.lacking == 0 for one in drops.values())
    assert gone < {name for name, one in drops.items() if one.said == "dropped"}


def test_a_verdict_is_known_where_both_bounds_agree() -> None:
    """Whatever the lacking pairs had been, a strong edit is adopted."""
    for seed in range(5):
        log = drawn(scheduled(budget=900), edits_of(), GAINS | {"good": 4.0}, seed)
        kept = msgspec.structs.replace(OWN, drop_harm=Fraction(1, 50))
        found = decide_again(kept, [StoredClass(edits=edits_of(), log=tuple(log))], 2, ok=True)
        assert found["good"].said == "adopt"


@pytest.mark.parametrize("text", ["always", "strict", "one-sided:0.9", "factorial:q=0.9"])
def test_of_alternatives_one_is_adopted(text: str) -> None:
    """The one with the smallest p."""
    groups = {"good": "g", "fine": "g", "other": "g"}
    log = drawn(scheduled(budget=1200), edits_of(groups), GAINS, 2)
    stored = StoredClass(edits=edits_of(groups), log=tuple(log))
    found = decide_again(parse_factorial_rule(text, OWN), [stored], 2, ok=True)
    taken = [name for name in groups if found[name].said == "adopt"]
    assert len(taken) == 1
    assert found[taken[0]].p == min(found[name].p or 0.0 for name in groups)


def test_a_void_run_adopts_nothing_by_its_own_rule(stored: StoredClass) -> None:
    """The other rules know no sentinel."""
    own = decide_again(OWN, [stored], 2, ok=False)
    assert not any(one.said in ("adopt", "unknown") for one in own.values())
    strict = decide_again(parse_factorial_rule("strict", OWN), [stored], 2, ok=False)
    assert any(one.said == "adopt" for one in strict.values())


@pytest.mark.parametrize(
    "text",
    [
        "mcnemar",
        "gate:growth",
        "one-sided",
        "one-sided:1.5",
        "factorial:q",
        "factorial:q=0",
        "factorial:q=1/0",
        "factorial:q=0.1,q=0.2",
        "factorial:fold=0.5",
        "strict:0.1",
    ],
)
def test_a_rule_that_there_is_not(text: str) -> None:
    """The message names the rule, and what there is."""
    with pytest.raises(ValueError, match=f"--rule {text}: "):
        parse_factorial_rule(text, OWN)


# -- a workspace --------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The demo under the factorial gate, one class of it, with the simulator's own lines."""
    folder = tmp_path / "run"
    launch = fresh(None, SETTINGS, folder)
    launch.lock.release()
    assert launch.paths.world is not None
    world = load_world(launch.paths.world.read_bytes())
    lines = {
        "good": _line(world.lessons, 0),
        "fine": _line(world.lessons, 1),
        "idle": _line(world.fillers, 0),
        "other": _line(world.fillers, 1),
        "bad": _line(world.traps, 0),
        "worse": _line(world.traps, 1),
    }
    schedule = scheduled()
    edits = edits_of()
    log = drawn(schedule, edits, GAINS, 1)
    ended = course(edits, log, DROP, until=3, n_epochs=2)
    decided = step_up(evidence_of(ended), OWN.q, OWN.cap)
    sentinel, _ = sentinel_rows(schedule)  # of the class, and of the prompts
    rows = [msgspec.structs.replace(sentinel, edit_id="s")]
    for place, edit in enumerate(edits[1:], start=1):
        rows.append(_edit_row(edit, place, lines[edit.edit_id]))
    run = FactorialRunRow(
        run=1,
        q="3/20",
        cap="1/10",
        n_edits=len(GAINS),
        tau=float(decided.tau),
        cut=0.1,
        passed=decided.passed,
        adopted=len(decided.adopted),
        sentinel_wins=1,
        sentinel_losses=1,
        sentinel_p=1.0,
        ok=True,
    )
    final = final_rows(rows, conclude(ended, decided.adopted))
    _store(folder, [*schedule_rows(schedule), *final, *map(_pair_row, log), run])
    return folder


def _line(said: Sequence[object], nth: int) -> str:
    own = [
        str(getattr(one, "text", ""))
        for one in said
        if (getattr(one, "document", ""), getattr(one, "task_type", "")) == (SKILL, CLASS)
    ]
    return own[nth]


def _edit_row(edit: FactorialEdit, place: int, line: str) -> FactorialEditRow:
    said = Edit(op="append", target="", content=f"{line}\n", support=(), reason="")
    return FactorialEditRow(
        edit_id=edit.edit_id,
        task_type=CLASS,
        born=edit.born,
        position=place,
        edit=msgspec.json.encode(said).decode(),
        group_id=None,
        sentinel=False,
        proposed_by=f"e{edit.born}/counting-problem/s1",
    )


def _pair_row(pair: LoggedPair) -> PairRow:
    own = pair.coins.pair
    coins = [(coin.edit_id, coin.sign, coin.virtual) for coin in pair.coins.coins]
    return PairRow(
        task_type=CLASS,
        pair=own.index,
        phase=own.phase,
        unit_id=own.unit_id,
        coins=msgspec.json.encode(coins).decode(),
        state="drawn",
        right_a="[true]",
        right_b="[true]",
        outcome=pair.outcome,
    )


def _store(folder: Path, rows: Sequence[AnyRow]) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        for statement in schema.ddl():
            connection.execute(statement)
        for row in rows:
            connection.execute(schema.upsert_sql(type(row)), schema.parameters(row))


def test_a_workspace_is_decided_again(workspace: Path, trm: Trm) -> None:
    """Every rule by default, the planted truth beside; --json and --decisions."""
    run = stored_factorial(workspace, load_config(workspace / "config.yaml"))
    report = factorial_replay(workspace, run, [run.own, parse_factorial_rule("always", run.own)])
    assert report.differing == ()
    truly = {edit.edit_id: edit.truly for edit in report.edits}
    assert truly == {
        "good": "helpful",
        "fine": "helpful",
        "idle": "useless",
        "other": "useless",
        "bad": "harmful",
        "worse": "harmful",
    }
    own, always = report.rules
    assert (always.helpful, always.useless, always.harmful, always.false_adoptions) == (2, 2, 2, 4)
    assert own.helpful == own.adopted >= 1
    assert own.test_gain is not None
    assert always.test_gain is not None
    assert own.test_gain > 0.0 > always.test_gain
    told = msgspec.json.decode(trm("replay", workspace, "--json").out)
    assert {"always", "strict", "one-sided:0.05", "factorial:q=0.2", "factorial"} <= {
        row["rule"] for row in told["rules"]
    }
    shown = trm("replay", workspace, "--rule", "factorial:drop_harm=0.001", "--decisions").out
    assert "decides 6 of 6 edits as the run did" in shown
    assert " lack)" in shown


def test_without_a_simulator_no_truth_is_told(workspace: Path, trm: Trm) -> None:
    """An endpoint of one's own: null in JSON, blank in the table."""
    config = workspace / "config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("base_url: twin", "base_url: http://127.0.0.1:9/v1"), "utf-8")
    told = msgspec.json.decode(trm("replay", workspace, "--json").out)
    assert {row["test_gain"] for row in told["rules"]} == {None}
    assert {row["false_adoptions"] for row in told["rules"]} == {None}
    assert "was the simulator" not in trm("replay", workspace).out


def test_a_changed_state_ends_with_1(workspace: Path, trm: Trm) -> None:
    """The row is named."""
    _change(workspace, "UPDATE factorial_edits SET state = 'rejected' WHERE edit_id = 'good'")
    told = trm("replay", workspace, expect=1).out
    assert "decides 5 of 6 edits as the run did" in told
    assert "good: stored is another state" in told


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ("DELETE FROM factorial_run", "has not decided yet"),
        ("DELETE FROM pairs", "no pair that it was made from"),
        ("UPDATE pairs SET state = 'open' WHERE pair = 7", "1 pair without an outcome"),
    ],
)
def test_a_run_that_cannot_be_decided_again(
    change: str, remedy: str, workspace: Path, trm: Trm
) -> None:
    """Exit 2 and what to do."""
    _change(workspace, change)
    assert remedy in trm("replay", workspace, expect=2).err


def test_a_run_that_goes_on_is_named_by_a_line_to_paste(
    workspace: Path, trm: Trm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a path with a blank, from a folder that has no bin/."""
    _change(workspace, "DELETE FROM factorial_run")
    place = workspace.rename(workspace.with_name("my run"))
    monkeypatch.chdir(place.parent)
    line = f"{launcher()} --resume 'my run'"
    assert line in trm("replay", place, expect=2).err
    assert line.startswith("/")


def test_rules_of_the_other_design_are_refused(workspace: Path, trm: Trm) -> None:
    """The message says which rules there are."""
    told = trm("replay", workspace, "--rule", "gate:growth", expect=2).err
    assert "is none of always, strict, one-sided:A, factorial" in told


def _change(workspace: Path, statement: str) -> None:
    with closing(sqlite3.connect(workspace / "run.db")) as connection, connection:
        connection.execute(statement)
