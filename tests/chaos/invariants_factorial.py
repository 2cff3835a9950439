"""A factorial run's schedule, edits and pairs, held against its outcomes and against each other.

Counts, drops and p-values are counted here by other code than the product's: what is to be found is
a row that was written twice, under another document, or not at all. Only hashes (whose coin is it,
which pair is of which unit) are asked of the product, since they are what was promised.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import comb

import msgspec

from actors.evolver.compose import compose, render
from actors.gate.factorial.coins import draw_coins, fair_coin
from actors.gate.factorial.schedule import Pair, Schedule, phase_pairs
from actors.gate.factorial.states import FactorialEdit
from actors.gate.phase import arm_places, schedule_from
from protocol.documents import Skill
from protocol.evolver import Edit
from protocol.factorial_rows import PROMPTS, FactorialEditRow, FactorialRunRow, PairRow
from protocol.keys import pair_key, step_key
from protocol.rows import OutcomeRow, StepRow
from tests.chaos.rows import Run, wrong_fields

__all__ = ["broken_factorial"]

DROP_HARM = Fraction(3, 10)
_MAX_CHARS = 8000

_RIGHT = {"right": True, "wrong": False}
_Coins = list[tuple[str, int, bool]]


class _Class(msgspec.Struct, frozen=True, kw_only=True):
    """One class of the run, or its prompts, whose pairs are those of all classes.

    edits: in canonical order; pairs: by number; coins: of each pair, by class and number.
    """

    name: str
    schedule: Schedule
    edits: list[FactorialEditRow]
    pairs: list[PairRow]
    coins: dict[tuple[str, int], _Coins]


class _Counts(msgspec.Struct):
    """What an edit has come to."""

    wins: int = 0
    losses: int = 0
    seen: int = 0
    pairs: int = 0
    dropped: bool = False


def broken_factorial(run: Run) -> Iterator[str]:
    """Everything that does not hold, in words; nothing of a run with the ladder."""
    if not run.schedules:
        for row in (*run.tested, *run.pairs, *run.factorial_runs):
            yield f"{row.TABLE}: a row without a schedule"
        return
    classes = [_class_of(run, row.task_type) for row in run.schedules]
    common = _common_of(run)
    known = {own.name for own in (*classes, common)}
    strangers = {row.task_type for row in run.tested} | {row.task_type for row in run.pairs}
    for name in sorted(strangers - known):
        yield f"{name}: edits or pairs of a class without a schedule"
    yield from _broken_keys(run, classes)
    yield from _broken_edits(run, common)
    counts = _counted(common)
    versions: dict[frozenset[str], str] = {}
    for own in classes:
        yield from _broken_edits(run, own)
        yield from _broken_schedule(own)
        counts |= _counted(own)
        yield from _broken_coins(own, common, counts)
        yield from _broken_draws(run, own, common, versions)
        yield from _broken_folds(run, own)
    if len(set(versions.values())) < len(versions):
        yield f"prompts: other edits, the same version: {versions}"
    yield from _broken_barrier(classes, common)
    yield from _broken_decision(run, (*classes, common), counts, versions)


def _class_of(run: Run, name: str) -> _Class:
    rows = [row for row in run.schedules if row.task_type == name]
    pairs = sorted((row for row in run.pairs if row.task_type == name), key=lambda row: row.pair)
    return _Class(
        name=name,
        schedule=schedule_from(rows),
        edits=sorted(
            (row for row in run.tested if row.task_type == name), key=lambda row: row.position
        ),
        pairs=pairs,
        coins=_coins_of(pairs),
    )


def _common_of(run: Run) -> _Class:
    """The prompts' edits, which take part in the pairs of every class."""
    edits = [row for row in run.tested if row.task_type == PROMPTS]
    return _Class(
        name=PROMPTS,
        schedule=schedule_from(run.schedules),
        edits=sorted(edits, key=lambda row: row.position),
        pairs=run.pairs,
        coins=_coins_of(run.pairs),
    )


def _coins_of(pairs: Iterable[PairRow]) -> dict[tuple[str, int], _Coins]:
    return {(row.task_type, row.pair): msgspec.json.decode(row.coins, type=_Coins) for row in pairs}


def _broken_barrier(classes: Sequence[_Class], common: _Class) -> Iterator[str]:
    """No class begins a phase before all classes are through with the one before.

    Nor does one begin before the prompts' edits of the epoch are there, which is told by the coins.
    """
    first = min((row.born for row in common.edits if not row.sentinel), default=0)
    for phase in range(2, common.schedule.n_epochs + 2) if first else ():
        begun = any(row.phase == phase for row in common.pairs)
        for own in classes:
            before = [row for row in own.pairs if row.phase == phase - 1]
            if begun and any(row.state == "open" for row in before):
                yield f"{own.name}: open pairs of phase {phase - 1}, another class has gone on"


def _broken_keys(run: Run, classes: Sequence[_Class]) -> Iterator[str]:
    """Every answer of a pair belongs to one whose coins are there."""
    keys = {
        pair_key(row.task_type, row.phase, row.pair, arm)
        for own in classes
        for row in own.pairs
        for arm in ("a", "b")
    }
    for key in run.outcomes:
        if key.startswith("factorial/") and key not in keys:
            yield f"{key}: answered without a coin"


def _broken_edits(run: Run, own: _Class) -> Iterator[str]:
    """One sentinel, then edits in the order of their birth, each of a step that proposed it."""
    if [row.position for row in own.edits] != list(range(len(own.edits))):
        yield f"{own.name}: edits at {[row.position for row in own.edits]}"
    if [row.sentinel for row in own.edits] != [place == 0 for place in range(len(own.edits))]:
        yield f"{own.name}: the first edit, and no other, must be the sentinel"
    births = [row.born for row in own.edits]
    if births != sorted(births):
        yield f"{own.name}: edits born in {births}"
    born: Counter[str] = Counter()
    for row in own.edits[1:]:
        born[row.proposed_by] += 1
        if row.proposed_by != step_key(row.born, own.name, 1):
            yield f"{row.edit_id}: born in {row.born}, proposed by {row.proposed_by}"
    steps = {key: row for key, row in run.steps.items() if row.task_type == own.name}
    for key in born.keys() - steps.keys():
        yield f"{own.name}: edits of {key}, which is no step"
    for key, step in steps.items():
        told = step.result == "proposed"
        if told != bool(born[key]) or born[key] > step.edit_budget:
            yield f"step {key}: {step.result}, {born[key]} edits, at most {step.edit_budget}"


def _broken_schedule(own: _Class) -> Iterator[str]:
    """A phase has the pairs that were fixed for it or none, and begins when the last is whole."""
    phases: dict[int, list[PairRow]] = defaultdict(list)
    for row in own.pairs:
        phases[row.phase].append(row)
    for phase, rows in phases.items():
        planned = [(p.index, p.unit_id) for p in phase_pairs(own.schedule, own.name, phase)]
        if [(row.pair, row.unit_id) for row in rows] != planned:
            yield f"{own.name}, phase {phase}: {len(rows)} pairs are not the {len(planned)} planned"
        if phase < max(phases) and any(row.state == "open" for row in rows):
            yield f"{own.name}: phase {phase} has open pairs, a later one has begun"


def _counted(own: _Class) -> dict[str, _Counts]:
    """W, L, D_seen, valid pairs and drops, from the rows of the pairs."""
    counts = {row.edit_id: _Counts() for row in own.edits}
    sentinels = {row.edit_id for row in own.edits if row.sentinel}
    for phase in range(1, own.schedule.certification + 1):
        for row in own.pairs:
            if row.phase == phase and row.outcome is not None:
                _count(counts, own.coins[row.task_type, row.pair], row.outcome)
        if phase <= own.schedule.n_epochs:
            for name in counts.keys() - sentinels:
                one = counts[name]
                one.dropped |= one.losses > 0 and _tail(one.wins + one.losses, one.losses) <= (
                    DROP_HARM
                )
    return counts


def _count(counts: Mapping[str, _Counts], coins: _Coins, sign: int) -> None:
    for name, side, virtual in coins:
        one = counts.get(name)
        if one is None:
            continue  # told by _broken_coins
        one.pairs += not virtual
        one.seen += sign != 0
        one.wins += side * sign > 0 and not virtual
        one.losses += side * sign < 0 and not virtual


def _tail(n: int, at_least: int) -> Fraction:
    return Fraction(sum(comb(n, w) for w in range(at_least, n + 1)), 2**n)


def _broken_coins(own: _Class, common: _Class, counts: Mapping[str, _Counts]) -> Iterator[str]:
    """Each coin is the one that the edit has in this pair, whatever it was drawn beside.

    Who takes part is told exactly where no later edit can have changed the groups.
    """
    everyone = [*own.edits, *common.edits]
    grouped = {row.edit_id for row in everyone if row.group_id is not None}
    last_birth = max((row.born for row in everyone), default=1)
    for row in own.pairs:
        pair = Pair(task_type=own.name, phase=row.phase, index=row.pair, unit_id=row.unit_id)
        where = f"{own.name}, pair {row.pair}"
        coins = own.coins[row.task_type, row.pair]
        for name, sign, _ in coins:
            if name not in counts or sign != fair_coin(own.schedule.seed, pair, name):
                yield f"{where}: the coin {sign} of {name} is not its own"
        born = {one.edit_id for one in everyone if one.born <= row.phase}
        if not born - grouped <= {name for name, _, _ in coins} <= born:
            yield f"{where}: coins of {[name for name, _, _ in coins]}, born were {sorted(born)}"
        if row.phase >= last_birth:
            now = [*_standing(own, row.phase), *_standing(common, row.phase)]
            drawn = draw_coins(own.schedule.seed, pair, now)
            wanted = [(coin.edit_id, coin.sign, coin.virtual) for coin in drawn.coins]
            if coins != wanted:
                yield f"{where}: coins {coins}, by the edits {wanted}"


def _standing(own: _Class, phase: int) -> list[FactorialEdit]:
    """The edits as they stood when the phase began."""
    before = msgspec.structs.replace(own, pairs=[r for r in own.pairs if r.phase < phase])
    counts = _counted(before)
    return [
        FactorialEdit(
            edit_id=row.edit_id,
            task_type=own.name,
            born=row.born,
            group=row.group_id,
            sentinel=row.sentinel,
            state="dropped" if counts[row.edit_id].dropped else "live",
        )
        for row in own.edits
    ]


def _broken_draws(
    run: Run, own: _Class, common: _Class, versions: dict[frozenset[str], str]
) -> Iterator[str]:
    """What a pair says is what its outcomes say, each given under the documents of its coins.

    versions: of the prompts, by their edits that are on; those that are met here are added.
    """
    texts = _Texts(run, own)
    mine, shared = ({row.edit_id for row in scope.edits} for scope in (own, common))
    silent = {row.edit_id for row in common.edits if row.sentinel}
    sizes = {unit.unit_id: unit.n_questions for unit in own.schedule.of(own.name).gate}
    for row in own.pairs:
        where = f"{own.name}, pair {row.pair}"
        right = []
        for arm, sign, told in (("a", 1, row.right_a), ("b", -1, row.right_b)):
            answers = run.outcomes.get(pair_key(own.name, row.phase, row.pair, arm), {}).values()
            on = {
                name
                for name, side, virtual in own.coins[row.task_type, row.pair]
                if side == sign and not virtual
            }
            edited = frozenset(on & shared - silent)
            for answer in answers:
                version = versions.setdefault(edited, answer.prompts_version)
                if answer.prompts_version != version or ("+" in version) != bool(edited):
                    yield f"{where}, arm {arm}: answered under prompts {answer.prompts_version}"
            text = texts.hash_of(on & mine)
            yield from _broken_answers(f"{where}, arm {arm}", row, answers, text)
            if row.state == "open":
                continue
            found = msgspec.json.decode(told, type=list[bool | None])
            counted = Counter(_RIGHT.get(answer.outcome) for answer in answers)
            if len(found) != sizes.get(row.unit_id) or Counter(found) != counted:
                yield f"{where}, arm {arm}: says {found}, its outcomes {dict(counted)}"
            if None in found and row.state == "drawn":
                yield f"{where}, arm {arm}: is drawn, and an answer is lost"
            right.append(sum(one is True for one in found))
        wanted = None
        if row.state == "drawn":
            wanted = (right[0] > right[1]) - (right[0] < right[1])
        if row.outcome != wanted:
            yield f"{where}: is {row.state}, outcome {row.outcome}, counted {wanted}"


def _broken_answers(
    where: str, row: PairRow, answers: Iterable[OutcomeRow], text: str
) -> Iterator[str]:
    for answer in answers:
        if answer.skill_hash != text:
            yield f"{where}: answered under another document than its coins say"
        if row.unit_id != f"{row.task_type}/{answer.video_id}":
            yield f"{where}: {answer.video_id} answered, of {row.unit_id}"


class _Texts:
    """The documents of a class: its base with some of its edits on."""

    def __init__(self, run: Run, own: _Class) -> None:
        self._name = own.name
        self._rows = [row for row in own.edits if row.edit]
        edits = [msgspec.json.decode(row.edit, type=Edit) for row in self._rows]
        first = run.steps.get(step_key(1, own.name, 1))
        base = "" if first is None else run.documents[first.skill_before].text
        self._composition = compose(base, edits, _MAX_CHARS)
        self._known: dict[frozenset[str], str] = {}

    def hash_of(self, on: set[str]) -> str:
        """Of the document with these edits on; sentinels have no text.

        Empty if there can be none, since two of them exclude each other: nothing was answered so.
        """
        key = frozenset(on)
        if key not in self._known:
            try:
                text = render(self._composition, arm_places(on, self._rows))
            except ValueError:
                self._known[key] = ""
            else:
                self._known[key] = Skill(task_type=self._name, text=text).hash
        return self._known[key]


def _broken_folds(run: Run, own: _Class) -> Iterator[str]:
    """What proposals were shown is never tested on, and the other way round (T7)."""
    scheduled = own.schedule.of(own.name)
    design, gate = ({u.unit_id for u in units} for units in (scheduled.design, scheduled.gate))
    if design & gate:
        yield f"{own.name}: units of both folds: {sorted(design & gate)}"
    steps = [step_key(epoch, own.name, 1) for epoch in range(1, own.schedule.n_epochs + 1)]
    for key in steps:
        for answer in run.outcomes.get(f"{key}/rollout", {}).values():
            if f"{own.name}/{answer.video_id}" not in design:
                yield f"{key}: {answer.video_id} was shown and is not of the design fold"


# -- the decision -----------------------------------------------------------------------


def _broken_decision(
    run: Run,
    classes: Sequence[_Class],
    counts: Mapping[str, _Counts],
    versions: Mapping[frozenset[str], str],
) -> Iterator[str]:
    """One at most; with it every edit has its counts and its end, without it none has."""
    if len(run.factorial_runs) > 1:
        yield f"factorial_run: {len(run.factorial_runs)} rows"
    decided = run.factorial_runs[0] if run.factorial_runs else None
    if decided is None:
        for row in run.tested:
            if (row.state, row.wins, row.seen) != ("live", None, None):
                yield f"{row.edit_id}: {row.state} before the run has decided"
        if run.last >= max(own.schedule.n_epochs for own in classes):
            yield "factorial_run: the last epoch is whole and nothing is decided"
    for own in classes:
        if decided is not None:
            yield from _broken_ends(own, counts, decided)
        yield from _broken_adoption(run, own, versions)
    if decided is not None:
        yield from _broken_sums(run, decided)


def _broken_ends(
    own: _Class, counts: Mapping[str, _Counts], decided: FactorialRunRow
) -> Iterator[str]:
    cut = Fraction(0) if decided.cut is None else Fraction(decided.cut)
    if any(row.state == "open" for row in own.pairs):
        yield f"{own.name}: is decided with open pairs"
    for row in own.edits:
        one = counts[row.edit_id]
        p = Fraction(1) if one.dropped else _tail(one.wins + one.losses, one.wins)
        same = {name: getattr(one, name) for name in ("wins", "losses", "seen", "pairs")}
        yield from wrong_fields(f"edit {row.edit_id}", row, {**same, "p": float(p)})
        if row.sentinel:
            ends = {"live"}
        elif one.dropped:
            ends = {"dropped"}
        elif not decided.ok or float(p) > cut:
            ends = {"rejected"}
        else:
            ends = {"adopted"} if row.group_id is None else {"adopted", "rejected"}
        if row.state not in ends:
            yield f"edit {row.edit_id}: is {row.state}, by its pairs {sorted(ends)}"
    taken = Counter(row.group_id for row in own.edits if row.state == "adopted" and row.group_id)
    if taken and max(taken.values()) > 1:
        yield f"{own.name}: more than one of a group is adopted: {dict(taken)}"


def _broken_sums(run: Run, decided: FactorialRunRow) -> Iterator[str]:
    edits = [row for row in run.tested if not row.sentinel]
    sentinels = [row for row in run.tested if row.sentinel]
    yield from wrong_fields(
        "factorial_run",
        decided,
        {
            "n_edits": len(edits),
            "adopted": sum(row.state == "adopted" for row in edits),
            "sentinel_wins": sum(row.wins or 0 for row in sentinels),
            "sentinel_losses": sum(row.losses or 0 for row in sentinels),
        },
    )


def _broken_adoption(
    run: Run, own: _Class, versions: Mapping[frozenset[str], str]
) -> Iterator[str]:
    """A class that adopts has a last step, which leaves the base with these edits on."""
    steps = {key: row for key, row in run.steps.items() if row.task_type == own.name}
    last = steps.pop(step_key(own.schedule.n_epochs, own.name, 2), None)
    adopted = {row.edit_id for row in own.edits if row.state == "adopted"}
    for key, row in steps.items():
        if row.skill_after != row.skill_before:
            yield f"step {key}: changed the document before the run had decided"
    if last is None:
        if adopted and run.last >= own.schedule.n_epochs:
            yield f"{own.name}: adopts {sorted(adopted)}, and no step says so"
        return
    if own.name == PROMPTS:
        yield from wrong_fields(f"step {last.run_key}", last, {"result": "accept"})
        version = versions.get(frozenset(adopted), "")
        if version and not version.endswith(f"+{last.skill_after[:12]}"):
            yield f"step {last.run_key}: left other prompts than {version}"
        return
    yield from _wrong_step(last, adopted, _Texts(run, own), own)


def _wrong_step(last: StepRow, adopted: set[str], texts: _Texts, own: _Class) -> Iterator[str]:
    said = {"result": "accept", "skill_after": texts.hash_of(adopted) if adopted else "nothing"}
    yield from wrong_fields(f"step {last.run_key} of {own.name}", last, said)
