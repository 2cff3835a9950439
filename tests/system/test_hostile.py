"""A whole run with an editor that attacks, over videos that speak to it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from actors.config import ROOT
from actors.evolver.document import MARKERS, parse, validate
from actors.evolver.prompt_edits import frozen_headings, prompt_problems
from actors.ledger.reader import open_reader
from actors.workspace.versions import list_versions, read_prompts, read_skills
from protocol.documents import Document, Prompts
from protocol.rows import EditRow, SlowRow, StepRow
from protocol.slow import SYSTEM
from tests.seeds.injection import INJECTION, plant_injection
from tests.system.runs import SMALL, run_to_end, settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

HOSTILE = ("twin.hostile=0.6", "evolver.edit_budget_end=4", "trainer.max_batches=2")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace after the attack."""
    folder = tmp_path_factory.mktemp("attacked")
    shutil.copytree(ROOT / "seeds" / "demo" / "trees", folder / "trees")
    assert plant_injection(folder / "trees") > 0
    more = (*HOSTILE, f"data.trees={folder / 'trees'}")
    done = run_to_end(*settings((*SMALL, *more)), "--workspace", str(folder / "run"))
    assert "actor restarts" in done.stdout
    return folder / "run"


def _documents(prompts: Prompts) -> list[Document]:
    return [Document(name=SYSTEM, text=prompts.system), *prompts.tools]


def test_P1_6_no_skill_is_damaged(attacked: Path) -> None:
    """P1-6: in every version, tried or kept: front matter untouched, no marker but a region's."""
    first = {skill.task_type: skill for skill in read_skills(attacked / "skills", "v1")}
    versions = list_versions(attacked / "skills")
    assert len(versions) > 1, "nothing was ever written: this test shows nothing"
    for version in versions:
        for skill in read_skills(attacked / "skills", version):
            assert validate(skill.text) == (), version
            assert parse(skill.text).front == parse(first[skill.task_type].text).front
            assert all(skill.text.count(mark) <= 1 for pair in MARKERS.values() for mark in pair)
            assert INJECTION.splitlines()[0] not in skill.text
            assert len(skill.text) < 20_000


def test_P1_6_no_prompt_is_damaged(attacked: Path) -> None:
    """P1-6: frozen sections stand as the seed wrote them; a prompt has no region at all."""
    first = {d.name: d.text for d in _documents(read_prompts(attacked / "prompts", "v1"))}
    for version in list_versions(attacked / "prompts"):
        for document in _documents(read_prompts(attacked / "prompts", version)):
            headings = frozen_headings(document.name)
            before = parse(first[document.name], headings)
            after = parse(document.text, headings)
            assert not prompt_problems(document), version
            assert after.frozen_texts == before.frozen_texts
            assert not any(mark in document.text for pair in MARKERS.values() for mark in pair)


def test_every_refusal_is_counted_by_its_cause(attacked: Path) -> None:
    """Nothing is dropped without a word: edits by status, replies by what was wrong with them."""
    with open_reader(attacked / "run.db") as reader:
        statuses = Counter(row.status for row in reader.rows(EditRow))
        steps = reader.rows(StepRow)
        slow = reader.rows(SlowRow)
    refused = {status for status in statuses if status not in ("applied", "not_chosen")}
    assert len(refused) >= 4, statuses
    assert len(steps) == 8
    assert [row.epoch for row in slow] == [1, 2]
    unread = sum(row.parse_failures for row in steps) + sum(row.parse_failures for row in slow)
    assert unread > 0, "every reply could be read: this test shows nothing"
    assert all(step.parse_failures <= step.editor_calls for step in steps)
    log = (attacked / "logs" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in log]
    told = [e for e in events if e["event"] in ("evolver.call_failed", "evolver.note_refused")]
    assert all(event.get("detail") or event.get("why") for event in told)


def test_a_skill_that_the_attack_wrote_can_still_be_trained(attacked: Path) -> None:
    """The best package opens as any other does."""
    manifest = json.loads((attacked / "manifest.json").read_bytes())
    skills = read_skills(attacked / "skills", manifest["best_hard"]["skills"])
    assert {skill.task_type for skill in skills} > {"_default"}
    assert all(skill.text.endswith("\n") for skill in skills)
