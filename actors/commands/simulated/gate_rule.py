"""The ladder gate as a rule: its own order, ladder, levels, decision and state.

Nothing is modelled but the answers. What the actor does between a candidate and its decision is
done here with the same functions, without a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from actors.baseline.snapshot import assemble
from actors.commands.simulated.rules import CANDIDATE, SECOND, SECOND_BASE, Right, Test, Tried
from actors.gate.decide import Answers, LadderUnit, Rules, Standing, decide
from actors.gate.ema import fold, lookup
from actors.gate.eprocess import UnitResult
from actors.gate.futility import LOSS_RATE, WIN_RATE, chances, conditional_power
from actors.gate.ladder import blind_order, build_ladder
from actors.gate.levels import alpha_of, draws_of, stages_of
from actors.gate.looks import accept_looks, block_ends
from actors.gate.state import GateState, advance, in_force, known_difficulty
from protocol.dataset import Question, Unit
from protocol.rows import BaselineRow, DecisionRow, OutcomeRow
from protocol.settings import GateSettings

__all__ = ["Gate"]

_PROMPTS = "v1"
_NEVER = 1e-300  # a level that nothing reaches: what comes back is untestable


class Gate:
    """The gate, with the state that its actor carries from epoch to epoch.

    early_power: gives up on conditional power before the first block too, as the study did.
    renew: what a second stage drew of the current text replaces the snapshot if it refuses.
    """

    def __init__(
        self, settings: GateSettings, *, early_power: bool = False, renew: bool = False
    ) -> None:
        self._settings = settings
        self._early_power = early_power
        self._renew = renew
        self._state = GateState()
        self._outcomes: list[OutcomeRow] = []
        self._decisions: list[DecisionRow] = []
        self._snapshots: dict[tuple[str, str, int], tuple[BaselineRow, ...]] = {}

    def test(self, test: Test) -> Tried:
        """Stage after stage, each block after block, as the gate's actor does."""
        k = draws_of(self._settings, test.n_units)
        known = in_force(self._state, _class(test.task), str(test.version), _PROMPTS)
        name = (known.task_type, known.skill_hash, known.generation)
        baseline = 0
        if name not in self._snapshots:
            draws = [test.snapshot(known.generation * k + draw) for draw in range(k)]
            self._snapshots[name] = _snapshot_rows(test, known.generation, draws)
            baseline = k * test.n_units
        units = _units(test.task, test.n_units)
        ordered = blind_order(units, test.seed, test.epoch, known_difficulty(self._state, known))
        records = lookup(self._state.units)
        ladder = build_ladder(ordered, assemble(units, self._snapshots[name], k), records)
        right = test.right(CANDIDATE, test.candidate)
        standing, candidate = self._decide(ladder, right)
        self._outcomes += _outcomes(test, "gate", ladder[:candidate], right)
        if standing.verdict == "accept" and stages_of(self._settings) > 1:
            draws = [test.right(SECOND_BASE + draw, test.current) for draw in range(k)]
            drawn = _snapshot_rows(test, known.generation, draws)
            right = test.right(SECOND, test.candidate)
            ladder = build_ladder(ordered, assemble(units, drawn, k), records)
            standing, more = self._decide(ladder, right)
            self._outcomes += _outcomes(test, "confirm", ladder[:more], right)
            baseline += k * test.n_units
            candidate += more
            if self._renew and standing.verdict != "accept":
                self._snapshots[name] = drawn
        self._decisions.append(_decision(test, standing, known.generation))
        return Tried(
            accepted=standing.verdict == "accept",
            candidate=candidate,
            baseline=baseline,
            tested=candidate > 0,
        )

    def end_epoch(self) -> None:
        """Observe the epoch: difficulties, and which snapshots are out of force."""
        snapshots, gone = advance(self._state, self._decisions, self._settings.fresh_after)
        retired = [
            row
            for known in gone
            for row in self._snapshots[known.task_type, known.skill_hash, known.generation]
        ]
        decay = self._settings.ema_decay
        units, _ = fold(self._state.units, self._outcomes, decay, retired)
        self._state = GateState(
            observed_epoch=self._state.observed_epoch + 1, units=units, snapshots=snapshots
        )
        self._outcomes, self._decisions = [], []

    def _decide(self, ladder: tuple[LadderUnit, ...], right: Right) -> tuple[Standing, int]:
        """Where it ended, and how many units were looked at."""
        rules = Rules(
            alpha=alpha_of(self._settings, len(ladder)),
            max_missing_share=self._settings.max_missing_share,
            futility_power=self._settings.futility_power,
            harm_e=self._settings.harm_e,
        )
        answers = [(bool(right[int(unit.unit_id)]),) for unit in ladder]
        blocks: list[Sequence[Answers]] = []
        start = 0
        standing = decide(ladder, blocks, rules)
        if standing is None and self._early_power and _hopeless(ladder, rules):
            standing = decide(ladder, blocks, msgspec.structs.replace(rules, alpha=_NEVER))
        for end in block_ends(len(ladder)):
            if standing is not None:
                break
            blocks.append(answers[start:end])
            start = end
            standing = decide(ladder, blocks, rules)
        assert standing is not None, "the last block decides"
        return standing, start


@lru_cache(maxsize=64)
def _units(task: int, n_units: int) -> tuple[Unit, ...]:
    """A class's units, one question each, named by their number."""
    return tuple(
        Unit(
            unit_id=str(u),
            video_id=str(u),
            task_type=_class(task),
            questions=(
                Question(
                    question_id=str(u),
                    video_id=str(u),
                    task_type=_class(task),
                    question="?",
                    options=("1", "2", "3", "4"),
                    answer="A",
                ),
            ),
        )
        for u in range(n_units)
    )


def _class(task: int) -> str:
    return f"class {task}"


def _hopeless(ladder: Sequence[LadderUnit], rules: Rules) -> bool:
    """Whether the conditional power is too low before anything was seen."""
    looks = accept_looks(len(ladder))
    starts = (0, *looks[:-1])
    ahead = [
        [chances(unit.draws, WIN_RATE, LOSS_RATE) for unit in ladder[start:end]]
        for start, end in zip(starts, looks, strict=True)
    ]
    nothing: list[list[UnitResult]] = [[] for _ in looks]
    return conditional_power(nothing, ahead, rules.alpha) < rules.futility_power


def _snapshot_rows(test: Test, generation: int, draws: Sequence[Right]) -> tuple[BaselineRow, ...]:
    return tuple(
        BaselineRow(
            task_type=_class(test.task),
            skill_hash=str(test.version),
            prompts_version=_PROMPTS,
            unit_id=str(u),
            question_id=str(u),
            draw=draw,
            right=bool(right[u]),
            source="rollout",
            video_id=str(u),
            generation=generation,
        )
        for draw, right in enumerate(draws)
        for u in range(test.n_units)
    )


def _outcomes(test: Test, stage: str, seen: Sequence[LadderUnit], right: Right) -> list[OutcomeRow]:
    """The candidate's answers as they lie in the ledger."""
    return [
        OutcomeRow(
            run_key=f"e{test.epoch}/{test.task}/s{test.nth}/{stage}/b0",
            question_id=unit.unit_id,
            video_id=unit.unit_id,
            task_type=_class(test.task),
            outcome="right" if right[int(unit.unit_id)] else "wrong",
            letter="A",
            submitted="A",
            confidence=0.5,
            stop="submitted",
            missing_kind=None,
            detail="",
            n_steps=1,
            prompt_tokens=0,
            completion_tokens=0,
            seconds=0.0,
            skill_hash="",
            prompts_version=_PROMPTS,
            salt="",
        )
        for unit in seen
    ]


def _decision(test: Test, standing: Standing, generation: int) -> DecisionRow:
    """The decision as it lies in the ledger."""
    return DecisionRow(
        run_key=f"e{test.epoch}/{test.task}/s{test.nth}",
        epoch=test.epoch,
        step=test.nth,
        task_type=_class(test.task),
        current_hash=str(test.version),
        candidate_hash="",
        verdict=standing.verdict,
        reason=standing.reason,
        alpha=0.0,
        n_units=test.n_units,
        evaluated=standing.evaluated,
        wins=standing.wins,
        losses=standing.losses,
        ties=standing.ties,
        missing=standing.missing,
        e_value=standing.e_value,
        p_gate=standing.p_gate,
        lower_bound=standing.lower_bound,
        looks="[]",
        in_sample=False,
        rollouts=0,
        snapshot_hash=str(test.version),
        prompts_version=_PROMPTS,
        generation=generation,
    )
