"""The coin lemma through the actors: trainer's epochs, gate, ledger rows; only useless edits.

A few runs per world, with a bound that a gross fault exceeds; 2,000 of each are
``python -m tests.bench.null_factorial``.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.bench.null_factorial import main, measure
from tests.gate.factorial_broken import BROKEN, forget_coins, show_gate_units
from tests.gate.factorial_endpoint import WORLDS
from tests.gate.factorial_null import training
from tests.gate.test_factorial_honesty import most

N_RUNS = 24
Q = Fraction(3, 20)
VOIDED = Fraction(1, 100)


@pytest.mark.parametrize("world", WORLDS)
def test_useless_edits_are_adopted_in_at_most_q_of_the_runs(world: str) -> None:
    """Drift, failures that come together, edits that know their evidence, losses of the wrong."""
    found = measure(world, N_RUNS)
    assert found.adopting * N_RUNS <= most(Q, N_RUNS)
    assert found.voided * N_RUNS <= most(VOIDED, N_RUNS)
    assert found.dropped > 0
    assert (found.void > 0) == (world == "losses")


@pytest.mark.parametrize("broken", BROKEN)
def test_a_gross_fault_would_be_found(broken: str) -> None:
    """Biased coins, coins that know the outcome, a proposer that is shown what it is tested on."""
    found = measure(f"!{broken}", N_RUNS)
    assert found.adopting * N_RUNS > most(Q, N_RUNS) or found.voided * N_RUNS > most(VOIDED, N_RUNS)


def test_the_house_sees_an_order_that_must_not_be() -> None:
    """Coins that are written late, and a proposer that is shown a gate unit, end the run."""
    with pytest.raises(ExceptionGroup) as shown:
        training(1, WORLDS["memorise"], show_gate_units)
    assert shown.group_contains(AssertionError, match="shown")
    with pytest.raises(ExceptionGroup) as late:
        training(1, WORLDS["plain"], forget_coins)
    assert late.group_contains(AssertionError, match="no coins yet")


def test_a_run_is_a_function_of_its_seed() -> None:
    """Again the same, and another seed's is another."""
    assert training(3, WORLDS["losses"]) == training(3, WORLDS["losses"])
    assert len({training(seed, WORLDS["losses"]).void for seed in range(1, 5)}) > 1


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A table, or its rows."""
    assert main(["--runs", "2", "--world", "drift"]) == 0
    assert "| drift | 2 |" in capsys.readouterr().out
    assert main(["--runs", "2", "--world", "plain", "--json", "--jobs", "2"]) == 0
    assert '"world":"plain"' in capsys.readouterr().out
