"""The slow update: what an epoch as a whole teaches, as one candidate package (6.2).

The same design questions under the epoch's first and last package; from them each class's
momentum region, and from the epoch's case packs the system prompt and the tool prompts. All of
it stands or falls together on val; nothing is forced in, and a stored verdict is never remade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import msgspec
import structlog

from actors.trainer.compare import Judgement, choose, compared, counts, judge
from actors.trainer.evaluate import evaluate, outcomes_of
from actors.trainer.passes import jobs_for, run_jobs
from actors.trainer.peers import Peers
from actors.trainer.redraws import redraws, to_redraw
from actors.trainer.score import McNemar, mcnemar
from actors.trainer.slow_edits import Drafts, draft, saved, tried
from actors.trainer.usable import too_little, unread
from protocol.base import Refused, Scope
from protocol.dataset import ClassWork, Question
from protocol.documents import Package, PackageTexts
from protocol.keys import epoch_salt, slow_key
from protocol.ledger import DeleteRun, Record, Select, Where, rows_of
from protocol.redraws import redrawn
from protocol.rollout import Answered, Missed
from protocol.rows import EvaluationRow, SlowRow
from protocol.settings import Config
from protocol.slow import Change, Compared

__all__ = ["SlowPlan", "Stands", "slow_update"]

log = structlog.get_logger("trainer")


@dataclass(frozen=True)
class SlowPlan:
    """What a slow update depends on. first, fast: the packages that began and ended the epoch.

    fast_row: the fast package's evaluation on val.
    """

    config: Config
    epoch: int
    works: tuple[ClassWork, ...]
    first: PackageTexts
    fast: PackageTexts
    fast_row: EvaluationRow

    @property
    def key(self) -> str:
        """The run_key of all that it writes."""
        return slow_key(self.epoch)

    @property
    def scope(self) -> Scope:
        """For messages and log lines."""
        return Scope(epoch=self.epoch)


@dataclass(frozen=True)
class Stands:
    """The package that stands at the end of the epoch, and its row on val."""

    package: Package
    row: EvaluationRow


async def slow_update(peers: Peers, plan: SlowPlan) -> Stands | Refused:
    """Make, evaluate and judge the slow candidate, unless the verdict is there already.

    Refused: infrastructure lost too much, or the editor is away; the slow update begins anew.
    """
    fast = Stands(plan.fast.package, plan.fast_row)
    stored = await _stored(peers, plan)
    if not plan.config.trainer.slow_update:
        await _switched_off(peers, plan, stored)
        return fast
    if stored is not None and stored.result == "off":
        stored = None
    if stored is not None and stored.result == "kept":
        return await _candidate_row(peers, plan, stored.package)
    if stored is not None:
        return fast
    await peers.ledger.ask(DeleteRun(scope=plan.scope, run_key=plan.key))
    questions = choose(
        plan.works, plan.config.trainer.slow_questions, plan.config.run.seed, plan.epoch
    )
    found = await _compare(peers, plan, questions)
    if isinstance(found, Refused):
        return found
    drafts = await draft(peers, plan, found)
    if isinstance(drafts, Refused):
        return drafts
    if not drafts.any:
        await _conclude(peers, plan, found, drafts, plan.fast.package, "nothing", drafts.why)
        return fast
    texts = await saved(peers, plan, drafts)
    if isinstance(texts, Refused):
        return texts
    candidate = await _candidate_row(peers, plan, texts.package)
    if isinstance(candidate, Refused):
        return candidate
    return await _judge(peers, plan, found, drafts, candidate)


async def _stored(peers: Peers, plan: SlowPlan) -> SlowRow | None:
    selected = await peers.ledger.ask(
        Select(table=SlowRow.TABLE, where=(Where(column="epoch", value=plan.epoch),))
    )
    for row in rows_of(SlowRow, selected):
        against = Package(skills=row.fast_skills, prompts=row.fast_prompts)
        if against == plan.fast.package:  # more steps may have followed, with other settings
            return row
    return None


async def _switched_off(peers: Peers, plan: SlowPlan, stored: SlowRow | None) -> None:
    """A verdict that is there does not count any more: the row must not say that it does."""
    if stored is not None and stored.result != "off":
        off = msgspec.structs.replace(
            stored,
            result="off",
            reason=f"switched off after the verdict {stored.result!r}",
            skills_version=plan.fast.package.skills,
            prompts_version=plan.fast.package.prompts,
        )
        await peers.ledger.ask(Record(scope=plan.scope, rows=(off,)))


async def _compare(
    peers: Peers, plan: SlowPlan, questions: Sequence[Question]
) -> tuple[Compared, ...] | Refused:
    """Both passes, side by side. Where a text did not change they are one draw (the same salt)."""
    again = await redraws(peers, plan.key)
    salt = redrawn(epoch_salt(plan.config.run.seed, plan.epoch), again)
    keys = (f"{plan.key}/before", f"{plan.key}/after")
    passes: dict[str, list[Answered | Missed]] = {}

    async def answer(key: str, texts: PackageTexts) -> None:
        passes[key] = await run_jobs(peers.roll, jobs_for(questions, texts, key, salt, plan.scope))

    async with anyio.create_task_group() as group:
        for key, texts in zip(keys, (plan.first, plan.fast), strict=True):
            group.start_soon(answer, key, texts)
    for key in keys:
        if refused := too_little(key, passes[key], plan.config.trainer.min_coverage):
            return refused
        if refused := unread(key, passes[key], plan.config.trainer.max_unreadable_share):
            return await to_redraw(peers, plan.scope, plan.key, again, refused)
    return compared(questions, passes[keys[0]], passes[keys[1]], keys)


async def _candidate_row(peers: Peers, plan: SlowPlan, package: Package) -> Stands | Refused:
    """The candidate's pass over val: row ``slow_candidate`` (P2-5)."""
    opened = await tried(peers, package)
    if isinstance(opened, Refused):
        return opened
    row = await evaluate(
        peers,
        opened,
        seed=plan.config.run.seed,
        epoch=plan.epoch,
        pool="val",
        kind="slow_candidate",
        settings=plan.config.trainer,
        control=plan.fast,
    )
    return row if isinstance(row, Refused) else Stands(package, row)


async def _judge(
    peers: Peers,
    plan: SlowPlan,
    found: Sequence[Compared],
    drafts: Drafts,
    candidate: Stands,
) -> Stands:
    paired = mcnemar(
        await outcomes_of(peers, plan.fast_row), await outcomes_of(peers, candidate.row)
    )
    verdict: Judgement = judge(
        plan.fast_row, candidate.row, paired, plan.config.trainer.slow_harm_p
    )
    result = "kept" if verdict.keep else "dropped"
    if not verdict.keep:
        rows = drafts.rejected(plan.key, paired)
        await peers.ledger.ask(Record(scope=plan.scope, rows=rows))
    await _conclude(
        peers,
        plan,
        found,
        drafts,
        candidate.package,
        result,
        verdict.reason,
        paired,
        candidate.row.mixed,
    )
    return candidate if verdict.keep else Stands(plan.fast.package, plan.fast_row)


async def _conclude(
    peers: Peers,
    plan: SlowPlan,
    found: Sequence[Compared],
    drafts: Drafts,
    package: Package,
    result: str,
    reason: str,
    paired: McNemar | None = None,
    mixed: float | None = None,
) -> None:
    """The slow update's row, written last: its presence means done."""
    fared: dict[Change, int] = dict(counts(found))
    row = SlowRow(
        epoch=plan.epoch,
        result=result,
        reason=reason,
        skills_version=package.skills,
        prompts_version=package.prompts,
        **fared,
        momentum=len(drafts.skills),
        prompt_edits=drafts.prompt_edits,
        wins=paired.wins if paired else 0,
        losses=paired.losses if paired else 0,
        pairs=paired.pairs if paired else 0,
        p_harm=paired.p_loss if paired else 1.0,
        fast_skills=plan.fast.package.skills,
        fast_prompts=plan.fast.package.prompts,
        fast_mixed=plan.fast_row.mixed,
        candidate_mixed=plan.fast_row.mixed if mixed is None else mixed,
        editor_calls=drafts.editor_calls,
        parse_failures=drafts.parse_failures,
    )
    await peers.ledger.ask(Record(scope=plan.scope, rows=(row,)))
    shown = msgspec.structs.asdict(row)
    log.info("slow_update.done", **{key: shown[key] for key in _SHOWN}, package=str(package))


_SHOWN = (
    "epoch",
    "result",
    "reason",
    "regressed",
    "persistent",
    "improved",
    "stable",
    "momentum",
    "prompt_edits",
    "wins",
    "losses",
    "editor_calls",
    "parse_failures",
)
