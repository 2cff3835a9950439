"""One answered question: forward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from protocol.base import Message, Request
from protocol.dataset import Question
from protocol.documents import Prompts, Skill
from protocol.llm import LASTING

__all__ = [
    "Answered",
    "Flag",
    "ForcedBy",
    "Missed",
    "Rollout",
    "Step",
    "Stop",
    "mostly_unreadable",
    "out_of_budget",
    "reasons_of",
    "soft_score",
    "unreadable",
]

Stop = Literal["submitted", "no_answer", "budget", "parse_error"]
ForcedBy = Literal["", "steps", "tokens", "time", "context"]
Flag = Literal[
    "bad_call",  # no such tool, or wrong arguments
    "refused",  # the tool would not do it: an unknown node, an empty query
    "repeated",  # the very call of an earlier step, answered from memory
    "forced",  # made when only an answer was taken
    "cut",  # the reply ended at the token limit
]

_FEWEST_UNREADABLE = 4


def soft_score(confidence: float, right: bool) -> float:
    """1 - (c - y)^2, a proper score in [0, 1] (ALGORITHM.md section 2)."""
    return 1.0 - (confidence - (1.0 if right else 0.0)) ** 2


class Step(Message, frozen=True, kw_only=True, tag=True):
    """One turn of the agent, as stored (row P0-2).

    index: from 1. arguments: JSON text. raw: the model's whole reply.
    tool: None if the reply was no action; the observation is then what it was told.
    node_ids: the nodes that the observation shows, whichever tool brought it.
    prompt_tokens, completion_tokens, seconds: of the reply, and of a model that the tool asked.
    notice: what the agent was told beside the observation: budgets, remarks, the last call.
    dropped: earlier observations that were left out of the request for this reply.
    """

    index: int
    thought: str
    tool: str | None
    arguments: str
    observation: str
    raw: str
    node_ids: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    notice: str = ""
    flags: tuple[Flag, ...] = ()
    dropped: int = 0


class Answered(Message, frozen=True, kw_only=True, tag=True):
    """The agent ran to an end; no valid letter (``letter`` None) is wrong, not missing.

    submitted: what the agent sent, normalised to text (row P0-4).
    forced_by: the budget that ended before the answer; empty: none did.
    """

    question_id: str
    right: bool
    letter: str | None
    submitted: str
    confidence: float
    stop: Stop
    n_steps: int
    forced_by: ForcedBy = ""


class Missed(Message, frozen=True, kw_only=True, tag=True):
    """Infrastructure failed: neither right nor wrong.

    kind: a chat's failure kind, ``tree`` or ``storage``.
    """

    question_id: str
    kind: str
    detail: str

    @property
    def lasting(self) -> bool:
        """Whether no waiting mends it: the operator must do something first."""
        return self.kind in LASTING or self.kind == "tree"


def out_of_budget(results: Iterable[Answered | Missed]) -> bool:
    """Whether a limit of the configuration ended the pass: then none of it counts."""
    return any(isinstance(result, Missed) and result.kind == "budget" for result in results)


def unreadable(results: Iterable[Answered | Missed]) -> int:
    """How many ended because the agent's replies were no actions. Each is a wrong answer."""
    return sum(isinstance(result, Answered) and result.stop == "parse_error" for result in results)


def mostly_unreadable(results: Sequence[Answered | Missed], share: float) -> bool:
    """Whether so many replies were no actions that the endpoint is at fault, not the documents.

    share: of the answers, more of which must be unreadable, and at least four of them: an agent
    that fails now and then is wrong now and then, and that is what an accuracy is about.
    """
    answered = sum(isinstance(result, Answered) for result in results)
    count = unreadable(results)
    return count >= _FEWEST_UNREADABLE and count > share * answered


def reasons_of(missed: Iterable[Missed]) -> tuple[str, ...]:
    """The five most frequent reasons, one line each, for whoever has to mend them."""
    counted = Counter((miss.kind, miss.detail) for miss in missed)
    return tuple(f"{n} x {kind}: {detail}" for (kind, detail), n in counted.most_common(5))


class Rollout(Request[Answered | Missed], frozen=True, kw_only=True, tag=True):
    """Answer a question under given documents, and store outcome and steps under ``run_key``.

    salt: from ``protocol.keys``; never None, an answer is always sampled.
    others: the package's other skills; read only with ``agent.skill_routing: manual``.
    """

    IDEMPOTENT: ClassVar[bool] = True

    run_key: str
    question: Question
    skill: Skill
    prompts: Prompts
    salt: str
    others: tuple[Skill, ...] = ()

    def missed(self, detail: str) -> Missed:
        """What an asker makes of a rollout whose actor failed (row P1-4)."""
        return Missed(question_id=self.question.question_id, kind="crash", detail=detail)
