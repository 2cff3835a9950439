"""A seed made of made-up parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspace.material import make_seed, write_parts


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """What a seed is made of."""
    folder = tmp_path / "parts"
    write_parts(folder)
    return folder


@pytest.fixture
def seed_dir(parts: Path, tmp_path: Path) -> Path:
    """A seed."""
    return make_seed(parts, tmp_path / "seeds" / "made-up").folder
