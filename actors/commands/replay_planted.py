"""``bin/trm replay --planted``: designs of the gate in a planted world, and their table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import msgspec
from rich.console import RenderableType
from rich.text import Text

from actors.commands.replay_reading import units_of
from actors.commands.seed_options import OptionError, note
from actors.commands.simulated.comparison import (
    STRICT,
    DesignRow,
    Mean,
    full_cost,
    run_designs,
    summarise_designs,
)
from actors.commands.simulated.planted import Planted, plant
from actors.commands.simulated.twin_world import TwinSetting, plant_twin
from actors.config import load_config, resolve_path
from actors.dataset.pools import load_frozen
from actors.dataset.questions import load_dataset
from actors.gate.factorial.schedule import ScheduleError
from actors.monitor.spans import duration
from actors.system import read_seed_package
from actors.tables import new_table
from actors.twin.shares import Shares
from actors.twin.world import load_world
from protocol.settings import Config

__all__ = ["Comparison", "PlantedRequest", "WorldName", "compared", "comparison_tables"]

WorldName = Literal["study", "twin"]
Profile = Literal["balanced", "growth", "audit"]

_TOLD_EVERY_S = 10.0
_NOTES = """\
gain: of the true accuracy on questions that were never asked, in points, with its 95 % interval
over the worlds; over strict: the same against accept-if-better in the same world. false share: of
the adopted edits those that are useless or harmful. evaluations: answers drawn, all that a design
needs: the editor's (factorial), baselines and candidates (the others, whose editor reads answers
that were drawn for a test). A design that has met every edit leaves the rest unspent."""


class PlantedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """first: the first seed. evaluations: None: what strict needs to test every edit."""

    world: WorldName
    runs: int
    first: int
    evaluations: int | None
    profiles: tuple[str, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The designs over so many worlds, seeds first, first + 1 and so on.

    evaluations: that every design was allowed, the same in every world.
    """

    world: WorldName
    runs: int
    first: int
    classes: int
    units: int
    evaluations: int
    designs: tuple[DesignRow, ...]


def compared(
    request: PlantedRequest,
    say: Callable[[str], None] = note,
    clock: Callable[[], float] = time.monotonic,
) -> Comparison:
    """Run them. say: takes a line now and then that tells how far it is.

    Raises OptionError for an option that makes no comparison; ConfigError, DataError, LoadError
    or OSError if the simulator's world cannot be read.
    """
    gate = load_config(None).gate
    ladders = [msgspec.structs.replace(gate, profile=_profile(name)) for name in request.profiles]
    make = _worlds(request.world)
    seeds = range(request.first, request.first + request.runs)
    sample = make(seeds[0])
    budget = full_cost(sample) if request.evaluations is None else request.evaluations
    telling = _Telling(request.runs, len(sample.names), say, clock)
    found = []
    for seed in seeds:
        try:
            found.append(run_designs(make(seed), budget, ladders, telling.class_done))
        except ScheduleError as error:
            raise OptionError(f"--evaluations {budget}: are too few ({error})") from error
    return Comparison(
        world=request.world,
        runs=request.runs,
        first=request.first,
        classes=len(sample.names),
        units=sum(sample.sizes),
        evaluations=budget,
        designs=summarise_designs(found),
    )


class _Telling:
    """Says how far it is, no oftener than every ten seconds. classes: of one world."""

    def __init__(
        self, worlds: int, classes: int, say: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self._worlds = worlds
        self._classes = classes
        self._say = say
        self._clock = clock
        self._done = 0
        self._begun = self._told = clock()

    def class_done(self) -> None:
        """One more class of the factorial designs is through."""
        self._done += 1
        now = self._clock()
        if now - self._told < _TOLD_EVERY_S:
            return
        self._told = now
        world, place = divmod(self._done - 1, self._classes)
        share = self._done / (self._worlds * self._classes)
        left = (now - self._begun) * (1 / share - 1)
        self._say(
            f"bin/trm replay: world {world + 1} of {self._worlds}, class {place + 1} of "
            f"{self._classes}, {duration(now - self._begun)}"
            + (f", about {duration(left)} left" if share < 1 else "")
        )


def comparison_tables(found: Comparison) -> Sequence[RenderableType]:
    """What to print."""
    last = found.first + found.runs - 1
    table = new_table(
        f"{found.runs} worlds (--planted {found.world}, seeds {found.first} to {last}): "
        f"{found.classes} classes, {found.units} units, {found.designs[0].edits:.0f} edits, "
        f"at most {found.evaluations} evaluations",
        *("design", "gain", "over strict", "worse", "helpful", "useless", "harmful"),
        *("false share", "evaluations"),
    )
    for row in found.designs:
        table.add_row(
            row.design,
            _points(row.fresh_gain),
            "" if row.design == STRICT else _points(row.over_strict),
            f"{row.worse:.1%}",
            *(f"{n:.2f}" for n in (row.helpful, row.useless, row.harmful)),
            f"{row.false_share:.2f}",
            f"{row.evaluations:.0f}",
        )
    parts: list[RenderableType] = [table, Text(""), Text(_NOTES)]
    strict = next(row for row in found.designs if row.design == STRICT)
    parts += [Text(""), *(Text(_against(row, strict)) for row in found.designs if row != strict)]
    parts += [
        Text(f"{row.design}: in {row.voided:.1%} of the worlds a sentinel voided the run")
        for row in found.designs
        if row.voided
    ]
    return parts


def _against(row: DesignRow, strict: DesignRow) -> str:
    own, its = row.false_accepts, strict.false_accepts
    share = f" ({own / its:.0%})" if its else ""
    return (
        f"{row.design} against strict: {_points(row.over_strict)} points with {own:.2f} false "
        f"adoptions where strict has {its:.2f}{share}"
    )


def _points(value: Mean) -> str:
    return f"{value.mean:+.1f} [{value.low:+.1f}, {value.high:+.1f}]"


def _profile(name: str) -> Profile:
    for profile in get_args(Profile):
        if name == profile:
            found: Profile = profile
            return found
    raise OptionError(f"--profile {name}: is none of {', '.join(get_args(Profile))}")


def _worlds(world: WorldName) -> Callable[[int], Planted]:
    if world == "study":
        return plant
    setting = _twin_setting(load_config(None))
    return lambda seed: plant_twin(seed, setting)


def _twin_setting(config: Config) -> TwinSetting:
    """The demo's questions, documents and simulator."""
    place, questions, seed = (
        resolve_path(text, None)
        for text in (config.twin.world, config.data.questions, config.data.seed)
    )
    frozen = load_frozen(seed, load_dataset(questions, None).questions)
    return TwinSetting(
        world=load_world(place.read_bytes()),
        diag={
            name: [question for unit in units for question in unit.questions]
            for name, units in units_of(config, frozen).items()
        },
        test=frozen.test,
        texts=read_seed_package(seed),
        shares=Shares(
            config.twin.helpful, config.twin.useless, config.twin.harmful, config.twin.malformed
        ),
        n_epochs=config.trainer.epochs,
        n_candidates=config.gate.candidates,
    )
