"""The composition root: wires the actors of a run and runs them.

The only file that knows every room. Who asks whom is declared here once; the runtime refuses
a cycle, and an address that was not declared does not exist.

    trainer ─┬─> evolver ───────────────┐
             ├─> diagnoser ─────────────┤
             ├─> gate ──> baseline ──> rollout ──> llm ──> cache
             │     └──> evolver (renders documents of the factorial design)
             ├─> dataset                │  └──> video ──> embedder (where search is by meaning)
             ├─> workspace              │
             └──────────────────────────┴──────> ledger (of all that spend or decide)
"""

from __future__ import annotations

import gc
import math
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec

from actors.baseline.actor import BaselineActor
from actors.cache.actor import CacheActor
from actors.config import agent_of
from actors.dataset.actor import DatasetActor
from actors.diagnoser.actor import DiagnoserActor
from actors.embedder.actor import EmbedderActor
from actors.evolver.actor import EvolverActor
from actors.gate.actor import GateActor
from actors.ledger.actor import LedgerActor
from actors.llm.actor import LlmActor
from actors.llm.pace import Pace
from actors.places import to_write
from actors.rollout.actor import RolloutActor
from actors.runtime.address import Address
from actors.runtime.errors import ActorDead
from actors.runtime.supervisor import Supervisor
from actors.runtime.wiring import ActorSpec
from actors.trainer.actor import TrainerActor, TrainerPeers
from actors.twin.actor import TwinActor
from actors.twin.process import base_url_of, bind_loopback
from actors.video.actor import Semantic, VideoActor
from actors.workspace.actor import WorkspaceActor
from actors.workspace.checkpoint import CheckpointStore
from actors.workspace.files import read_json
from actors.workspace.seed import SEED
from actors.workspace.versions import read_prompts, read_skills
from protocol.base import Refused
from protocol.documents import Package, PackageTexts
from protocol.seed import SeedInfo
from protocol.settings import Config
from protocol.trainer import Train, TrainingEnded

__all__ = [
    "CHECKPOINT",
    "TWIN",
    "Paths",
    "RunResult",
    "answering_specs",
    "local_model",
    "read_seed_info",
    "read_seed_package",
    "run_system",
    "seed_serves",
    "simulated_roles",
    "specs",
    "uses_twin",
    "with_twin_address",
]

TWIN = "twin"
LOCAL = "local"
"""``embedding.base_url`` of a model on this machine."""
CHECKPOINT = "checkpoint.json"
_WIDE = 64
_LEDGER_HANDLERS = 256
_ONLOOKERS = 4
"""Who asks how the endpoints stand must not queue behind the chats."""
_TWIN_STOP_S = 8.0
_GC_OBJECTS = 10_000
"""New objects between two looks of the garbage collector at the young ones."""


@dataclass(frozen=True)
class Paths:
    """Where a run reads and writes; all absolute. world: None without the simulator.

    exclude: names the questions to leave out; None: none are.
    """

    workspace: Path
    questions: Path
    trees: Path
    world: Path | None
    exclude: Path | None = None


@dataclass(frozen=True)
class RunResult:
    """How a run of the process ended. ended: None if it was stopped before it could say.

    cut_short: a second signal asked for a stop at once.
    """

    ended: TrainingEnded | Refused | None
    cut_short: bool
    restarts: int
    seconds: float


def uses_twin(config: Config) -> bool:
    """Whether any endpoint is the embedded simulator."""
    return any(endpoint.base_url == TWIN for endpoint in config.llm.endpoints)


def simulated_roles(config: Config) -> list[str]:
    """The roles that the simulator plays. Without ``search`` its planted truth says nothing."""
    played = {role for e in config.llm.endpoints if e.base_url == TWIN for role in e.roles}
    return sorted(played)


def with_twin_address(config: Config, base_url: str) -> Config:
    """The configuration with the simulator's address in place of ``twin``."""
    endpoints = tuple(
        msgspec.structs.replace(endpoint, base_url=base_url)
        if endpoint.base_url == TWIN
        else endpoint
        for endpoint in config.llm.endpoints
    )
    return msgspec.structs.replace(
        config, llm=msgspec.structs.replace(config.llm, endpoints=endpoints)
    )


def answering_specs(
    config: Config, paths: Paths, listener: socket.socket | None, *, pace: Pace | None = None
) -> list[ActorSpec]:
    """The actors that answer and judge questions. listener: the simulator's, None without one.

    pace: the operator's hand on the chat client, one for all its incarnations.
    """
    agent, diagnoser, evolver = config.agent, config.diagnoser, config.evolver
    answered: set[str] = set()
    # Every chat of every asker may wait in the client at once: its limiter decides, not a mailbox.
    chats = agent.concurrency + diagnoser.concurrency + evolver.concurrency * evolver.minibatch
    wired = [] if listener is None else [_twin(config, paths, listener)]
    return [
        *wired,
        ActorSpec(
            name="ledger",
            factory=lambda _: LedgerActor(paths.workspace / "run.db", _LEDGER_HANDLERS),
            concurrency=_LEDGER_HANDLERS,
        ),
        ActorSpec(
            name="cache",
            factory=lambda _: CacheActor(config.cache, paths.workspace / "cache.db"),
            concurrency=_WIDE,
        ),
        ActorSpec(
            name="llm",
            factory=lambda peers: LlmActor(
                config.llm,
                config.limits,
                peers("cache"),
                peers("ledger"),
                pace=pace,
                answered=answered,
            ),
            asks=("cache", "ledger"),
            concurrency=chats + _ONLOOKERS,
        ),
        *_video(config, paths.trees),
        ActorSpec(
            name="rollout",
            factory=lambda peers: RolloutActor(
                agent, peers("llm"), peers("video"), peers("ledger")
            ),
            asks=("llm", "video", "ledger"),
            concurrency=agent.concurrency,
        ),
        ActorSpec(
            name="diagnoser",
            factory=lambda peers: DiagnoserActor(
                diagnoser,
                peers("llm"),
                peers("ledger"),
                max_calls=agent.max_steps,
                manual=agent.skill_routing == "manual",
            ),
            asks=("llm", "ledger"),
            concurrency=diagnoser.concurrency,
        ),
    ]


def specs(
    config: Config, paths: Paths, listener: socket.socket | None, *, pace: Pace | None = None
) -> list[ActorSpec]:
    """Every actor of a training with its peers."""
    seed = config.run.seed
    seed_package = read_seed_package(paths.workspace)
    serves = seed_serves(config, paths.workspace)
    evolver = config.evolver
    return [
        *answering_specs(config, paths, listener, pace=pace),
        ActorSpec(
            name="baseline",
            factory=lambda peers: BaselineActor(
                config.gate,
                seed,
                seed_package,
                paths.workspace / "baseline.db",
                peers("rollout"),
                peers("ledger"),
                seed_serves=serves and config.gate.seed_draw,
                max_unreadable_share=config.trainer.max_unreadable_share,
                manual=config.agent.skill_routing == "manual",
            ),
            asks=("rollout", "ledger"),
            concurrency=_WIDE,
        ),
        ActorSpec(
            name="gate",
            factory=lambda peers: GateActor(
                config.gate,
                seed,
                peers("baseline"),
                peers("rollout"),
                peers("ledger"),
                peers("evolver"),
                max_unreadable_share=config.trainer.max_unreadable_share,
                manual=config.agent.skill_routing == "manual",
                n_pairs=config.agent.concurrency,
            ),
            asks=("baseline", "rollout", "ledger", "evolver"),
            concurrency=_WIDE,
        ),
        ActorSpec(
            name="dataset",
            factory=lambda _: DatasetActor(
                config.data, seed, paths.questions, paths.exclude, paths.workspace
            ),
        ),
        ActorSpec(
            name="evolver",
            factory=lambda peers: EvolverActor(evolver, peers("llm"), peers("ledger")),
            asks=("llm", "ledger"),
            concurrency=evolver.concurrency,
        ),
        ActorSpec(name="workspace", factory=lambda _: WorkspaceActor(paths.workspace)),
        _trainer(config, serves),
    ]


def read_seed_info(folder: Path) -> SeedInfo:
    """``seed.json`` of a seed or workspace. Raises BadFile naming file and key."""
    return read_json(folder / SEED, SeedInfo, "restore it from the seed")


def read_seed_package(folder: Path) -> PackageTexts:
    """The documents that a seed or workspace began with. Raises WorkspaceError naming the file."""
    info = read_seed_info(folder)
    return PackageTexts(
        package=Package(skills=info.skills_version, prompts=info.prompts_version),
        skills=read_skills(folder / "skills", info.skills_version),
        prompts=read_prompts(folder / "prompts", info.prompts_version),
    )


def seed_serves(config: Config, folder: Path) -> bool:
    """Whether the seed's baseline was answered by this run's own agent.

    Never for another program's answers, which are recorded as ``foreign: ...`` (``SeedInfo``).
    """
    return read_seed_info(folder).agent == agent_of(config)


def local_model(config: Config) -> Path | None:
    """The folder of the embedding model on this machine; None: there is none."""
    if config.embedding.base_url != LOCAL:
        return None
    return to_write(config.embedding.model or "")


def _video(config: Config, trees: Path) -> list[ActorSpec]:
    """The video trees, with an embedder where they are searched by meaning."""
    data, frames, embedding = config.data, config.frames, config.embedding
    if data.search == "bm25":
        return [
            ActorSpec(
                name="video",
                factory=lambda _: VideoActor(data, frames, trees),
                concurrency=_WIDE,
            )
        ]
    folder = to_write(embedding.index)
    return [
        ActorSpec(
            name="embedder",
            factory=lambda peers: EmbedderActor(embedding, local_model(config), peers("ledger")),
            asks=("ledger",),
            concurrency=_WIDE,
        ),
        ActorSpec(
            name="video",
            factory=lambda peers: VideoActor(
                data, frames, trees, Semantic(embedding, folder, peers("embedder"))
            ),
            asks=("embedder",),
            concurrency=_WIDE,
        ),
    ]


def _twin(config: Config, paths: Paths, listener: socket.socket) -> ActorSpec:
    world = paths.world
    assert world is not None, "a run with the simulator has a world"
    return ActorSpec(
        name="twin",
        factory=lambda _: TwinActor(
            config.twin,
            world=world,
            questions=paths.questions,
            listener=listener,
            log_path=paths.workspace / "logs" / "twin.log",
        ),
    )


def _trainer(config: Config, serves: bool) -> ActorSpec:
    names = TrainerPeers.__dataclass_fields__.keys()

    def build(peers: Callable[[str], Address]) -> TrainerActor:
        addresses = TrainerPeers(**{name: peers(name) for name in names})
        return TrainerActor(config, addresses, seed_serves=serves)

    return ActorSpec(name="trainer", factory=build, asks=tuple(names))


async def run_system(
    config: Config,
    paths: Paths,
    run_id: str,
    before: Callable[[Supervisor], Awaitable[None]],
    *,
    signals: bool,
    pace: Pace | None = None,
    watch: Callable[[Supervisor], AbstractAsyncContextManager[None]] | None = None,
) -> RunResult:
    """Start every actor, train, stop every actor.

    before: called when all actors are up and before anything is spent.
    signals: obey SIGINT and SIGTERM (the first drains, the second stops at once).
    pace: the operator's hand on the chat client. watch: entered around all that is asked.

    Raises StartFailed naming the actor that cannot start, GaveUp if one used up its restarts.
    """
    started = anyio.current_time()
    store = CheckpointStore(paths.workspace / CHECKPOINT, run_id)
    restored = await anyio.to_thread.run_sync(store.load)
    with ExitStack() as stack:
        listener = stack.enter_context(bind_loopback()) if uses_twin(config) else None
        if listener is not None:
            config = with_twin_address(config, base_url_of(listener))
        system = Supervisor(
            specs(config, paths, listener, pace=pace),
            config.runtime,
            sink=store,
            restored=restored,
            signals=signals,
            stop_s=_TWIN_STOP_S,
        )
        ended: TrainingEnded | Refused | None = None
        try:
            async with system, nullcontext() if watch is None else watch(system):
                await before(system)
                _set_apart()
                ended = await system.address("trainer").ask(Train(), timeout_s=math.inf)
        except ActorDead:
            if not system.draining:
                raise
    restarts = sum(actor.restarts for actor in system.stats())
    return RunResult(ended, system.cut_short, restarts, anyio.current_time() - started)


def _set_apart() -> None:
    """Take what is there from the garbage collector's sight: it lives to the end of the run.

    Modules, questions and actors are some 80,000 objects. Each full collection would look at
    all of them, while the event loop serves nobody. What a call leaves behind is freed without
    the collector; it need not look every 700 objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_OBJECTS)
