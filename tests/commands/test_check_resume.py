"""What the check says of a run that would go on is what a resume would do."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from actors.commands.check_left import pairs_left
from actors.commands.check_line import Line
from actors.commands.check_subject import resume_lines, subject_of
from actors.config import ConfigError, changed_keys, load_config
from actors.factorial_config import FIXED
from actors.launch import fresh, resume
from actors.main import build_parser
from actors.workspace.manifest import read_manifest, write_manifest
from tests.commands.factorial_house import make_factorial
from tests.commands.house import Trm

ON = ("gate.design=factorial", "trainer.slow_update=false", "data.trainable_min_units=30")
OTHER = {
    "run.seed": "5",
    "trainer.epochs": "9",
    "gate.design": "ladder",
    "gate.profile": "growth",
    "gate.budget": "1300",
    "gate.fold": "0.5",
    "gate.q": "0.3",
    "gate.cap": "0.2",
    "gate.drop_harm": "0.1",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A factorial run that has not begun; nothing here changes it."""
    folder = tmp_path_factory.mktemp("factorial") / "run"
    fresh(None, [*ON, "gate.budget=1200", "trainer.epochs=2"], folder).lock.release()
    return folder


def lines_of(workspace: Path, assignments: Sequence[str], accepted: Sequence[str]) -> list[Line]:
    """What the check says of the resume."""
    options = [part for text in assignments for part in ("--set", text)]
    options += [part for key in accepted for part in ("--accept-change", key)]
    arguments = build_parser("check").parse_args(["check", "--resume", str(workspace), *options])
    return resume_lines(subject_of(arguments), accepted)


def refused(workspace: Path, assignments: Sequence[str], accepted: Sequence[str]) -> str:
    """What the resume itself says."""
    with pytest.raises(ConfigError) as error:
        resume(None, assignments, workspace, accepted)
    return str(error.value)


@pytest.mark.parametrize("accept", [False, True], ids=["set", "accepted"])
@pytest.mark.parametrize("key", FIXED)
def test_what_is_fixed_is_not_offered(workspace: Path, key: str, accept: bool) -> None:
    """No --accept-change helps, and none is advised; the values are the true ones."""
    accepted = [key] if accept else []
    (line,) = lines_of(workspace, [f"{key}={OTHER[key]}"], accepted)
    assert line.mark == "error"
    assert line.found.startswith(f"{key}: ")
    assert "None" not in line.found
    assert "--accept-change" not in line.remedy
    assert line.found in refused(workspace, [f"{key}={OTHER[key]}"], accepted)


def test_what_may_be_accepted_is_told_beside_it(workspace: Path) -> None:
    """All at once; a key that does not differ is one too many, as it is for the run."""
    changed = ["gate.q=0.3", "llm.search.temperature=0.1"]
    fixed, other = lines_of(workspace, changed, [])
    assert fixed.found.startswith("gate.q: 0.15 -> 0.3")
    assert other.remedy == "take it back, or add --accept-change llm.search.temperature"
    (fine,) = lines_of(workspace, changed[1:], ["llm.search.temperature"])
    assert fine.mark == "ok"
    (stray,) = lines_of(workspace, [], ["gate.q"])
    assert stray.found == "--accept-change gate.q: does not differ"
    assert refused(workspace, [], ["gate.q"]) == stray.found


def test_a_change_of_design_names_no_value_that_is_not_true() -> None:
    """What one of the designs alone counts has a value in the other too."""
    before = load_config(None, [*ON, "gate.budget=1200"])
    after = load_config(None, [*ON[1:], "gate.budget=1300"])
    for old, new in ((before, after), (after, before)):
        changed = {key: (was, now) for key, was, now in changed_keys(old, new)}
        assert changed == {
            "gate.design": (old.gate.design, new.gate.design),
            "gate.budget": (old.gate.budget, new.gate.budget),
        }


def test_a_run_that_has_decided_has_nothing_left(trm: Trm, workspace: Path, tmp_path: Path) -> None:
    """Its schedule is not shown as if it lay ahead."""
    over = tmp_path / "run"
    shutil.copytree(workspace, over)
    (tmp_path / "made").mkdir()
    made = make_factorial(tmp_path / "made")
    shutil.copy(made.path / "run.db", over / "run.db")
    write_manifest(over, msgspec.structs.replace(read_manifest(over), epoch=2))
    out = trm("check", "--resume", over).out
    assert "schedule   nothing is left to draw: 96 pairs" in out
    assert "the run has decided: 1 of 3 edits adopted" in out
    assert "Before spending" not in out
    assert "for 0 outcomes" in out


def test_a_run_under_way_says_how_much_is_left(tmp_path: Path) -> None:
    """A run without a schedule says nothing; nor does one that cannot be read."""
    (tmp_path / "made").mkdir()
    made = make_factorial(tmp_path / "made", until=2)
    left = pairs_left(made.path)
    assert left is not None
    assert not left.decided
    assert left.line.found.endswith("are left")
    assert pairs_left(tmp_path) is None
    (tmp_path / "run.db").write_bytes(b"no database at all, but long enough to be looked at" * 99)
    assert pairs_left(tmp_path) is None
