"""``trm blame``, ``diff`` and ``export`` on what a real run has left."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.ledger.reader import open_reader
from actors.workspace.manifest import read_manifest
from actors.workspace.versions import list_versions, read_prompts, read_skills
from protocol.rows import DecisionRow
from tests.system.seed_commands import Trm

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_every_line_of_every_version_has_an_origin(trm: Trm, undisturbed: Path) -> None:
    """Also of a slow candidate that was dropped; each verdict is the ledger's."""
    with open_reader(undisturbed / "run.db") as reader:
        decisions = {row.run_key: row for row in reader.rows(DecisionRow)}
    names = [
        *(
            (skill.task_type, version)
            for version in list_versions(undisturbed / "skills")
            for skill in read_skills(undisturbed / "skills", version)
        ),
        *(
            (name, version)
            for version in list_versions(undisturbed / "prompts")
            for name in (
                "system",
                *(tool.name for tool in read_prompts(undisturbed / "prompts", version).tools),
            )
        ),
    ]
    from_steps = 0
    for name, version in names:
        told = trm.json("blame", name, "--workspace", undisturbed, "--version", version)
        lines, edits = told["lines"], told["edits"]
        assert isinstance(lines, list)
        assert isinstance(edits, dict)
        assert {line["origin"] for line in lines} <= {"seed", *edits}
        for key, edit in edits.items():
            if edit["step"] is None:
                assert edit["verdict"] in ("kept", "dropped")
                continue
            decision = decisions[key.partition("/proposal#")[0]]
            assert (edit["verdict"], edit["p_gate"]) == ("accept", decision.p_gate)
            from_steps += 1
    assert from_steps


def test_the_best_package_is_exported(trm: Trm, undisturbed: Path, tmp_path: Path) -> None:
    """Its texts quote no question; they are those of the version, byte for byte."""
    out = tmp_path / "out"
    trm("export", undisturbed, out)
    best = read_manifest(undisturbed).best_hard
    version = undisturbed / "skills" / best.skills
    for path in version.glob("*.md"):
        assert (out / "skills" / path.name).read_bytes() == path.read_bytes()
    assert "| val |" in (out / "CARD.md").read_text(encoding="utf-8")
    assert trm("diff", "v1", best.skills, "--workspace", undisturbed, expect=1).out
