"""The knobs, one section per room, handed to an actor when it is built.

Every value comes from ``config/default.yaml`` or what overlays it: no field has a
default here, so that a knob cannot hide. Units stand in the names (``_s`` seconds,
``_chars`` characters). Ranges are checked by ``actors.config`` at start.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

__all__ = [
    "AgentSettings",
    "CacheSettings",
    "Config",
    "DataSettings",
    "DiagnoserSettings",
    "EmbeddingSettings",
    "Endpoint",
    "EvolverSettings",
    "FrameSettings",
    "GateSettings",
    "LimitSettings",
    "LlmSettings",
    "RoleSettings",
    "RunSettings",
    "RuntimeSettings",
    "SplitSettings",
    "TrainerSettings",
    "TwinSettings",
]

Positive = Annotated[int, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the configuration."""


class RunSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """name: names the workspace folder. seed: the one source of every random choice."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    seed: Count
    workspaces: str
    log_level: Literal["debug", "info", "warning", "error"]


class RuntimeSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Supervision. inject_crash: testing switch, ``actor@n`` crashes on its n-th message."""

    mailbox_size: Positive
    max_restarts: Count
    period_s: Seconds
    backoff_s: Seconds
    backoff_cap_s: Seconds
    drain_s: Seconds
    stats_s: Seconds
    ask_timeout_s: Seconds
    inject_crash: tuple[str, ...]


class Endpoint(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An OpenAI-compatible server and account. base_url ``twin`` is the embedded simulator.

    api_key_env: the *name* of the environment variable with the key; null: no key.
    concurrency: requests in flight at most; null: ``llm.concurrency``.
    json_output: what the server can be held to: a JSON schema, any JSON object, or nothing.
    extra_body: fields of the request that are passed through untouched
        (``chat_template_kwargs``, thinking switches, ``stop``, ``min_p``).
    usd_per_m_prompt, usd_per_m_completion: price of a million tokens; null: not counted.
    """

    name: str
    base_url: str
    model: str
    roles: tuple[Literal["search", "judge", "evolve", "vision"], ...]
    api_key_env: str | None = None
    concurrency: Positive | None = None
    json_output: Literal["schema", "object", "none"] = "schema"
    extra_body: dict[str, object] = {}
    usd_per_m_prompt: Annotated[float, Meta(ge=0)] | None = None
    usd_per_m_completion: Annotated[float, Meta(ge=0)] | None = None


class RoleSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sampling of a role; null leaves the server's own default.

    extra_body: as of an endpoint, for every endpoint that serves the role.
    """

    temperature: float | None
    top_p: float | None
    max_tokens: Positive | None
    extra_body: dict[str, object] = {}


class LlmSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The chat client. first_answer_s: never longer than outage_s."""

    endpoints: tuple[Endpoint, ...]
    search: RoleSettings
    judge: RoleSettings
    evolve: RoleSettings
    vision: RoleSettings
    concurrency: Positive
    concurrency_start: Positive
    send_seed: bool
    attempts: Positive
    retry_share: Share
    retry_reserve: Positive
    outage_s: Seconds
    first_answer_s: Seconds
    connect_s: Seconds
    first_token_s: Seconds
    idle_s: Seconds
    attempt_s: Seconds
    total_s: Seconds
    backoff_s: Seconds
    backoff_cap_s: Seconds
    retry_after_cap_s: Seconds
    breaker_failures: Positive
    breaker_cooldown_s: Seconds


class LimitSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a workspace may spend in all its runs; null: no limit. Reaching one stops in order."""

    max_calls: Positive | None
    max_tokens: Positive | None
    max_usd: Annotated[float, Meta(gt=0)] | None


class CacheSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answered chats. ttl_s is positive: there is no "for ever" (row P1-1).

    backend: ``auto`` is Redis where ``REDIS_URL`` names one, else SQLite.
    """

    backend: Literal["auto", "sqlite", "redis", "none"]
    ttl_s: Positive
    redis_url: str | None


class DataSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The seed to train from, the questions and the video trees.

    duration: only questions of this duration class (``long``); null: all.
    exclude: names a file of question ids that are known to be wrong; null: none.
    search: how nodes are ranked; everything but ``bm25`` needs the section ``embedding``.

    Relative paths are looked for beside the config file, in the current folder, then among what
    the program brings along: in the checkout, or in the installed package.
    """

    seed: str
    questions: str
    duration: str | None
    exclude: str | None
    trees: str
    batch_size: Positive
    design_share: Share
    eval_min_per_class: Positive
    trainable_min_units: Positive
    tree_cache: Positive
    search: Literal["bm25", "embedding", "hybrid"]


class SplitSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How ``trm seed`` and ``trm split`` divide the videos; a run's pools are frozen.

    n_trainval, n_test: videos. val_ratio: share of trainval's questions that go to val.
    val_wrong_min: questions answered wrong in the baseline that val must hold.
    """

    n_trainval: Positive
    n_test: Count
    val_ratio: Annotated[float, Meta(gt=0, lt=1)]
    val_wrong_min: Count


class FrameSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pictures of key frames, as the agent is shown them. longest_px: of the longer side."""

    longest_px: Annotated[int, Meta(ge=16, le=8192)]
    jpeg_quality: Annotated[int, Meta(ge=1, le=95)]
    cache_mb: Positive


class EmbeddingSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts as vectors, for ``data.search``.

    base_url: an OpenAI-compatible server; ``local``: ``model`` is a folder with a static model
        (the extra ``embed``); null: there is none.
    query_prefix, document_prefix: what the model wants to stand before a text.
    chunk_chars: longer nodes are embedded in overlapping parts of this size.
    index: the folder of the index files, one per video and model.
    """

    base_url: str | None
    model: str | None
    api_key_env: str | None
    query_prefix: str
    document_prefix: str
    chunk_chars: Annotated[int, Meta(ge=100)]
    batch: Positive
    concurrency: Positive
    attempts: Positive
    timeout_s: Seconds
    backoff_s: Seconds
    backoff_cap_s: Seconds
    index: str


class AgentSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agent: its budgets, and how it calls, sees and is told what to do.

    token_budget: of one rollout, prompts and completions of all its calls; null: no limit.
    max_prompt_tokens: of one request; older observations are left out of a longer one.
    skill_routing: ``oracle`` hands the agent the skill of the question's class, by the
        benchmark's own label; with ``manual`` it does not see the label and chooses a skill.
    vision: whether pictures go to the agent (``inline``), to the vision role with the agent's
        question (``describe``), or to nobody (``none``: the tool is not offered).
    """

    concurrency: Positive
    max_steps: Positive
    max_parse_failures: Positive
    search_k: Positive
    time_budget_s: Seconds
    token_budget: Positive | None
    max_prompt_tokens: Annotated[int, Meta(ge=1000)]
    tool_calls: Literal["json", "native"]
    skill_routing: Literal["oracle", "manual"]
    vision: Literal["none", "inline", "describe"]


class DiagnoserSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """max_degraded_share: above it a step is aborted (row P1-5).

    max_case_chars: of a trajectory in a case pack.
    """

    concurrency: Positive
    max_degraded_share: Share
    max_trace_chars: Positive
    max_case_chars: Positive


class EvolverSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Edits. edit_budget_*: the learning rate at the first and the last step of the run.

    prompt_edit_budget: edits per epoch of the system prompt and of each tool prompt.
    consolidate_above: notes in an appendix above which it is compacted.
    similarity: from this share of common words on, an edit counts as one that was rejected.
    """

    concurrency: Positive
    minibatch: Positive
    edit_budget_start: Positive
    edit_budget_end: Positive
    schedule: Literal["constant", "linear", "cosine"]
    max_skill_chars: Positive
    max_growth: Annotated[float, Meta(gt=0, le=100)]
    max_notes: Positive
    consolidate_above: Positive
    max_momentum_chars: Positive
    max_prompt_chars: Positive
    prompt_edit_budget: Positive
    similarity: Annotated[float, Meta(gt=0, le=1)]
    max_trace_chars: Positive


class GateSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How edits are tested. fresh_after: rejections after which a snapshot is redrawn.

    design: ``ladder``: one candidate after another (GATE.md); ``factorial``: all undecided edits
        together, decided at the end. The fields below it are of the factorial design alone.
    q: bound of the share of adopted edits that change nothing; profile growth has .20.
    fold: share of a class's units that proposals may see. candidates: edits, notes and momentum
        rules per epoch and class, and as many edits of all prompts together.
    """

    profile: Literal["balanced", "growth", "audit"]
    alpha_small: Annotated[float, Meta(gt=0, lt=1)]
    alpha_large: Annotated[float, Meta(gt=0, lt=1)]
    small_units: Positive
    seed_draw: bool
    draws_small: Positive
    draws_large: Positive
    ema_decay: Annotated[float, Meta(ge=0, lt=1)]
    max_missing_share: Share
    futility_power: Share
    harm_e: Annotated[float, Meta(gt=1)]
    missing_retries: Count
    fresh_after: Positive
    design: Literal["ladder", "factorial"] = "ladder"
    q: Annotated[float, Meta(gt=0, lt=1)] = 0.15
    cap: Annotated[float, Meta(gt=0, lt=1)] = 0.1
    fold: Annotated[float, Meta(gt=0, lt=1)] = 0.25
    drop_harm: Annotated[float, Meta(gt=0, lt=1)] = 0.3
    candidates: Positive = 4
    budget: Positive = 3852


class TrainerSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Epochs and decisions on whole packages. early_stop_patience: epochs (row P0-5).

    min_coverage: share of a pass that must be answered. max_unreadable_share: of the answers of a
    pass or a gate's block; where more are no actions, nothing is decided. slow_questions:
    compared by the slow update; slow_harm_p: it is dropped when the paired test on val finds harm
    at this level.
    """

    epochs: Positive
    early_stop_patience: Positive
    min_coverage: Share
    max_unreadable_share: Share
    run_holdout_eval: bool
    max_batches: Positive | None
    slow_update: bool
    slow_questions: Positive
    slow_harm_p: Annotated[float, Meta(gt=0, lt=1)]


class TwinSettings(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The simulator: shares of its editor's proposals, noise of its judge, service time.

    hostile: the share of the editor's replies that attack the documents; not one of the four
    shares that make 1.
    """

    world: str
    world_seed: Count
    helpful: Share
    useless: Share
    harmful: Share
    malformed: Share
    hostile: Share
    judge_noise: Share
    chunk_delay_s: Annotated[float, Meta(ge=0)]


class Config(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration of a run."""

    run: RunSettings
    runtime: RuntimeSettings
    llm: LlmSettings
    limits: LimitSettings
    cache: CacheSettings
    data: DataSettings
    split: SplitSettings
    frames: FrameSettings
    embedding: EmbeddingSettings
    agent: AgentSettings
    diagnoser: DiagnoserSettings
    evolver: EvolverSettings
    gate: GateSettings
    trainer: TrainerSettings
    twin: TwinSettings
