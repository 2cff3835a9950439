"""``trm seed --from-scratch``: one pass that can be stopped, killed and begun again."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from actors.workspace.seed import open_seed
from tests.system.seed_commands import (
    DEMO,
    Trm,
    answered,
    files_of,
    scratch,
    trm_running,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_seed_from_scratch(whole: Path, trm: Trm, small: Path) -> None:
    """Row seed: one pass, its diagnosis, the split; whose answers it holds is this agent."""
    seed = open_seed(whole)
    assert seed.info.agent.startswith("model twin-agent, ")
    assert seed.info.subtitles
    assert len(seed.pools.test) == 36
    exclude = small / "exclude.txt"
    told = trm.json("status", whole, "--questions", DEMO / "questions.jsonl", "--exclude", exclude)
    assert (told["kind"], told["consistent"]) == ("seed", True)
    # other questions than those that were split are another data set
    other = trm.json("status", whole, "--questions", DEMO / "questions.jsonl", expect=1)
    assert "dataset_fingerprint" in json.dumps(other["problems"])


def test_a_stopped_pass_goes_on_from_its_cache(small: Path, whole: Path, tmp_path: Path) -> None:
    """SIGTERM in the middle: a message and exit 75, no seed; then only the rest is asked."""
    out = tmp_path / "seed"
    slow = ("--set", "agent.concurrency=2", "--set", "diagnoser.concurrency=1")
    with trm_running(*scratch(out, small), *slow, "--set", "twin.chunk_delay_s=0.01") as run:
        run.wait_for("baseline: 1/108")
        run.signal(signal.SIGTERM)
        run.finish(75)
    said = "".join(run.lines)
    assert "Traceback" not in said
    assert "Stopped in order" in said
    assert "goes on from there" in said
    assert not out.exists()
    assert answered(tmp_path / "seed.work")
    with trm_running(*scratch(out, small)) as run:
        run.finish(0)
    assert set(answered(tmp_path / "seed.work").values()) == {1}
    assert files_of(out) == files_of(whole)


def test_a_stop_while_actors_start_is_a_stop(small: Path, tmp_path: Path) -> None:
    """One SIGTERM before anything was asked: no traceback, exit 75, nothing made."""
    with trm_running(*scratch(tmp_path / "seed", small)) as run:
        run.wait_for("twin.up")
        run.signal(signal.SIGTERM)
        run.finish(75)
    assert "Traceback" not in "".join(run.lines)
    assert not (tmp_path / "seed").exists()


def test_a_killed_pass_goes_on_from_its_cache(small: Path, whole: Path, tmp_path: Path) -> None:
    """kill -9: nothing is half made, and what was answered is not asked again."""
    out = tmp_path / "seed"
    with trm_running(*scratch(out, small), "--set", "twin.chunk_delay_s=0.01") as run:
        run.wait_for("baseline: 1/108")
        run.signal(signal.SIGKILL)
        run.finish(-signal.SIGKILL)
    assert not out.exists()
    with trm_running(*scratch(out, small)) as run:
        run.finish(0)
    again = [call for call, times in answered(tmp_path / "seed.work").items() if times > 1]
    assert len(again) <= 48  # answers that were on their way into the cache: one per actor at work
    assert files_of(out) == files_of(whole)


def test_a_second_signal_stops_a_pass_at_once(small: Path, tmp_path: Path) -> None:
    """The simulator is halted, so that the first signal's drain cannot be over."""
    with trm_running(*scratch(tmp_path / "seed", small)) as run:
        twin = int(run.wait_for("twin.up").rpartition("pid=")[2])
        run.wait_for("baseline: 1/108")
        os.kill(twin, signal.SIGSTOP)
        try:
            run.signal(signal.SIGTERM)
            run.wait_for("runtime.draining")
            run.signal(signal.SIGTERM)
            run.finish(130)
        finally:
            with suppress(ProcessLookupError):
                os.kill(twin, signal.SIGCONT)
    assert "Stopped at once" in "".join(run.lines)


def test_fail_loud_a_pass_with_missing_outcomes_is_no_seed(
    trm: Trm, small: Path, whole: Path, tmp_path: Path
) -> None:
    """fail-loud: a spent limit is an outage: it is told, and a higher one goes on from there."""
    out = tmp_path / "seed"
    told = trm(*scratch(out, small), "--set", "limits.max_calls=60", expect=75)
    assert "have no outcome (an outage is no wrong answer)" in told.err
    assert "budget" in told.err
    assert "--without demo-" in told.err
    assert not out.exists()
    trm(*scratch(out, small))
    assert set(answered(tmp_path / "seed.work").values()) == {1}
    assert files_of(out) == files_of(whole)


def test_two_passes_on_one_work_folder_are_refused(small: Path, tmp_path: Path, trm: Trm) -> None:
    """They would write one run.db; the second says who is there."""
    out = tmp_path / "seed"
    with trm_running(*scratch(out, small), "--set", "twin.chunk_delay_s=0.05") as run:
        run.wait_for("baseline: 1/108")
        told = trm(*scratch(out, small), expect=2)
        assert f"process {run.process.pid} runs on this" in told.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--n-trainval", "200"), "lower n_trainval or n_test"),
        (("--agent", "somebody"), "answers with the agent of its configuration"),
        (("--config", "x.yaml"), "--from-scratch names the configuration"),
        (("--set", "data.trees=nowhere"), "nowhere: no such file or folder"),
        (("--skills", "nowhere"), "there is no such folder"),
        (("--set", "agent.concurency=3"), "did you mean 'agent.concurrency'"),
        (("--without", "demo-001-1"), "not missing"),
    ],
)
def test_nothing_is_spent_on_what_cannot_be(
    trm: Trm, small: Path, tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    """What is wrong is told before the pass; only the last can be known after it alone."""
    out = tmp_path / "seed"
    assert said in trm(*scratch(out, small), *change, expect=2).err
    assert not out.exists()
    assert (tmp_path / "seed.work").exists() == (change[0] == "--without")


def test_an_infeasible_split_loses_no_answer(
    trm: Trm, small: Path, whole: Path, tmp_path: Path
) -> None:
    """Row split: what would be feasible is told, and asking again costs nothing."""
    out = tmp_path / "seed"
    told = trm(*scratch(out, small), "--val-wrong-min", "900", expect=2)
    assert "lower val_wrong_min to at most" in told.err
    assert not out.exists()
    trm(*scratch(out, small))
    assert set(answered(tmp_path / "seed.work").values()) == {1}
    assert files_of(out) == files_of(whole)


def test_a_world_that_lacks_a_question_is_told_before_anything_is_made(
    trm: Trm, small: Path, tmp_path: Path
) -> None:
    """The simulator knows its own questions only: named, with what to do, and no traceback."""
    world = tmp_path / "world.json"
    planted = json.loads((DEMO / "world.json").read_text(encoding="utf-8"))
    planted["questions"] = planted["questions"][1:]
    world.write_text(json.dumps(planted), encoding="utf-8")
    told = trm(*scratch(tmp_path / "seed", small), "--set", f"twin.world={world}", expect=2)
    assert "twin.world" in told.err
    assert "name endpoints of your own" in told.err
    assert "Traceback" not in told.err
    assert not (tmp_path / "seed").exists()
    assert not (tmp_path / "seed.work").exists()


def test_a_finished_seed_of_another_agent_is_refused_before_the_pass(
    trm: Trm, small: Path, whole: Path, tmp_path: Path
) -> None:
    """A pass costs money: what it could not be used for is told first."""
    before = files_of(whole)
    work = tmp_path / "work"
    told = trm(
        *scratch(whole, small),
        "--work",
        work,
        "--set",
        "llm.search.temperature=0.1",
        expect=2,
    )
    assert "is a finished seed with other agent" in told.err
    assert files_of(whole) == before
    assert not work.exists()
