"""Rollout, video and ledger as in a run, over real files; only the model is scripted.

A question's video decides what its agent does: ``plans`` maps a video to what is said in turn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import anyio
import msgspec
from PIL import Image

from actors.config import load_config
from actors.ledger.actor import LedgerActor
from actors.ledger.reader import open_reader
from actors.rollout.actor import RolloutActor
from actors.runtime.actor import Actor, handles
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from actors.video.actor import VideoActor
from protocol.dataset import Question
from protocol.llm import Chat, ChatAnswer, ChatFailed
from protocol.rollout import Answered, Missed
from protocol.rows import OutcomeRow, TraceRow
from protocol.settings import AgentSettings
from tests.rollout.script import QUESTION, reply, request
from tests.video.trees import VIDEO, sample

__all__ = ["House", "living", "question_of", "write_tree"]

Says = str | ChatAnswer | ChatFailed
_DEADLINE_S = 50.0


def write_tree(
    folder: Path, video_id: str, *, subtitles: bool = True, picture: bytes | None = None
) -> None:
    """A tree of the sample's shape. picture: the bytes of its one key frame's file."""
    tree = msgspec.json.encode(sample()).replace(VIDEO.encode(), video_id.encode())
    if not subtitles:
        silent = msgspec.json.decode(tree)
        for node in silent["nodes"].values():
            node["subtitle"] = ""
        tree = msgspec.json.encode(silent)
    home = folder / video_id
    home.mkdir(parents=True)
    (home / "tree.json").write_bytes(tree)
    if picture is not None:
        (home / "frames").mkdir()
        (home / "frames" / "L3_000.jpg").write_bytes(picture)


def jpeg() -> bytes:
    """A picture that can be read."""
    buffer = BytesIO()
    Image.new("RGB", (32, 24), "navy").save(buffer, "JPEG")
    return buffer.getvalue()


def question_of(video_id: str) -> Question:
    """A question about a video; the right answer is B."""
    return msgspec.structs.replace(QUESTION, question_id=f"q/{video_id}", video_id=video_id)


class _Model(Actor):
    """Says for each video what its plan holds for the turn."""

    def __init__(self, plans: Mapping[str, Sequence[Says]], asked: list[Chat]) -> None:
        self._plans = plans
        self._asked = asked

    @handles(Chat)
    async def chat(self, request: Chat) -> ChatAnswer | ChatFailed:
        self._asked.append(request)
        if request.role == "vision":
            return reply("A navy blue surface.")
        video_id = str(request.messages[1].content).partition("\n")[0].removeprefix("Video: ")
        plan = self._plans[video_id]
        turn = sum(message.role == "assistant" for message in request.messages)
        said = plan[min(turn, len(plan) - 1)]
        return reply(said) if isinstance(said, str) else said


class House:
    """What came of it."""

    def __init__(self, system: Supervisor, database: Path, asked: list[Chat]) -> None:
        self._system = system
        self._database = database
        self.asked = asked

    async def answer(self, *video_ids: str, run_key: str = "pass") -> dict[str, Answered | Missed]:
        """A question about each video, side by side; results by video."""
        results: dict[str, Answered | Missed] = {}

        async def one(video_id: str) -> None:
            job = msgspec.structs.replace(
                request(), run_key=run_key, question=question_of(video_id)
            )
            results[video_id] = await self._system.address("rollout").ask(job)

        with anyio.fail_after(_DEADLINE_S):
            async with anyio.create_task_group() as tasks:
                for video_id in video_ids:
                    tasks.start_soon(one, video_id)
        return results

    @property
    def outcomes(self) -> dict[str, OutcomeRow]:
        """The stored outcomes by video."""
        with open_reader(self._database) as reader:
            return {row.video_id: row for row in reader.rows(OutcomeRow)}

    def traces(self, video_id: str) -> list[TraceRow]:
        """The stored steps of a video's question."""
        with open_reader(self._database) as reader:
            rows = reader.rows(TraceRow)
        return [row for row in rows if row.question_id == f"q/{video_id}"]


@asynccontextmanager
async def living(
    folder: Path, agent: AgentSettings, plans: Mapping[str, Sequence[Says]]
) -> AsyncIterator[House]:
    """The actors, up and then down again. folder: holds ``trees``, gets ``run.db``."""
    config = load_config(None, ["runtime.drain_s=1"])
    asked: list[Chat] = []
    wide = 8
    specs = [
        ActorSpec(
            name="ledger", factory=lambda _: LedgerActor(folder / "run.db", wide), concurrency=wide
        ),
        ActorSpec(name="llm", factory=lambda _: _Model(plans, asked), concurrency=wide),
        ActorSpec(
            name="video",
            factory=lambda _: VideoActor(config.data, config.frames, folder / "trees"),
            concurrency=wide,
        ),
        ActorSpec(
            name="rollout",
            factory=_rollout(agent),
            asks=("llm", "video", "ledger"),
            concurrency=wide,
        ),
    ]
    async with Supervisor(specs, config.runtime) as system:
        yield House(system, folder / "run.db", asked)


def _rollout(agent: AgentSettings) -> Callable[[Callable[[str], object]], Actor]:
    def build(peers: Callable[[str], object]) -> Actor:
        return RolloutActor(agent, peers("llm"), peers("video"), peers("ledger"))  # type: ignore[arg-type]

    return build
