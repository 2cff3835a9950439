"""The coin lemma on the real code path: runs in which only useless edits compete."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from actors.commands.simulated.planted import STUDY, plant
from actors.gate.factorial.binomial import tail
from tests.bench.factorial_run import QS, WORLDS, Endpoint, simulate
from tests.bench.factorial_training import NULL, lemma, main

N_RUNS = 120
SMALL = msgspec.structs.replace(NULL, sizes=(8, 20))


def most(q: Fraction, n_runs: int) -> int:
    """Adopting runs that a share of exactly q exceeds in one of 10,000 tests."""
    p, total, ways = float(q), 0.0, (1.0 - float(q)) ** n_runs
    for k in range(n_runs):
        total += ways
        if total >= 1.0 - 1e-4:
            return k
        ways *= (n_runs - k) / (k + 1) * p / (1.0 - p)
    return n_runs


@pytest.mark.parametrize("world", WORLDS)
def test_useless_edits_are_adopted_in_at_most_q_of_the_runs(world: str) -> None:
    """Steady, drifting, failing together and losing wrong answers, knowing the evidence."""
    rows = lemma(world, N_RUNS, SMALL)
    assert [row.q for row in rows] == ["3/20", "1/5"]
    for row, q in zip(rows, QS, strict=True):
        assert row.adopting * N_RUNS <= most(q, N_RUNS)
        assert row.voided <= 0.05


def test_what_the_folds_are_there_for() -> None:
    """The same edits, had they learnt units that they are tested on, are adopted often."""
    leak = Endpoint(memorised=WORLDS["memorise"].memorised, leak=True)
    runs = [simulate(plant(seed, SMALL), leak, budget=360)[0] for seed in range(1, 41)]
    assert sum(sum(run.accepted) > 0 for run in runs) > most(QS[0], len(runs))


def test_helpful_edits_are_found() -> None:
    """The same code adopts what helps: of large effects most, of harmful ones none."""
    good = msgspec.structs.replace(
        STUDY, sizes=(20, 40), useless=0.5, harmful=0.25, least=0.15, most=0.2
    )
    (run,) = simulate(plant(3, good), budget=1500, qs=QS[:1])
    assert run.gain > 5.0
    assert run.accepted[2] >= run.made[2] // 2
    assert run.accepted[1] == 0
    assert run.sentinels_ok


def test_a_run_is_a_function_of_its_seed() -> None:
    """Once more, the same."""
    assert simulate(plant(5, SMALL), budget=300) == simulate(plant(5, SMALL), budget=300)


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Both tables."""
    assert main(["lemma", "--runs", "2", "--world", "drift"]) == 0
    assert "| drift | 3/20 | 2 |" in capsys.readouterr().out
    assert main(["lemma", "--runs", "2", "--world", "drift", "--json"]) == 0
    assert main(["table", "--seeds", "2", "--beside", "always"]) == 0
    out = capsys.readouterr().out
    assert "factorial q=3/20, alternatives" in out
    assert "+16.6" in out


def test_most_is_a_binomial_quantile() -> None:
    """Against an exact tail."""
    k = most(Fraction(1, 2), 40)
    assert tail(40, k + 1) <= Fraction(1, 10_000) < tail(40, k)
