"""Which snapshot of a skill: its first, a later one, or one that serves a single test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.baseline.test_actor import N_UNITS, SEED_SKILL, House

pytestmark = pytest.mark.anyio


async def test_a_later_snapshot_is_drawn_afresh(tmp_path: Path) -> None:
    """Another generation, or one that serves a single test: other salts, none of the old draws.

    The seed's predictions never begin one, also those of the seed's own skill.
    """
    house = House(tmp_path)
    await house.start()
    first = await house.get(skill=SEED_SKILL)
    assert (first.drawn, first.seed_draw) == (0, True)
    next_one = await house.get(skill=SEED_SKILL, generation=1)
    served = await house.get(skill=SEED_SKILL, confirms="e2/counting-problem/s3")
    assert [(ready.drawn, ready.seed_draw) for ready in (next_one, served)] == [
        (N_UNITS, False)
    ] * 2
    assert [(r.run_key, r.salt) for r in house.rollouts()[::N_UNITS]] == [
        (f"baseline/counting-problem/{SEED_SKILL.hash[:16]}/v1/{where}", f"seed7/baseline/{where}")
        for where in ("g1/d0", "confirm/e2/counting-problem/s3/d0")
    ]
    assert len(house.rows) == 3 * N_UNITS
    assert {row.source for row in house.rows.values() if row.generation or row.confirms} == {
        "rollout"
    }
    again = await house.get(skill=SEED_SKILL, generation=1)
    assert (again.draws, again.drawn) == (next_one.draws, 0)
    assert (await house.get(skill=SEED_SKILL)).draws == first.draws


async def test_a_draw_of_the_seed_is_told(tmp_path: Path) -> None:
    """``seed_draw``: some of the draws that were asked for are its own."""
    house = House(tmp_path)
    await house.start()
    assert (await house.get(skill=SEED_SKILL, n_draws=3)).seed_draw
    assert not (await house.get()).seed_draw
    assert {row.video_id for row in house.rows.values()} == {f"v{i}" for i in range(N_UNITS)}
