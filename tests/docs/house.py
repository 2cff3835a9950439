"""A checkout in a folder of its own with all that the documents' commands name, made small.

The program is a copy, so that its workspaces lie in there; its demo has a third of the videos;
``my.yaml`` names an endpoint on loopback. Commands are run by bash, as they are typed.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import yaml

from actors.dataset.questions import load_dataset
from actors.places import ROOT
from tests.docs import forks
from tests.support.harness_db import made_up_rows, write_harness
from tests.support.question_files import write_official
from tests.video.builder.movies import movie

__all__ = ["Done", "House", "opened"]

N_VIDEOS = 40
SPLIT = {"n_trainval": 28, "n_test": 12, "val_wrong_min": 8}
SHORT = {"epochs": 1}
PROGRAMS = ("bin/train", "bin/trm", "path/trm", "path/python")
_OWN = ("actors", "prompts", "protocol", "config", "pyproject.toml")
_LIMIT_S = 60.0
_SRT = "1\n00:00:01,000 --> 00:00:03,500\nRed it is.\n"


class Done:
    """How a command line ended. code: None where it did not."""

    def __init__(self, code: int | None, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class House:
    """folder: where the commands are typed. url: of its endpoint, to be set before ``tidy``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self._address = str(folder / "path" / "forks")

    @property
    def questions(self) -> Path:
        """Of its demo."""
        return self.folder / "seeds" / "demo" / "questions.jsonl"

    @property
    def world(self) -> Path:
        """The planted truth of its demo."""
        return self.folder / "seeds" / "demo" / "world.json"

    def run(self, script: str) -> Done:
        """What a reader gets who types this."""
        with self.begin(script) as process:
            try:
                out, err = process.communicate(timeout=_LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return Done(None, *process.communicate())
        return Done(process.returncode, out, err)

    def first_line(self, script: str) -> str:
        """What a reader sees first of something that does not end by itself, on a terminal."""
        ours, theirs = os.openpty()
        with (
            self.begin(script, stdout=theirs) as process,
            os.fdopen(ours, encoding="utf-8") as terminal,
        ):
            os.close(theirs)
            ready, _, _ = select.select([terminal], [], [], _LIMIT_S)
            line = terminal.readline() if ready else ""
            os.killpg(process.pid, signal.SIGKILL)
        return line

    def begin(self, script: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start a command line; it is the caller's."""
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _environment(self) -> Mapping[str, str]:
        own = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
        return own | {
            "PATH": f"{self.folder / 'path'}{os.pathsep}{own['PATH']}",
            "PYTHONPATH": str(self.folder),
            "STRONG_API_KEY": "a-key",
        }

    def tidy(self) -> None:
        """What the documents take for granted, as at first; what other commands made is gone."""
        for path in self._made_by_commands():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        _write_files(self)

    def _made_by_commands(self) -> list[Path]:
        kept = {*_OWN, "bin", "path", "seeds", "tests", "docs", "requirements"}
        kept |= {"workspaces", "WORKSPACE", "DIR"}
        found = [path for path in self.folder.iterdir() if path.name not in kept]
        return found + [path for path in (self.folder / "seeds").iterdir() if path.name != "demo"]

    @contextmanager
    def open(self) -> Iterator[None]:
        """Let commands be typed."""
        with subprocess.Popen(
            [sys.executable, forks.__file__, self._address],
            env={**self._environment(), "PYTHONWARNINGS": "error"},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == "ready\n"
                yield
            finally:
                os.killpg(server.pid, signal.SIGKILL)


@contextmanager
def opened(folder: Path) -> Iterator[House]:
    """Lay a house out in a new folder, with a demo of its own, and let commands be typed."""
    house = House(folder)
    leave = shutil.ignore_patterns("__pycache__")
    for name in _OWN:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=leave)
        else:
            shutil.copy(source, folder / name)
    for name in ("tests", "docs", "requirements"):
        (folder / name).symlink_to(ROOT / name)
    for program in PROGRAMS:
        path = folder / program
        path.parent.mkdir(exist_ok=True)
        text = forks.LAUNCHER.format(python=sys.executable, address=str(folder / "path" / "forks"))
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    (folder / "WORKSPACE").symlink_to("workspaces/my-001")
    with house.open():
        _make_demo(house)
        yield house


def _make_demo(house: House) -> None:
    """The demo's first videos with the demo's own answers, split anew."""
    demo, ours = ROOT / "seeds" / "demo", house.folder / "seeds" / "demo"
    lines = (demo / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ids = {line: str(json.loads(line)["question_id"]) for line in lines}
    kept = [line for line, name in ids.items() if int(name.split("-")[1]) <= N_VIDEOS]
    questions = house.folder / "questions.jsonl"
    questions.write_text("\n".join(kept) + "\n", encoding="utf-8")
    ours.parent.mkdir()
    split = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in SPLIT.items())
    done = house.run(
        f"bin/trm seed seeds/demo --from-db {demo}/baseline.db --questions questions.jsonl {split}"
        f" --skills {demo}/skills/v1 --prompts {demo}/prompts/v1"
    )
    assert done.code == 0, done.err
    questions.rename(house.questions)
    world = json.loads((demo / "world.json").read_text(encoding="utf-8"))
    names = {ids[line] for line in kept}
    world["questions"] = [one for one in world["questions"] if one["question_id"] in names]
    _write_json(house.world, world)
    (ours / "trees").symlink_to(demo / "trees")


def _write_files(house: House) -> None:
    """Everything that a reader would have before typing the first command."""
    folder = house.folder
    demo = folder / "seeds" / "demo"
    config = folder / "config"
    short = {"split": SPLIT, "trainer": SHORT}
    knobs = (ROOT / "config" / "default.yaml").read_text(encoding="utf-8")
    for name, value in SPLIT.items():  # what commands without a configuration split by
        knobs = re.sub(rf"^  {name}: \d+", f"  {name}: {value}", knobs, flags=re.MULTILINE)
    (config / "default.yaml").write_text(knobs, encoding="utf-8")
    _write_yaml(config / "demo.yaml", {"run": {"name": "demo"}, **short})
    ours = yaml.safe_load((ROOT / "config" / "train_videomme.yaml").read_text(encoding="utf-8"))
    for endpoint in ours["llm"]["endpoints"]:
        endpoint["base_url"] = house.url
    _write_yaml(config / "train_videomme.yaml", {**ours, **short})
    _write_yaml(folder / "my.yaml", {**_my_config(house.url), **short})

    shutil.copytree(demo / "skills" / "v1", folder / "my" / "skills")
    shutil.copytree(demo / "prompts" / "v1", folder / "my" / "prompts")
    shutil.copy(house.questions, folder / "my" / "questions.jsonl")
    loaded = load_dataset(house.questions, None, duration=None).questions
    videomme = folder / "data" / "videomme"
    (videomme / "trees").mkdir(parents=True)
    for tree in (demo / "trees").iterdir():
        (videomme / "trees" / tree.name).symlink_to(tree)
    long = [msgspec.structs.replace(question, duration="long") for question in loaded]
    write_official(videomme, long).rename(videomme / "questions.json")
    shutil.copy(videomme / "questions.json", folder / "q.json")
    write_harness(folder / "harness.db", made_up_rows(loaded))

    movie(folder / "video.mp4", 8)
    (folder / "video.srt").write_text(_SRT, encoding="utf-8")
    for name, source in (("videos/one.mp4", "video.mp4"), ("subtitles/one.srt", "video.srt")):
        (folder / name).parent.mkdir()
        shutil.copy(folder / source, folder / name)

    skill = (demo / "skills" / "v1" / "counting-problem.md").read_bytes()
    (folder / "counting.md").write_bytes(skill)
    edit = {"op": "append", "content": "- Count every ship twice before you answer."}
    _write_json(folder / "edits.json", [edit])
    _write_json(folder / "tested.json", [{"id": "e1", "W": 9, "L": 1}])
    case = {"text": "B.", "options": ["a", "b", "c", "d"]}
    (folder / "cases.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")


def _my_config(url: str) -> dict[str, object]:
    """The README's, with the loopback's address."""
    strong = {"name": "strong", "model": "big", "api_key_env": "STRONG_API_KEY"}
    agent = {"model": "Qwen3-32B", "base_url": url}
    return {
        "run": {"name": "my"},
        "llm": {
            "endpoints": [
                {**agent, "name": "agent-a", "roles": ["search", "vision"]},
                {**agent, "name": "agent-b", "roles": ["search"]},
                {**strong, "base_url": url, "roles": ["judge", "evolve"]},
            ],
            "concurrency": 64,
        },
        "limits": {"max_tokens": 40000000},
    }


def _write_yaml(path: Path, tree: object) -> None:
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")


def _write_json(path: Path, tree: object) -> None:
    path.write_text(json.dumps(tree), encoding="utf-8")
