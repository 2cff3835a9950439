"""The recipes of ``docs/logs.md`` on the log of a real run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from actors.places import ROOT
from tests.system.runs import events

_MAY_BE_EMPTY = ("failed tries", "restarts of actors", "how far it is", "factorial gate")


def _recipes() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    lines = text.partition("```sh\n")[2].partition("```")[0].splitlines()
    return [
        (comment.removeprefix("# "), command)
        for comment, command in zip(lines[::2], lines[1::2], strict=True)
    ]


@pytest.mark.skipif(shutil.which("jq") is None, reason="the recipes need jq")
@pytest.mark.parametrize(("about", "command"), _recipes(), ids=lambda text: text[:30])
def test_a_recipe_of_the_documentation_works(undisturbed: Path, about: str, command: str) -> None:
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=undisturbed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip() or about.startswith(_MAY_BE_EMPTY)


def test_one_line_per_call_rollout_decision_step_and_epoch(undisturbed: Path) -> None:
    """As many as there are rows, and every one says where it belongs."""
    from actors.ledger.reader import open_reader
    from protocol.rows import DecisionRow, EpochRow, OutcomeRow, StepRow

    told = events(undisturbed)
    lines: dict[object, list[dict[str, object]]] = {}
    for event in told:
        lines.setdefault(event["event"], []).append(event)
    with open_reader(undisturbed / "run.db") as reader:
        outcomes = {(row.run_key, row.question_id) for row in reader.rows(OutcomeRow)}
        decisions = len(reader.rows(DecisionRow))
        steps = len(reader.rows(StepRow))
        epochs = len(reader.rows(EpochRow))
    assert {(e["run_key"], e["question_id"]) for e in lines["rollout.done"]} == outcomes
    assert len(lines["gate.decision"]) == decisions
    assert len(lines["step.done"]) == steps
    assert len(lines["epoch.done"]) == epochs
    assert all(event["class"] for event in lines["gate.decision"] + lines["step.done"])
    assert len(lines["llm.call"]) > len(outcomes)
    assert [event["status"] for event in lines["run.ended"]] == ["done"]
