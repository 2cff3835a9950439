"""The undisturbed runs that the small ones are held against; made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.comparing import FACTORIAL, TINY, undisturbed

__all__ = ["Whole"]


class Whole:
    """A workspace that nothing happened to, and what it holds."""

    def __init__(self, workspace: Path, assignments: tuple[str, ...]) -> None:
        self.workspace = workspace
        self.result = undisturbed(workspace, assignments)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Of the settings TINY."""
    return Whole(tmp_path_factory.mktemp("chaos") / "whole", TINY)


@pytest.fixture(scope="session")
def factorial(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Of the settings FACTORIAL."""
    return Whole(tmp_path_factory.mktemp("chaos") / "factorial", FACTORIAL)
