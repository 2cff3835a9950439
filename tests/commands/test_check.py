"""``bin/train --check``: everything that a run needs, as lines, and nothing is written."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from actors.commands.check import check
from actors.commands.check_place import Machine
from actors.config import ROOT
from actors.main import build_parser
from tests.commands.check_house import good, refusal, served, thinking, written
from tests.commands.house import Trm
from tests.llm.server import answer
from tests.system.asking import nobody

DEMO = ROOT / "seeds" / "demo"
SMALL = ("--set", "data.trainable_min_units=30")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No shared cache; logging is left as it was."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    yield
    structlog.reset_defaults()


def parsed(*arguments: str | Path) -> argparse.Namespace:
    return build_parser("train").parse_args(["train", "--check", *map(str, arguments)])


def marks(out: str, name: str) -> list[str]:
    """The lines of that name, marks and all."""
    return [line for line in out.splitlines() if line[3:].startswith(f"{name} ")]


def contents(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def test_the_demo_is_ready(trm: Trm, tmp_path: Path) -> None:
    """Every part has its line, in plain ASCII where nobody looks; the workspace is not made."""
    target = tmp_path / "run"
    before = contents(ROOT / "config"), contents(DEMO)
    out = trm("train", "--check", *SMALL, "--workspace", target).out
    assert out.isascii()
    assert "X " not in [line[:2] for line in out.splitlines()]
    for name in ("config", "data", "seed", "pools", "trees", "world", "workspace", "cache",
                 "files", "search", "judge", "evolve", "clock", "disk", "gains"):  # fmt: skip
        assert marks(out, name), name
    (data,) = marks(out, "data")
    assert data == "ok data       questions.jsonl: 360 questions, 120 videos, 8 classes"
    assert "data.trainable_min_units=30" in marks(out, "config")[0]
    assert "Before spending: 360 questions" in out
    assert "3 epochs" in marks(out, "expected")[0]
    assert out.splitlines()[-1].startswith("Ready, ")
    assert list(tmp_path.iterdir()) == []
    assert (contents(ROOT / "config"), contents(DEMO)) == before


def test_json(trm: Trm) -> None:
    """One object; the same lines."""
    told = json.loads(trm("train", "--check", "--json", *SMALL).out)
    assert told["ready"] is True
    assert {line["mark"] for line in told["lines"]} == {"ok", "warning"}
    assert told["gains"]["val"]["n_questions"] == 45  # of the two classes that train
    assert told["preview"]["estimate"]["all_rollouts"]["expected"] > 100


def test_check_is_a_command_too(trm: Trm) -> None:
    """``trm check`` looks at what ``train --check`` looks at, in the same order."""
    as_option = json.loads(trm("train", "--check", "--json", *SMALL).out)
    as_command = json.loads(trm("check", "--json", *SMALL).out)
    names = [[line["name"] for line in told["lines"]] for told in (as_option, as_command)]
    assert names[0] == names[1]
    rollouts = [told["preview"]["estimate"]["all_rollouts"] for told in (as_option, as_command)]
    assert rollouts[0] == rollouts[1]
    assert trm("check", "--set", "trainer.epoch=1", expect=2).out.startswith("X  config ")


def test_endpoints_that_can_do_everything(trm: Trm, tmp_path: Path) -> None:
    """A call per role, the agent's twice; one for the form, one with a picture; and money."""
    price = {"usd_per_m_prompt": 1.0, "usd_per_m_completion": 2.0}
    with served() as server:
        config = written(
            tmp_path,
            {"base_url": server.url, **price},
            agent={"vision": "inline"},
            limits={"max_calls": 10},
        )
        out = trm("train", config, "--check").out
    assert len(server.asked) == 6
    assert len(marks(out, "search")) == 1  # the second only says how long a call takes
    for name in ("search", "judge", "evolve", "json", "vision"):
        assert marks(out, name)[0].startswith("ok ")
    assert "context 65536: enough" in marks(out, "endpoint")[0]
    assert "2000 + 50 tokens" in marks(out, "search")[0]
    assert "by another agent" in marks(out, "seed")[0]
    assert any("$" in line for line in marks(out, "expected"))
    assert "limits.max_calls 10 is below" in marks(out, "limits")[0]
    assert "120 videos have no frames" in out


def test_native_calls_and_a_describing_model(trm: Trm, tmp_path: Path) -> None:
    """The abilities that the configuration asks for, each of the endpoint that has the role."""
    with served() as server, served(lambda _: answer("It is green.")) as blind:
        config = written(
            tmp_path,
            {"base_url": server.url, "json_output": "none"},
            {"base_url": blind.url, "roles": ["vision"]},
            agent={"vision": "describe", "tool_calls": "native"},
        )
        out = trm("train", config, "--check", expect=2).out
    assert marks(out, "search")[0].startswith("!  search")  # no usage was reported
    assert not marks(out, "json")
    assert "picture and said 'It is green.'" in marks(out, "vision")[0]
    assert len(blind.asked) == 1


def test_all_that_is_wrong_with_endpoints(trm: Trm, tmp_path: Path) -> None:
    """Each is told by itself, with its own remedy; none hides another."""

    def no_model(body: object) -> bytes:
        return refusal("404 Not Found", "The model `m` does not exist.")

    def prose(body: dict[str, object]) -> bytes:
        return answer("I would say blue, and eight legs.")

    with (
        nobody() as down,
        served(no_model, [{"id": "org/M-7b"}, {"id": "other"}]) as wrong,
        served() as deeper,
        served(prose) as free,  # type: ignore[arg-type]  # any mapping does
        served(thinking) as thinker,
        served(models=[{"id": "m", "max_model_len": 8192}]) as short,
    ):
        config = written(
            tmp_path,
            {"name": "down", "base_url": down},
            {"name": "wrong", "base_url": wrong.url, "model": "m-7b", "roles": ["search"]},
            {"name": "deeper", "base_url": deeper.root, "roles": ["judge"]},
            {"name": "free", "base_url": free.url, "roles": ["judge"]},
            {"name": "thinker", "base_url": thinker.url, "roles": ["evolve"]},
            {"name": "short", "base_url": short.url, "roles": ["search"]},
            {"name": "keyless", "base_url": down, "api_key_env": "A_KEY_THAT_IS_NOT_SET"},
        )
        out = trm("train", config, "--check", expect=2).out
    about = {
        name: [
            line
            for line in out.splitlines()
            if f" {name}" in line[:40] and line[:2] in ("X ", "! ")
        ]
        for name in ("down", "wrong", "deeper", "free", "thinker", "short")
    }
    assert (
        f"no server answers at {down} (GET {down}/models: Connection refused)" in about["down"][0]
    )
    assert "nothing listens there: start the server at 127.0.0.1:" in about["down"][0]
    assert "mend base_url of down in llm.endpoints" in about["down"][0]
    assert f"no chat: POST {down}/chat/completions: Connection refused" in about["down"][1]
    assert "(4 more calls were not tried)" in about["down"][1]
    assert "Errno" not in out
    assert "did you mean org/M-7b?" in about["wrong"][0]
    assert f"set its base_url to {deeper.url}" in about["deeper"][0]
    assert f"is it {deeper.url}?" in about["deeper"][1]
    assert "not held to it" in about["free"][1]
    assert "set json_output of free to object" in about["free"][1]
    assert "enable_thinking: false" in about["thinker"][0]
    assert "the agent may ask for 31024 tokens" in about["short"][0]
    assert "set agent.max_prompt_tokens to 7000" in about["short"][0]
    assert "export A_KEY_THAT_IS_NOT_SET=..." in out
    assert "Traceback" not in out
    assert len(marks(out, "expected")) >= 3  # the preview is made all the same


def test_several_problems_are_all_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Broken trees, a full disk, a dead Redis, a target that is there: each has its line."""
    trees = tmp_path / "trees"
    shutil.copytree(DEMO / "trees", trees)
    (trees / "-9c-3scwVgU.json").write_text("{}", encoding="utf-8")
    (trees / "-G7a8E6WzT2.json").unlink()
    with nobody() as dead:
        place = dead.removeprefix("http://").removesuffix("/v1")
        machine = Machine(free=lambda _: 1_000_000, environ={"REDIS_URL": f"redis://u:pw@{place}"})
        hidden = ("--set", "cache.redis_url=redis://u:pw@h/0", "--set", f"data.trees={trees}")
        arguments = parsed(*SMALL, *hidden, "--workspace", tmp_path)
        code = check(arguments, machine)
    out = capsys.readouterr().out
    assert code == 2
    assert [line[:2] for line in marks(out, "trees")] == ["X ", "X "]
    assert marks(out, "disk")[0].startswith("X  disk       1 MB free")
    assert "pw@" not in out
    assert "cache.redis_url=redis://***@h/0" in out
    assert f"Redis at {place} does not answer" in marks(out, "cache")[0]
    assert marks(out, "cache")[0].startswith("! ")  # a dead Redis costs misses, never the run
    assert marks(out, "workspace")[0].startswith("X ")
    assert "4 things would stop the run" in out


def test_a_seed_that_is_not_there(trm: Trm, tmp_path: Path) -> None:
    """Endpoints are asked all the same; not the simulator, which knows a run's prompts alone."""
    with served(good) as server:
        config = written(
            tmp_path,
            {"base_url": server.url, "roles": ["search", "judge"]},
            {"base_url": "twin", "model": "twin-editor", "roles": ["evolve"]},
            data={"seed": "nowhere", "questions": "none.jsonl"},
        )
        out = trm("train", config, "--check", expect=2).out
    assert marks(out, "seed")[0].startswith("X  seed       data.seed") or "nowhere" in out
    assert marks(out, "data")[0].startswith("X ")
    assert marks(out, "search")[0].startswith("ok search     e1 (m): first token")
    assert "the simulator is not asked" in out
    assert "unknown: the data cannot be read" in marks(out, "expected")[0]


def test_a_configuration_that_cannot_be_read(trm: Trm, tmp_path: Path) -> None:
    """All its problems are lines."""
    path = tmp_path / "my.yaml"
    path.write_text("llm: {concurency: 3}\nagent: {max_step: 2}\n", encoding="utf-8")
    out = trm("train", path, "--check", expect=2).out
    assert len(marks(out, "config")) == 2
    assert "did you mean 'llm.concurrency'" in marks(out, "config")[0]
    assert "no such file" in trm("train", tmp_path / "no.yaml", "--check", expect=2).out
    assert "--aa without it" in trm("train", "--check", "--aa", "3", expect=2).out


def test_a_workspace_that_would_go_on(trm: Trm, tmp_path: Path) -> None:
    """Its settings are held against those that it was begun with; it is left as it is."""
    from actors.launch import fresh

    workspace = tmp_path / "run"
    fresh(None, ["data.trainable_min_units=30"], workspace).lock.release()
    before = contents(workspace)
    out = trm("train", "--check", "--resume", workspace).out
    assert "run: whole epochs: 0" in marks(out, "resume")[0]
    assert "nobody runs on it" in marks(out, "workspace")[0]
    out = trm("train", "--check", "--resume", workspace, "--set", "run.seed=5", expect=2).out
    assert "--accept-change run.seed" in marks(out, "resume")[0]
    assert contents(workspace) == before
    assert "is no workspace" in trm("train", "--check", "--resume", tmp_path, expect=2).out
    assert os.listdir(tmp_path) == ["run"]  # noqa: PTH208  # names only


def test_on_a_terminal(trm: Trm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks and colours where somebody looks; words where colour is not wanted."""
    monkeypatch.setattr("actors.commands.check.on_terminal", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = trm("train", tmp_path / "no.yaml", "--check", expect=2).out
    assert "✗" in out
    assert "\x1b[" in out
    monkeypatch.setenv("NO_COLOR", "1")
    out = trm("train", tmp_path / "no.yaml", "--check", expect=2).out
    assert out.isascii()
    assert "\x1b[" not in out


def test_nowhere_to_put_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even that is a line."""

    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("actors.commands.check.TemporaryDirectory", full)
    assert check(parsed(*SMALL, "--workspace", tmp_path / "run")) == 2
    assert "none could be asked: [Errno 28] No space left" in capsys.readouterr().out


def test_a_simulator_that_does_not_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its roles say so; the preview is made all the same."""

    async def died(*_: object, **__: object) -> None:
        raise RuntimeError("no simulator today")

    monkeypatch.setattr("actors.twin.actor.start_twin", died)
    assert check(parsed(*SMALL, "--workspace", tmp_path / "run")) == 2
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if "no simulator today" in line]) == 3
    assert "typical tokens per call, not measured" in out


def test_the_factorial_design_is_checked_as_such(trm: Trm) -> None:
    """Its schedule stands in the ladder's place; a budget that makes none is a line, no crash."""
    design = ("--set", "gate.design=factorial", "--set", "trainer.slow_update=false")
    out = trm("train", "--check", *design, "--set", "gate.budget=1200").out
    assert "gate.design: factorial" in out
    assert marks(out, "schedule")[0].startswith("ok ")
    short = trm("train", "--check", *design, "--set", "gate.budget=3", expect=2).out
    assert marks(short, "schedule")[0].startswith("X ")
