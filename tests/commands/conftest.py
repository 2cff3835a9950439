"""Commands in this process, and a workspace to look at."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from tests.commands.house import Made, Trm, make_history


@pytest.fixture
def trm(capsys: pytest.CaptureFixture[str]) -> Trm:
    """``bin/trm``."""
    return Trm(capsys)


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A workspace with a history, made once; not to be changed."""
    return make_history(tmp_path_factory.mktemp("history"))


@pytest.fixture
def made(history: Made, tmp_path: Path) -> Made:
    """A copy of it and of what lies beside it, to be changed."""
    shutil.copytree(history.path.parent, tmp_path, dirs_exist_ok=True)
    return msgspec.structs.replace(history, path=tmp_path / "run")
