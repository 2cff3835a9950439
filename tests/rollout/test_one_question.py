"""P0-4: what befalls one question costs that question its outcome, and no other anything.

Through the real actors: rollout, video and ledger, real files, a real database. In every test
three healthy questions are answered beside the one that is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from protocol.llm import ChatFailed
from protocol.rollout import Answered, Missed
from tests.rollout.house import House, Says, jpeg, living, write_tree
from tests.rollout.script import call, settings, submit

pytestmark = pytest.mark.anyio

HEALTHY = ("-a", "b", "_c")
SICK = "sick"
AGENT = settings(vision="inline", max_steps=8)


def plan(video_id: str) -> list[Says]:
    """Search, open, listen, look, answer rightly."""
    return [
        call("search_similar", {"query": "bowl"}),
        call("view_node", {"node_id": f"{video_id}_L2_000"}),
        call("search_subtitles", {"query": "knead"}),
        call("observe_frame", {"node_ids": [f"{video_id}_L3_000"], "question": "What colour?"}),
        submit("B"),
    ]


async def _answered(
    folder: Path, sick_plan: Sequence[Says] | None = None
) -> tuple[Answered | Missed, House]:
    """Answer all four; hold the healthy ones to what they must be; hand out the sick one's."""
    for video_id in HEALTHY:
        write_tree(folder / "trees", video_id, picture=jpeg())
    plans = {video_id: plan(video_id) for video_id in (*HEALTHY, SICK)}
    plans[SICK] = list(sick_plan or plans[SICK])
    async with living(folder, AGENT, plans) as house:
        results = await house.answer(*HEALTHY, SICK)
    for video_id in HEALTHY:
        result = results[video_id]
        assert isinstance(result, Answered)
        assert (result.letter, result.stop, result.n_steps) == ("B", "submitted", 5)
        assert house.outcomes[video_id].outcome == "right"
        assert not any(row.flags != "[]" for row in house.traces(video_id))
        assert len(house.traces(video_id)) == 5
    assert set(house.outcomes) == {*HEALTHY, SICK}
    return results[SICK], house


async def test_P0_4_a_corrupted_frame_is_one_question_missing(tmp_path: Path) -> None:
    """P0-4: a key frame whose bytes are no picture."""
    write_tree(tmp_path / "trees", SICK, picture=jpeg()[:60] + b"\0" * 60)
    result, house = await _answered(tmp_path)
    assert isinstance(result, Missed)
    assert result.kind == "tree"
    assert "L3_000.jpg" in result.detail
    row = house.outcomes[SICK]
    assert (row.outcome, row.missing_kind, row.stop, row.letter) == (
        "missing",
        "tree",
        "missing",
        None,
    )
    assert [trace.tool for trace in house.traces(SICK)] == [
        "search_similar",
        "view_node",
        "search_subtitles",
    ]


@pytest.mark.parametrize("damage", ["gone", "cut", "empty"])
async def test_P0_4_a_missing_tree_is_one_question_missing(tmp_path: Path, damage: str) -> None:
    """P0-4: no file, half a file, an empty one."""
    if damage != "gone":
        write_tree(tmp_path / "trees", SICK, picture=jpeg())
        path = tmp_path / "trees" / SICK / "tree.json"
        path.write_bytes(path.read_bytes()[:200] if damage == "cut" else b"")
    result, house = await _answered(tmp_path)
    assert isinstance(result, Missed)
    assert result.kind == "tree"
    assert result.lasting
    row = house.outcomes[SICK]
    assert (row.outcome, row.missing_kind, row.n_steps) == ("missing", "tree", 0)
    assert SICK in row.detail


async def test_P0_4_a_tree_without_subtitles_is_answered_without(tmp_path: Path) -> None:
    """P0-4: the search says so, as text; the question has its answer."""
    write_tree(tmp_path / "trees", SICK, subtitles=False, picture=jpeg())
    result, house = await _answered(tmp_path)
    assert isinstance(result, Answered)
    assert result.right
    listened = house.traces(SICK)[2]
    assert (listened.tool, listened.flags) == ("search_subtitles", '["refused"]')
    assert "no subtitles" in listened.observation
    assert house.outcomes[SICK].bad_calls == 1


@pytest.mark.parametrize(
    "answer",
    [["B", {"and": ["C"]}], {"options": {"first": "A"}}, [["A", "B"]], 2, True, 10**400],
    ids=["list", "object", "nested", "number", "boolean", "huge"],
)
async def test_P0_4_an_answer_that_is_no_text_is_one_question_wrong(
    tmp_path: Path, answer: object
) -> None:
    """P0-4: told once, then stored as text and scored as no answer."""
    write_tree(tmp_path / "trees", SICK, picture=jpeg())
    result, house = await _answered(tmp_path, [submit(answer)])
    assert isinstance(result, Answered)
    assert (result.right, result.letter) == (False, None)
    row = house.outcomes[SICK]
    assert row.outcome == "wrong"
    assert (row.stop, bool(row.submitted)) == ("no_answer", True)
    assert "has no valid letter" in house.traces(SICK)[0].observation


async def test_P0_4_an_endpoint_that_refuses_one_request_is_one_question_missing(
    tmp_path: Path,
) -> None:
    """P0-4: with the client's own word for it."""
    write_tree(tmp_path / "trees", SICK, picture=jpeg())
    refused = ChatFailed(kind="bad_request", fatal=True, detail="HTTP 400: no")
    result, house = await _answered(tmp_path, [plan(SICK)[0], refused])
    assert isinstance(result, Missed)
    assert (result.kind, house.outcomes[SICK].missing_kind) == ("bad_request", "bad_request")
    assert len(house.traces(SICK)) == 1


async def test_pictures_are_described_by_the_vision_role(tmp_path: Path) -> None:
    """``describe``: the vision role gets picture and question, the agent gets words."""
    write_tree(tmp_path / "trees", SICK, picture=jpeg())
    agent = settings(vision="describe", max_steps=8)
    async with living(tmp_path, agent, {SICK: plan(SICK)}) as house:
        results = await house.answer(SICK)
    result = results[SICK]
    assert isinstance(result, Answered)
    assert result.right
    (seen,) = [chat for chat in house.asked if chat.role == "vision"]
    parts = seen.messages[0].content
    assert [type(part).__name__ for part in parts] == ["TextPart", "TextPart", "ImagePart"]
    text = str(parts[0])
    assert "What colour?" in text
    assert "{{" not in text
    assert seen.cache_salt == "seed1/e1"
    look = house.traces(SICK)[3]
    assert look.observation.endswith("What is seen:\nA navy blue surface.")
    assert (look.prompt_tokens, look.completion_tokens) == (200, 20)
    assert all(
        isinstance(message.content, str)
        for chat in house.asked
        if chat.role == "search"
        for message in chat.messages
    )


async def test_a_question_answered_again_keeps_nothing_of_the_former_try(tmp_path: Path) -> None:
    """One row per pass and question, the steps of the last try and no others."""
    write_tree(tmp_path / "trees", SICK, picture=jpeg())
    async with living(tmp_path, AGENT, {SICK: plan(SICK)}) as house:
        await house.answer(SICK)
    async with living(tmp_path, AGENT, {SICK: [submit("C")]}) as house:
        await house.answer(SICK)
        await house.answer(SICK, run_key="another")
    assert len(house.traces(SICK)) == 2
    assert house.outcomes[SICK].letter == "C"
