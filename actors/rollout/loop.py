"""The agent's turns over a video tree, until it answers or a budget ends.

Knows no runtime: the model and the tree are given as calls. A budget that ends takes the tools
away, not the answer: the agent is asked for it once more, held to ``submit_answer`` where the
endpoint can, and the outcome says which budget it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from actors.rollout.action import (
    Action,
    BadCall,
    Call,
    Look,
    Observe,
    ReadSkill,
    Search,
    Submit,
    Subtitles,
)
from actors.rollout.answer import Letter, as_text, extract
from actors.rollout.budget import Budget
from actors.rollout.conversation import Conversation, tokens_of
from actors.rollout.dialect import Dialect, JsonDialect, NativeDialect, Request, Said
from actors.rollout.outcome import Broken, Described, Ended, Lost, Seen
from actors.rollout.prompt import (
    Material,
    last_notice,
    observation_text,
    opening_messages,
    repeated_remark,
    stub_text,
    unreadable_text,
)
from actors.rollout.tools import letters_of, offered_tools
from prompts.reply import Unreadable
from protocol.dataset import PublicQuestion
from protocol.documents import Prompts, Skill
from protocol.llm import ChatAnswer, ChatMessage, Usage
from protocol.rollout import Flag, ForcedBy, Step, Stop
from protocol.settings import AgentSettings
from protocol.video import Frames, ToolRefused, TreeText

__all__ = ["ChatCall", "Tools", "run_loop"]

_NOTHING = Seen("")
_PATIENCE = 2  # calls in vain, in a row

ChatCall = Callable[[tuple[ChatMessage, ...], Request], Awaitable[ChatAnswer | Lost]]


class Tools(Protocol):
    """The video tree, as the loop sees it."""

    async def overview(self) -> TreeText | Lost:
        """The top level."""
        ...

    async def view(self, node_id: str) -> TreeText | ToolRefused | Lost:
        """One node."""
        ...

    async def search(self, query: str, k: int) -> TreeText | ToolRefused | Lost:
        """The best nodes."""
        ...

    async def subtitles(
        self, query: str, start_s: float | None, end_s: float | None
    ) -> TreeText | ToolRefused | Lost:
        """Subtitle lines."""
        ...

    async def observe(
        self, node_ids: tuple[str, ...], question: str
    ) -> Frames | Described | ToolRefused | Lost:
        """Pictures of key frames, or what another model sees on them."""
        ...


async def run_loop(
    question: PublicQuestion,
    prompts: Prompts,
    skill: Skill,
    *,
    chat: ChatCall,
    tools: Tools,
    settings: AgentSettings,
    others: Sequence[Skill] = (),
) -> Ended | Broken:
    """Let the agent answer a question. others: further skills, for ``skill_routing: manual``."""
    overview = await tools.overview()
    if isinstance(overview, Lost):
        return Broken(overview.kind, overview.detail, ())
    material = Material(
        prompts=prompts,
        skill=skill,
        others=tuple(others),
        tools=offered_tools(settings),
        manual=settings.skill_routing == "manual",
        native=settings.tool_calls == "native",
    )
    attempt = _Attempt(question, material, overview.text, tools, settings)
    while True:
        answer = await attempt.ask(chat)
        if isinstance(answer, Lost):
            return Broken(answer.kind, answer.detail, tuple(attempt.steps))
        ended = await attempt.take(answer)
        if ended is not None:
            return ended


class _Before(msgspec.Struct, frozen=True):
    """A call that was made, and what it brought. step: as the agent was told it."""

    step: int
    seen: Seen


class _Attempt:
    """One rollout: the conversation, the steps, what is left of the budgets."""

    def __init__(
        self,
        question: PublicQuestion,
        material: Material,
        overview: str,
        tools: Tools,
        settings: AgentSettings,
    ) -> None:
        self.steps: list[Step] = []
        self._options = question.options
        self._question = question.question
        self._letters = letters_of(question.options)
        self._library = material.library
        self._tools = tools
        self._settings = settings
        self._budget = Budget(settings)
        self._dialect = _dialect(material, self._letters)
        self._native = material.native
        self._talk = Conversation(
            opening_messages(material, question, overview, self._budget.opening()),
            settings.max_prompt_tokens,
        )
        self._before: dict[tuple[str, str], _Before] = {}
        self._replies = 0
        self._unreadable = 0  # in a row
        self._told = False  # that its answer holds no letter
        self._forced: ForcedBy = ""  # only an answer is taken
        self._repeats = 0  # calls made before, in a row
        self._dropped = 0  # observations, since the last reply

    # -- asking -----------------------------------------------------------------------------

    async def ask(self, chat: ChatCall) -> ChatAnswer | Lost:
        """The next reply. A conversation that the endpoint finds too long is cut once."""
        request = self._dialect.request(last=bool(self._forced), without=self._stuck_on())
        answer = await chat(self._talk.messages, request)
        if isinstance(answer, Lost) and answer.kind == "context":
            gone = self._talk.shrink()
            self._dropped += gone
            if gone:
                answer = await chat(self._talk.messages, request)
        return answer

    async def take(self, answer: ChatAnswer) -> Ended | Broken | None:
        """Act on a reply; None: the conversation goes on."""
        self._replies += 1
        said = self._dialect.read(answer, self._replies)
        prompt = answer.usage.prompt_tokens or self._talk.tokens
        self._talk.measured(answer.usage.prompt_tokens)
        self._budget.spend(prompt + answer.usage.completion_tokens, answer.seconds)
        turn = _Turn(said, answer, forced=bool(self._forced))
        if isinstance(said.read, Unreadable):
            return self._reask(turn, said.read.problem)
        self._unreadable = 0
        self._budget.steps += 1
        action = said.read
        if isinstance(action.call, Submit):
            return self._submitted(turn, action.call)
        if self._forced:
            self._keep(turn, "Not run: only submit_answer was left.", "")
            return self._end("budget", f"no answer when it was due ({self._forced})")
        return await self._acted(turn, action)

    # -- acting -----------------------------------------------------------------------------

    async def _acted(self, turn: _Turn, action: Action) -> Broken | None:
        key = self._key(action)
        before = self._before.get(key)
        if before is not None and self._talk.shows(before.step):
            turn.flags.append("repeated")
            self._repeats += 1
            seen = msgspec.structs.replace(before.seen, pictures=())  # they are there already
            unopened = next((node for node in seen.node_ids if not self._opened(node)), None)
            self._show(turn, action, seen, repeated_remark(before.step, unopened))
            return None
        self._repeats = 0
        found = before.seen if before is not None else await self._run(action.call)
        if isinstance(found, Lost):
            return Broken(found.kind, found.detail, tuple(self.steps))
        usage = found.usage
        self._budget.spend(usage.prompt_tokens + usage.completion_tokens, found.seconds)
        # what is shown again from memory has cost nothing
        again = msgspec.structs.replace(found, usage=Usage(), seconds=0.0)
        self._before[key] = _Before(self._budget.steps, again)
        self._show(turn, action, found, "")
        return None

    async def _run(self, call: Call) -> Seen | Lost:
        match call:
            case BadCall(problem):
                return Seen(problem, refused=True)
            case Look(node_id):
                return _seen(await self._tools.view(node_id))
            case Search(query, k):
                return _seen(await self._tools.search(query, k or self._settings.search_k))
            case Subtitles(query, start_s, end_s):
                return _seen(await self._tools.subtitles(query, start_s, end_s))
            case Observe(node_ids, question):
                return _seen(await self._tools.observe(node_ids, question or self._question))
            case ReadSkill(name):
                return self._read_skill(name)
            case Submit():
                raise TypeError("an answer is not a tool call")

    def _stuck_on(self) -> str:
        """The tool that an agent goes on calling in vain.

        Seen with a small model: the same search in all eight steps, whatever it was told. So the
        tool is not offered for one reply; an endpoint that cannot be held to that changes nothing.
        """
        return (self.steps[-1].tool or "") if self._repeats >= _PATIENCE else ""

    def _opened(self, node_id: str) -> bool:
        return ("view_node", repr(Look(node_id))) in self._before

    def _read_skill(self, name: str) -> Seen:
        body = self._library.read(name)
        if body is None:
            known = ", ".join(self._library.names)
            return Seen(f"There is no strategy {name!r}. There are: {known}.", refused=True)
        return Seen(body)

    def _key(self, action: Action) -> tuple[str, str]:
        """The same for calls that would bring the same."""
        call = action.call
        if isinstance(call, BadCall):
            return (action.tool, action.arguments)
        if isinstance(call, Search):
            call = Search(_plain(call.query), call.k or self._settings.search_k)
        elif isinstance(call, Subtitles):
            call = msgspec.structs.replace(call, query=_plain(call.query))
        elif isinstance(call, Observe) and self._settings.vision == "inline":
            call = Observe(call.node_ids)  # the agent asks itself: the pictures are the same
        return (action.tool, repr(call))

    # -- answering --------------------------------------------------------------------------

    def _submitted(self, turn: _Turn, submit: Submit) -> Ended | None:
        """A letter ends the rollout; without one the agent is told once, then believed."""
        reading = extract(submit.answer, self._options)
        letter = reading.letter if isinstance(reading, Letter) else None
        if letter is None and not self._told:
            self._told = True
            problem = (
                f"Your answer has no valid letter ({reading.why}). "
                f"Submit exactly one of {', '.join(self._letters)}."
            )
            assert isinstance(turn.said.read, Action), "a submission was read"
            self._show(turn, turn.said.read, Seen(problem, refused=True), "")
            return None
        self._keep(turn, f"Answer taken: {letter or 'none'} ({reading.why}).", "")
        return Ended(
            letter=letter,
            why=reading.why,
            submitted=as_text(submit.answer),
            confidence=submit.confidence,
            stop="submitted" if letter else "no_answer",
            steps=tuple(self.steps),
            forced_by=self._forced,
        )

    def _reask(self, turn: _Turn, problem: str) -> Ended | None:
        self._unreadable += 1
        self._forced = self._forced or self._budget.ended(self._talk.tokens)
        text = unreadable_text(problem, last=bool(self._forced), native=self._native)
        self._keep(turn, text, "")
        if self._unreadable >= self._settings.max_parse_failures:
            return self._end("parse_error", f"{self._unreadable} unreadable replies in a row")
        self._talk.say(turn.said.message, *self._dialect.observation(turn.said, text))
        self._dropped += self._talk.make_room()
        return None

    # -- telling and keeping ----------------------------------------------------------------

    def _show(self, turn: _Turn, action: Action, seen: Seen, remark: str) -> None:
        """Send what a call brought, with the budget or with the call for the answer."""
        said, step = turn.said, self._budget.steps
        line = f"{self._budget.line()} {remark}".strip()
        messages = self._dialect.observation(said, observation_text(line, seen.text), seen.pictures)
        self._talk.say(said.message)
        size = tokens_of(messages)
        self._forced = self._forced or self._budget.ended(self._talk.tokens + size)
        if not self._forced and not self._talk.has_room(size):
            self._forced = "context"
        if self._forced:
            line = last_notice(self._forced)
            messages = self._dialect.observation(
                said, observation_text(line, seen.text), seen.pictures
            )
        stub = self._dialect.observation(said, stub_text(step, action.tool, action.arguments))
        strategy = isinstance(action.call, ReadSkill)  # to be followed to the end: it stays
        self._talk.show(messages, step, None if strategy else stub)
        self._keep(turn, seen.text, line, seen)
        self._dropped += self._talk.make_room()

    def _keep(self, turn: _Turn, observation: str, notice: str, seen: Seen = _NOTHING) -> None:
        """Store the step."""
        answer, read = turn.answer, turn.said.read
        action = read if isinstance(read, Action) else None
        if action is not None and isinstance(action.call, BadCall):
            turn.flags.append("bad_call")
        elif seen.refused:
            turn.flags.append("refused")
        self.steps.append(
            Step(
                index=len(self.steps) + 1,
                thought=action.thought if action else "",
                tool=action.tool if action else None,
                arguments=action.arguments if action else "",
                observation=observation,
                raw=turn.said.raw,
                node_ids=seen.node_ids,
                prompt_tokens=answer.usage.prompt_tokens + seen.usage.prompt_tokens,
                completion_tokens=answer.usage.completion_tokens + seen.usage.completion_tokens,
                seconds=answer.seconds + seen.seconds,
                notice=notice,
                flags=tuple(turn.flags),
                dropped=self._dropped,
            )
        )
        self._dropped = 0

    def _end(self, stop: Stop, why: str) -> Ended:
        return Ended(
            letter=None,
            why=why,
            submitted="",
            confidence=0.5,
            stop=stop,
            steps=tuple(self.steps),
            forced_by=self._forced,
        )


class _Turn:
    """A reply that is being acted on. forced: it came when only an answer was taken."""

    def __init__(self, said: Said, answer: ChatAnswer, *, forced: bool) -> None:
        self.said = said
        self.answer = answer
        self.flags: list[Flag] = ["cut"] if said.cut else []
        if forced:
            self.flags.append("forced")


def _dialect(material: Material, letters: str) -> Dialect:
    kind = NativeDialect if material.native else JsonDialect
    return kind(material.tools, letters, material.library.names)


def _seen(found: TreeText | Frames | Described | ToolRefused | Lost) -> Seen | Lost:
    match found:
        case Lost():
            return found
        case ToolRefused():
            return Seen(found.text, refused=True)
        case TreeText():
            return Seen(found.text, found.node_ids)
        case Frames():
            return Seen(found.text, found.node_ids, found.pictures)
        case Described():
            return Seen(found.text, found.node_ids, usage=found.usage, seconds=found.seconds)


def _plain(query: str) -> str:
    return " ".join(query.casefold().split())
