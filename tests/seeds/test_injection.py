"""The injected videos are trees like any other."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from tests.seeds.committed import DEMO, Tree, trees
from tests.seeds.injection import INJECTION, plant_injection


def test_an_injected_video_says_it_in_every_node(tmp_path: Path) -> None:
    """And is otherwise what it was; the others are not touched."""
    folder = tmp_path / "trees"
    shutil.copytree(DEMO / "trees", folder)
    name, other = sorted(trees())[:2]
    assert plant_injection(folder, [name]) == len(trees()[name].nodes)
    planted = msgspec.json.decode((folder / f"{name}.json").read_bytes(), type=Tree)
    for node_id, node in trees()[name].nodes.items():
        assert planted.nodes[node_id].subtitle == f"{node.subtitle}\n{INJECTION}".strip()
        assert planted.nodes[node_id].card == node.card
    assert (folder / f"{other}.json").read_bytes() == (DEMO / f"trees/{other}.json").read_bytes()
    with pytest.raises(FileNotFoundError):
        plant_injection(folder, ["nothing"])
