"""Every engine prompt: there, loaded by a room, and filled with what it asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import actors.diagnoser.actor
import actors.evolver.actor
import actors.rollout.actor
import actors.video.builder.cards
from prompts.templates import PROMPTS_DIR, load_templates
from protocol.base import Request
from tests.evolver.make import settings
from tests.support.fakes import FakeAddress

EVOLVE = ("evolve_skill", "evolve_system", "evolve_tool", "evolve_rank", "slow_momentum")
"""The five that a peer's trainer lacked, and went on without (rows P0-1, P0-6)."""

LOADED: dict[str, Sequence[str]] = {
    "evolver": actors.evolver.actor.TEMPLATES,
    "diagnoser": actors.diagnoser.actor.TEMPLATES,
    "rollout": actors.rollout.actor.TEMPLATES,
    "tree": tuple(actors.video.builder.cards.TEMPLATES.values()),
}
ACTORS = PROMPTS_DIR.parent / "actors"


@pytest.mark.parametrize("name", EVOLVE)
def test_p0_1_every_template_of_the_evolution_exists_and_is_loaded(name: str) -> None:
    """P0-1."""
    assert load_templates([name])[name].text.strip()
    assert name in LOADED["evolver"]


def test_p0_6_the_momentum_template_has_a_reader() -> None:
    """P0-6: it is loaded at the start, and the handler of the slow update fills it."""
    assert "slow_momentum" in LOADED["evolver"]
    source = (ACTORS / "evolver" / "actor.py").read_text(encoding="utf-8")
    assert '_templates["slow_momentum"]' in source


def test_p0_1_every_file_is_loaded_and_every_loaded_name_is_a_file() -> None:
    """P0-1: no template without a consumer, no name without a template."""
    loaded = [name for names in LOADED.values() for name in names]
    assert len(loaded) == len(set(loaded))
    assert set(loaded) == {path.stem for path in PROMPTS_DIR.glob("*.md")}


def test_p0_1_every_template_that_the_evolver_loads_is_used() -> None:
    """P0-1: no field loaded that nothing reads: each name is looked up somewhere in the room."""
    files = sorted((ACTORS / "evolver").glob("*.py"))
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    used = re.sub(r"^TEMPLATES = \(.*?\)$", "", source, count=1, flags=re.MULTILINE | re.DOTALL)
    for name in LOADED["evolver"]:
        assert f'"{name}"' in used, name


@pytest.mark.parametrize("room", sorted(LOADED))
def test_p0_1_p0_6_a_room_names_every_missing_template_at_once(room: str, tmp_path: Path) -> None:
    """P0-1, P0-6: one error, before anything is done."""
    names = LOADED[room]
    with pytest.raises(FileNotFoundError) as error:
        load_templates(names, tmp_path)
    for name in names:
        assert f"{name}.md" in str(error.value)


def test_p0_1_the_evolver_does_not_start_without_its_templates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """P0-1: three epochs without an edit began with a template that was not there."""
    (tmp_path / "evolve_skill.md").write_text("x", encoding="utf-8")
    monkeypatch.setattr(
        actors.evolver.actor, "load_templates", lambda names: load_templates(names, tmp_path)
    )

    async def silent(_: Request[object]) -> object:
        raise AssertionError("nobody is asked")

    peer = FakeAddress("peer", silent)
    with pytest.raises(FileNotFoundError) as error:
        actors.evolver.actor.EvolverActor(settings(), peer, peer)
    assert "slow_momentum.md" in str(error.value)
    assert "evolve_system.md" in str(error.value)
    assert "evolve_skill.md" not in str(error.value)


@pytest.mark.parametrize("path", sorted(PROMPTS_DIR.glob("*.md")), ids=lambda path: path.stem)
def test_a_template_is_clean(path: Path) -> None:
    """Plain line ends, one at the end, balanced fences, no brace that looks like a placeholder."""
    text = path.read_text(encoding="utf-8")
    assert "\r" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert re.findall(r"<<<([A-Z]+)$", text, re.MULTILINE) == re.findall(
        r"^([A-Z]+)>>>", text, re.MULTILINE
    )
    placeholders = load_templates([path.stem])[path.stem].placeholders
    assert set(re.findall(r"\{\{(.*?)\}\}", text)) == placeholders
