"""Having the nodes of a tree described, through the chat client: llm, cache and ledger.

Frames first, from their pictures; an event when all its frames are described; a scene when all
its events are. A finished card is kept at once and never asked for again. What all calls for a
video have cost lies in ``CALLS`` beside its tree, so that ``limits`` hold for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from actors.cache.actor import CacheActor
from actors.commands.progress import Progress
from actors.ledger.actor import LedgerActor
from actors.llm.actor import LlmActor
from actors.runtime.address import Address
from actors.runtime.errors import AskFailed, SystemFailed
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from actors.video.builder.cards import (
    TEMPLATES,
    Card,
    ask_again,
    card_schema,
    question,
    read_card,
    time_text,
)
from actors.video.builder.outline import Draft
from actors.video.builder.work import Work, work_key
from actors.video.frames import FrameError, FrameFile, encode_frame
from prompts.reply import Unreadable
from prompts.templates import load_templates
from protocol.llm import Chat, ChatFailed, ChatMessage
from protocol.settings import (
    CacheSettings,
    FrameSettings,
    LimitSettings,
    LlmSettings,
    RuntimeSettings,
)

__all__ = ["CALLS", "CaptionPlan", "Described", "NotDescribed", "describe"]

CALLS = "tree.calls.db"
"""The ledger of a video's calls, beside its work file."""
_TRIES = 3  # replies that cannot be read, per node
_MOST_FAILURES = 8  # nodes that an endpoint failed; more of them are not worth trying now
_MOST_AT_ONCE = 256
_LEDGER_HANDLERS = 64


class CaptionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Who describes: endpoints with the role vision. frames: how pictures are sent."""

    llm: LlmSettings
    limits: LimitSettings
    runtime: RuntimeSettings
    cache: CacheSettings
    frames: FrameSettings

    @property
    def models(self) -> tuple[str, ...]:
        """What a card follows from, besides its question."""
        return tuple(sorted({endpoint.model for endpoint in self.llm.endpoints}))


class Described(msgspec.Struct, frozen=True):
    """Cards by node. asked: described now; kept: were finished before."""

    cards: dict[str, Card]
    asked: int
    kept: int


class NotDescribed(msgspec.Struct, frozen=True):
    """Not all nodes could be described. passing: the same call may succeed later."""

    detail: str
    passing: bool


async def describe(
    plan: CaptionPlan, nodes: Sequence[Draft], frames: Path, work: Work, say: Callable[[str], None]
) -> Described | NotDescribed:
    """Describe every node. A node of which no reply can be read is left out of the cards."""
    try:
        async with Supervisor(_specs(plan, work.path.with_name(CALLS)), plan.runtime) as system:
            describer = _Describer(plan, nodes, frames, work, system.address("llm"), say)
            return await describer.all()
    except SystemFailed as failure:
        return NotDescribed(str(failure), passing=False)


def _specs(plan: CaptionPlan, database: Path) -> list[ActorSpec]:
    return [
        ActorSpec(
            name="ledger",
            factory=lambda _: LedgerActor(database, _LEDGER_HANDLERS),
            concurrency=_LEDGER_HANDLERS,
        ),
        ActorSpec(
            name="cache",
            # the work file remembers; what the environment says of a cache is not meant for this
            factory=lambda _: CacheActor(plan.cache, Path(), environ={}),
        ),
        ActorSpec(
            name="llm",
            factory=lambda peers: LlmActor(plan.llm, plan.limits, peers("cache"), peers("ledger")),
            asks=("cache", "ledger"),
            concurrency=_MOST_AT_ONCE,
        ),
    ]


class _Describer:
    """One pass over the nodes."""

    def __init__(
        self,
        plan: CaptionPlan,
        nodes: Sequence[Draft],
        frames: Path,
        work: Work,
        llm: Address,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._nodes = {node.name: node for node in nodes}
        self._frames = frames
        self._work = work
        self._llm = llm
        self._say = say
        self._templates = load_templates(TEMPLATES.values())
        at_once = sum(e.concurrency or plan.llm.concurrency for e in plan.llm.endpoints)
        self._slots = anyio.CapacityLimiter(min(at_once, _MOST_AT_ONCE))
        self._cards: dict[str, Card] = {}
        self._asked = 0
        self._kept = 0
        self._failures: list[ChatFailed] = []
        self._progress: Progress | None = None
        self._scope = anyio.CancelScope()

    async def all(self) -> Described | NotDescribed:
        """All scenes side by side, and below them their events and frames."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                for node in self._nodes.values():
                    if node.level == 1:
                        tasks.start_soon(self._with_children, node)
        if self._failures:
            return self._not_described()
        return Described(self._cards, self._asked, self._kept)

    def _not_described(self) -> NotDescribed:
        fatal = [failure for failure in self._failures if failure.fatal]
        last = (fatal or self._failures)[-1]
        passing = not fatal or last.kind == "budget"
        done = f"{len(self._cards)} of {len(self._nodes)} nodes are described and kept"
        detail = last.detail
        if last.kind == "budget":  # said of a run, which has --set
            reached = detail.rpartition("; ")[0] or detail
            detail = f"{reached} for this video; raise it in the configuration"
        return NotDescribed(f"{last.kind}: {detail}; {done}", passing)

    async def _with_children(self, node: Draft) -> None:
        async with anyio.create_task_group() as tasks:
            for child in node.children:
                tasks.start_soon(self._with_children, self._nodes[child])
        if self._failures and any(child not in self._cards for child in node.children):
            return  # it would be described without them, and differently the next time
        async with self._slots:
            await self._one(node)

    async def _one(self, node: Draft) -> None:
        messages = await self._question(node)
        if messages is None:
            return
        key = work_key(self._plan.models, node.level, messages)
        kept = self._work.card(key)
        if kept is not None:
            self._cards[node.name] = kept
            self._kept += 1
            if self._progress is not None:
                self._progress.step()
            return
        if self._progress is None:
            left = len(self._nodes) - self._kept
            self._progress = Progress("described", left, self._say)
        card = await self._ask(node, messages)
        if card is not None:
            self._keep(node, key, card)
        self._progress.step()

    def _keep(self, node: Draft, key: str, card: Card) -> None:
        try:
            self._work.keep_card(key, card)
        except OSError as error:
            detail = f"{self._work.path}: {error.strerror or error}"
            self._fail(ChatFailed(kind="crash", fatal=True, detail=detail))
            return
        self._cards[node.name] = card
        self._asked += 1

    async def _question(self, node: Draft) -> tuple[ChatMessage, ...] | None:
        picture: str | None = None
        if node.level == 3:
            picture = await self._picture(node)
            if picture is None:
                return None
        below = [self._nodes[name] for name in node.children if name in self._cards]
        children = [
            (time_text(child.span.start_s, child.span.end_s), self._cards[child.name])
            for child in below
        ]
        return question(
            node.level,
            self._templates[TEMPLATES[node.level]],
            start_s=node.span.start_s,
            end_s=node.span.end_s,
            subtitle=node.subtitle,
            children=children,
            picture=picture,
        )

    async def _picture(self, node: Draft) -> str | None:
        path = self._frames / f"{node.name}.jpg"
        settings = self._plan.frames
        encode = partial(encode_frame, FrameFile(str(path), 0, 0), settings.longest_px)
        try:
            return await to_thread.run_sync(encode, settings.jpeg_quality)
        except FrameError as error:
            self._fail(ChatFailed(kind="crash", fatal=True, detail=f"{error}; delete it"))
            return None

    async def _ask(self, node: Draft, messages: tuple[ChatMessage, ...]) -> Card | None:
        """The card; None: the endpoint failed, or none of its replies could be read."""
        template = self._templates[TEMPLATES[node.level]]
        schema = card_schema(node.level)
        asked, problem = messages, ""
        for _ in range(_TRIES):
            chat = Chat(role="vision", messages=asked, cache_salt=None, json_schema=schema)
            try:
                reply = await self._llm.ask(chat)
            except AskFailed as failure:
                reply = chat.crashed(str(failure))
            if isinstance(reply, ChatFailed):
                self._fail(reply)
                return None
            if reply.finish == "content_filter":
                problem = "the endpoint's filter refused it"
                break
            cut = Unreadable("it was cut off at the token limit: be shorter")
            card = cut if reply.finish == "length" else read_card(node.level, template, reply.text)
            if not isinstance(card, Unreadable):
                return card
            problem = card.problem
            asked = ask_again(messages, reply.text, problem)
        self._say(f"{node.name} is not described: {problem}")
        return None

    def _fail(self, failure: ChatFailed) -> None:
        self._failures.append(failure)
        if failure.fatal or failure.kind == "budget" or len(self._failures) >= _MOST_FAILURES:
            self._scope.cancel()
