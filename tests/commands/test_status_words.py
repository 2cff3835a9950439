"""``trm status`` begins with its result."""

from __future__ import annotations

import pytest

from actors.commands.status import _shown
from tests.commands.house import Made, Trm


def test_the_result_leads(trm: Trm, made: Made) -> None:
    """Whether it holds together and would go on, before all that is known of it."""
    lines = trm("status", made.path, expect=1).out.splitlines()
    assert lines[0].startswith(f"{made.path}: workspace, not consistent, ")
    assert lines[1].startswith("bin/train --resume refused: ")
    assert lines[2].startswith("  split_manifest.json: ")
    assert lines[3].startswith("    -> ")
    facts = [at for at, line in enumerate(lines) if line.startswith("  run_id ")]
    remedies = [at for at, line in enumerate(lines) if line.startswith("    -> ")]
    assert facts[0] > max(remedies)
    assert not any(line.startswith("  resume ") for line in lines)


def test_a_whole_seed(trm: Trm, made: Made) -> None:
    """Nothing is said of a resume where there is none."""
    lines = trm("status", made.path.parent / "seed").out.splitlines()
    assert lines[0] == f"{made.path.parent / 'seed'}: seed, consistent"
    assert "--resume" not in lines[1]


def test_it_fits_a_terminal(trm: Trm, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken between words, below the fact; a fingerprint stays whole, and a pipe has all."""
    seed = made.path.parent / "seed"
    plain = trm("status", seed).out.splitlines()
    assert max(map(len, plain)) > 80
    monkeypatch.setattr("actors.commands.console.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(made.path.parent)
    lines = trm("status", "seed").out.splitlines()
    assert all(len(line) <= 80 or len(line.split()[-1]) == 64 for line in lines)
    assert " ".join(" ".join(lines[1:]).split()) == " ".join(" ".join(plain[1:]).split())


def test_what_a_run_leaves_out_of_a_pool() -> None:
    """Of diag and val the questions of classes that do not train; a whole pool is one number."""
    pools: dict[str, object] = {"diag": 12, "val": 96, "test": 120}
    told = _shown({"pools": pools, "trained_pools": {"diag": 12, "val": 90}})
    assert told == {"pools": {"diag": 12, "val": "96 (90 of trained classes)", "test": 120}}
    assert _shown({"pools": pools}) == {"pools": pools}
