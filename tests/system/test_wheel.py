"""The package: built from the source archive, installed, and run outside the checkout."""

from __future__ import annotations

import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from actors.places import ROOT, version
from tests.system.runs import settings

pytestmark = pytest.mark.system

ONE_STEP = (
    "data.trainable_min_units=36",  # one class is left
    "trainer.epochs=1",
    "trainer.max_batches=1",
    "trainer.run_holdout_eval=false",
    "trainer.slow_update=false",
    "runtime.backoff_s=0.01",
)


def run(*command: str | Path, cwd: Path, expect: int = 0) -> str:
    """Run with an empty environment; returns stdout and stderr."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"{done.stdout}{done.stderr}"
    assert done.returncode == expect, f"exit {done.returncode}\n{said}"
    return said


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of what the source archive holds, and of nothing else."""
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "hatchling", "build", "--directory", folder, "--target")
    run(*build, "sdist", cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    assert (unpacked / "tests" / "conftest.py").is_file(), "an archive that can be tested"
    assert (unpacked / "bin" / "_env.sh").is_file()
    run(*build, "wheel", cwd=unpacked)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def trm(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``trm`` in an environment of its own, which borrows the dependencies of the tests."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    uv = shutil.which("uv")
    tool = (
        (sys.executable, "-m", "pip", "--python", python, "install", "--no-index")
        if uv is None
        else (uv, "pip", "install", "--offline", "--no-cache", "--python", python)
    )
    run(*tool, "--no-deps", wheel, cwd=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    return folder / "bin" / "trm"


def test_what_is_in_the_wheel(wheel: Path) -> None:
    """Code, prompts, configurations, the demo's seed; no test, nothing else at the top."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"actors", "prompts", "protocol", f"video_tree_trm-{version()}.dist-info"}
    assert {f"prompts/{path.name}" for path in (ROOT / "prompts").glob("*.md")} <= set(names)
    carried = [name.partition("share/")[2] for name in names if name.startswith("actors/share/")]
    here = [
        path.relative_to(ROOT).as_posix()
        for folder in ("config", "seeds/demo")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]
    assert sorted(carried) == sorted(here)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_demo_trains_outside_the_checkout(trm: Path, tmp_path: Path) -> None:
    """No environment, no checkout: what is written goes here, and nothing into the package."""
    assert run(trm, "--version", cwd=tmp_path).startswith(f"trm {version()} (Python ")
    said = run(trm, "train", *settings(ONE_STEP), cwd=tmp_path)
    assert "Training ended after 1 epochs" in said
    assert f"{trm} train --resume workspaces/demo-001" in said, "a line to be pasted"
    assert "bin/train " not in said.replace(str(trm.parent), "")
    assert [path.name for path in tmp_path.iterdir()] == ["workspaces"]

    status = run(trm, "status", "workspaces/demo-001", cwd=tmp_path)
    assert "workspace, consistent" in status
    assert "would go on" in status

    (packages,) = trm.parents[1].glob("lib/python*/site-packages")
    listed = next(packages.glob("video_tree_trm-*.dist-info")) / "RECORD"
    known = {line.partition(",")[0] for line in listed.read_text(encoding="utf-8").splitlines()}
    found = {
        path.relative_to(packages).as_posix()
        for path in packages.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and path.name != "borrowed.pth"
    }
    assert found <= known, "the package was written to"


def test_usage_and_errors_say_trm(trm: Path, tmp_path: Path) -> None:
    """Every command names itself as it is called here, and says what there is to look at."""
    assert "usage: trm gate" in run(trm, "gate", cwd=tmp_path, expect=2)
    assert "usage: trm train" in run(trm, "train", "--help", cwd=tmp_path)
    told = run(trm, "train", "mine.yaml", cwd=tmp_path, expect=2)
    assert told.startswith("trm train: mine.yaml: no such file")
    assert "start one with trm train" in run(trm, "train", "--resume", cwd=tmp_path, expect=2)
    told = run(trm, "train", "config/train_videomme.yaml", cwd=tmp_path, expect=2)
    assert "data.questions: data/videomme/questions.json: no such file" in told
    assert not list(tmp_path.iterdir())
