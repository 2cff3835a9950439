"""``trm seed``: the whole way from the older program's answers to a run, and its other sources."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest

from actors.dataset.split import choose_videos
from actors.launch import fresh
from actors.report import preflight_report
from actors.runtime.supervisor import Supervisor
from actors.system import specs
from actors.workspace.seed import open_seed
from tests.support import long_part
from tests.support.harness_db import RUN, made_up_rows, write_harness
from tests.system.seed_commands import (
    SMALL,
    Trm,
    Words,
    asked,
    files_of,
    fingerprints,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_the_whole_way_from_902_rows_to_a_run(trm: Trm, long_folder: Path, tmp_path: Path) -> None:
    """Rows seed, split, W-1, W-2, P0-3, P2-2: harness.db, diagnosis, split, seed, workspace.

    No file that was read changes by a byte, and the run's pre-flight says what the split said.
    """
    folder = Path(shutil.copytree(long_folder, tmp_path / "long"))
    harness, config = folder / "harness.db", folder / "my.yaml"
    source = fingerprints(harness)
    seed = folder / "seed"
    official = folder / "videos.json"

    # 902 rows are no baseline, until the first of each is asked for
    extract = ("seed", seed, "--from-db", harness, "--from-run", RUN, "--questions", official)
    refused = trm(*extract, "--baseline-only", expect=2)
    assert "902 rows for 900 questions; keep the first row of each with --dedupe" in refused.err
    assert not seed.exists()
    told = trm.json(*extract, "--baseline-only", "--dedupe")
    assert (told["predictions"], told["diagnoses"]) == (900, 0)
    dropped = told["dropped"]
    assert isinstance(dropped, list)
    assert [line.split(",")[0] for line in dropped] == ["602-2: row 901", "767-3: row 902"]

    # every wrong answer is judged, from the steps that the older program stored
    judge = (
        "diagnose",
        seed,
        "--traces",
        harness,
        "--config",
        config,
        "--skills",
        folder / "skills",
    )
    judged = trm.json(*judge)
    assert judged["asked"] == judged["wrong"]
    assert (judged["undiagnosed"], judged["silent"], judged["untraced"]) == ([], [], [])
    assert isinstance(judged["t2"], int)
    assert judged["t2"] > 100
    baseline = fingerprints(seed / "baseline.db")
    assert trm.json(*judge)["asked"] == 0  # what is stored is not asked again
    assert fingerprints(seed / "baseline.db") == baseline

    # what the split would give, without writing anything
    cut = ("split", "--seed-folder", seed, "--questions", official)
    dry = trm.json(*cut, "--dry-run")
    assert not (seed / "pools.json").exists()
    parameters = {"n_trainval": 100, "n_test": 200, "val_ratio": 0.4, "val_wrong_min": 20}
    assert dry["parameters"] == {"seed": 20260716, **parameters}
    pools = dry["pools"]
    assert isinstance(pools, list)
    diag, val, test = pools
    assert (diag["videos"] + val["videos"], test["videos"], test["wrong"]) == (100, 200, None)
    # 40 % of the questions, and what step 2 moved there for its wrong answers
    assert (diag["questions"] + val["questions"], val["questions"] >= 120) == (300, True)
    assert val["wrong"] >= 20
    assert dry["moved"]
    assert diag["t2"] > val["t2"]
    frozen = trm.json(*cut)
    assert {**dry, "frozen": True, "folder": str(seed)} == frozen

    # the seed is finished, and says whose answers it holds
    parts = ("--skills", folder / "skills", "--prompts", folder / "prompts", "--subtitles", "yes")
    finish = ("seed", seed, "--name", "adhoc-baseline", "--questions", official, *parts)
    made = trm.json(*finish, "--agent", "TRM5, deepseek-v4-pro")
    info = made["seed"]
    assert isinstance(info, dict)
    assert (info["name"], info["agent"]) == ("adhoc-baseline", "foreign: TRM5, deepseek-v4-pro")
    assert info["baseline_run_id"] == RUN
    assert fingerprints(seed / "baseline.db") == baseline
    assert {path.name for path in seed.iterdir()} == {
        *("seed.json", "baseline.db", "pools.json", "split_manifest.json", "skills", "prompts")
    }
    assert open_seed(seed).without_baseline == ()
    assert ": seed, consistent\n" in trm("status", seed, "--questions", official).out
    _holds_no_path(seed, tmp_path)

    # a workspace, and what its pre-flight says before anything is spent
    names = ("baseline.db", "pools.json", "split_manifest.json", "seed.json")
    elsewhere = "http://127.0.0.1:9/v1"  # nobody is asked, so nobody needs to be there
    endpoints = f"[{{name: a, base_url: '{elsewhere}', model: m, roles: [search, judge, evolve]}}]"
    launch = fresh(config, [f"llm.endpoints={endpoints}"], tmp_path / "workspace")
    try:
        for name in names:
            copied = launch.paths.workspace / name
            assert copied.read_bytes() == (seed / name).read_bytes()

        async def preflight() -> str:
            wired = specs(launch.config, launch.paths, None)
            async with Supervisor(wired, launch.config.runtime) as system:
                return await preflight_report(system, launch.config, launch.paths)

        table = anyio.run(preflight)
    finally:
        launch.lock.release()
    classes = dry["classes"]
    assert isinstance(classes, list)
    left_out = {c["count"]["task_type"] for c in classes if not c["count"]["trainable"]}
    assert {"Spatial Perception", "Temporal Perception"} <= left_out
    for entry in classes:
        count = entry["count"]
        (line,) = [line for line in table.splitlines() if line.startswith(count["task_type"])]
        if not count["trainable"]:
            words = f"Not trained: {count['task_type']}: {count['reason']}"
            assert words in " ".join(table.split())  # prose below the table, wrapped to the page
            continue
        seen = entry["ladder"]
        assert f" {seen['n_units']} " in line
        assert f" {seen['n_wrong']} " in line
    assert "answered by another agent" in table

    # nothing that was read has changed, neither by a byte nor by a touch
    assert fingerprints(harness) == source
    assert fingerprints(seed / "baseline.db") == baseline
    assert {path.name for path in folder.glob("harness.db*")} == {"harness.db"}
    assert not list(tmp_path.rglob("baseline.db-*"))


def _holds_no_path(seed: Path, root: Path) -> None:
    """Row seed: it may be moved, so it says nothing of where it was made."""
    for path in seed.rglob("*"):
        if path.is_file():
            assert str(root).encode() not in path.read_bytes()


def test_seed_of_a_run_of_ours(trm: Trm, small: Path, whole: Path, tmp_path: Path) -> None:
    """Answers and diagnoses of a pass in a run.db; the agent is that of its config.yaml."""
    work = whole.with_name("seed.work")
    base: Words = ["seed", tmp_path / "seed", "--from-db", work / "run.db", *asked(small)]
    base += SMALL
    documents: Words = ["--skills", whole / "skills/v1", "--prompts", whole / "prompts/v1"]
    before = fingerprints(work / "run.db")
    trm(*base, *documents, "--subtitles", "yes")
    assert fingerprints(work / "run.db") == before
    assert not list(work.glob("run.db-*"))
    seed = open_seed(tmp_path / "seed")
    assert seed.info.agent == open_seed(whole).info.agent
    assert seed.pools == open_seed(whole).pools


def test_other_documents_are_another_package(
    trm: Trm, small: Path, whole: Path, tmp_path: Path
) -> None:
    """Answers under other skills must not pass for the seed package's own draw."""
    skills = Path(shutil.copytree(whole / "skills/v1", tmp_path / "skills"))
    path = skills / "counting-problem.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nCount twice.\n", encoding="utf-8")
    work = whole.with_name("seed.work")
    for source in (work / "run.db", whole / "baseline.db"):
        base: Words = ["seed", tmp_path / "seed", "--from-db", source, *asked(small), *SMALL]
        base += ["--skills", skills, "--prompts", whole / "prompts/v1", "--subtitles", "yes"]
        told = trm(*base, expect=2)
        assert "documents that the answers were made under" in told.err
        assert not (tmp_path / "seed").exists()
    trm(*base, "--agent", "the agent of the pass")
    assert open_seed(tmp_path / "seed").info.agent == "foreign: the agent of the pass"


def test_a_seed_of_a_seed(trm: Trm, small: Path, whole: Path, tmp_path: Path) -> None:
    """The same answers split otherwise: agent, documents and diagnoses come along."""
    before = files_of(whole)
    trm("seed", tmp_path / "again", "--from-db", whole / "baseline.db", *asked(small), *SMALL,
        "--val-ratio", "0.5")  # fmt: skip
    assert files_of(whole) == before
    old, new = open_seed(whole), open_seed(tmp_path / "again")
    assert (new.info.agent, new.info.subtitles) == (old.info.agent, old.info.subtitles)
    assert new.pools != old.pools
    assert (
        files_of(tmp_path / "again")["skills/v1/meta.json"].replace(b"seed again", b"seed small")
        == before["skills/v1/meta.json"]
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "holds no baseline.db yet"),
        (("--from-db", "none.db"), r"is missing"),
        (("--dedupe",), "--dedupe goes with --from-db"),
        (("--from-run", "x"), "--from-run goes with --from-db"),
    ],
)
def test_what_seed_needs(
    trm: Trm, small: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Every refusal says what is lacking."""
    assert said in trm("seed", tmp_path / "seed", *asked(small), *arguments, expect=2).err


def test_fail_loud_only_test_questions_may_lack_an_outcome(
    trm: Trm, long_folder: Path, tmp_path: Path
) -> None:
    """fail-loud: named in --without, a test question has no row; a trainval one is refused."""
    questions = long_part.questions()
    categories = {question.video_id: question.sub_category for question in questions}
    trainval, test = choose_videos(categories, n_trainval=100, n_test=200, seed=20260716)
    rows = {row.question.question_id: row for row in made_up_rows(questions)}
    base: Words = ["--questions", long_folder / "videos.json", "--agent", "x", "--subtitles", "no"]
    base += ["--skills", long_folder / "skills", "--prompts", long_folder / "prompts"]
    for video, code in ((min(trainval), 2), (min(test), 0)):
        name = f"{video}-1"
        lost = rows | {name: rows[name]._replace(prediction=None, stop_reason="error")}
        path = write_harness(tmp_path / f"{video}.db", list(lost.values()))
        make: Words = ["seed", tmp_path / f"seed-{video}", "--from-db", path, *base]
        assert f"--without {name}" in trm(*make, expect=2).err
        told = trm(*make, "--without", name, expect=code)
    assert f"{name}: stop_reason is 'error'" in told.err
    assert open_seed(tmp_path / f"seed-{min(test)}").without_baseline == (name,)
    assert not (tmp_path / f"seed-{min(trainval)}").exists()


def test_a_split_that_was_made_elsewhere(
    trm: Trm, small: Path, whole: Path, tmp_path: Path
) -> None:
    """Row seed: --pools takes pools.json and split_manifest.json as they are."""
    cut: Words = ["split", "--baseline", whole / "baseline.db", *asked(small), *SMALL]
    trm(*cut, "--val-ratio", "0.5", "--out", tmp_path / "pools")
    base: Words = ["seed", tmp_path / "seed", "--from-db", whole / "baseline.db", *asked(small)]
    base += ["--pools", tmp_path / "pools"]
    assert "takes no parameters" in trm(*base, "--val-ratio", "0.4", expect=2).err
    trm(*base)
    for name in ("pools.json", "split_manifest.json"):
        assert (tmp_path / "seed" / name).read_bytes() == (tmp_path / "pools" / name).read_bytes()


def test_a_foreign_baseline_needs_a_name(trm: Trm, long_folder: Path, tmp_path: Path) -> None:
    """Whose answers, under which documents, with subtitles or not: nothing is guessed."""
    base: Words = ["seed", tmp_path / "seed", "--from-db", long_folder / "harness.db", "--dedupe"]
    base += ["--questions", long_folder / "videos.json"]
    assert "which skills?" in trm(*base, expect=2).err
    base += ["--skills", long_folder / "skills", "--prompts", long_folder / "prompts"]
    assert "say with --agent TEXT" in trm(*base, expect=2).err
    own: Words = ["--agent-of", long_folder / "my.yaml"]
    assert "say with --agent TEXT" in trm(*base, *own, expect=2).err
    assert "Give --subtitles yes or no" in trm(*base, "--agent", "x", expect=2).err
    assert not (tmp_path / "seed").exists()


@pytest.mark.parametrize("command", ["seed", "split", "diagnose", "status"])
def test_help_teaches_with_an_example(trm: Trm, command: str) -> None:
    """Each command explains itself, with its exit codes."""
    told = trm(command, "--help")
    assert f"bin/trm {command}" in told.out
    assert "example" in told.out
    assert "exit codes" in told.out
    assert f"  {command} " in trm("--help").out
