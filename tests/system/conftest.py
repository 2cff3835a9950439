"""One undisturbed small run, made once: what all the disturbed ones are held against."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.runs import SMALL, result_of, run_to_end, settings


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of a small run that nothing happened to."""
    workspace = tmp_path_factory.mktemp("undisturbed") / "run"
    run_to_end(*settings(SMALL), "--workspace", str(workspace))
    return workspace


@pytest.fixture(scope="session")
def undisturbed_result(undisturbed: Path) -> dict[str, object]:
    """What it left behind."""
    return result_of(undisturbed)
