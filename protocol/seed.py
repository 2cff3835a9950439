"""The files of a seed that more than one room reads: data, not messages.

``baseline.db`` holds ``BaselinePrediction`` and ``BaselineDiagnosis`` rows (the fields are
the columns), ``pools.json`` is a ``Pools``, ``split_manifest.json`` a ``SplitManifest`` and
``seed.json`` a ``SeedInfo``. A field that is not listed here is an error, so that a
misspelled key cannot hide. Rows W-1, W-2, P2-1 and seed.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

__all__ = [
    "BaselineDiagnosis",
    "BaselinePrediction",
    "Pools",
    "SeedInfo",
    "SplitManifest",
    "SplitParameters",
]

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]


class SeedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JSON file of a seed."""


class BaselinePrediction(SeedFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question's answer in the baseline run. letter None: no valid answer, which is wrong."""

    question_id: str
    video_id: str
    task_type: str
    letter: str | None
    right: bool
    confidence: float


class BaselineDiagnosis(SeedFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a baseline answer was wrong. fingerprint: SHA-256 of the question that was judged.

    cause: ``defect``, ``lapse`` or ``uncertain``; None if the judge failed.
    """

    fingerprint: str
    question_id: str
    error_type: str
    cause: str | None
    degraded: bool
    finding: str


class Pools(SeedFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Question ids by pool, each sorted. Disjoint by video."""

    diag: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]

    def ids(self, pool: Literal["diag", "val", "test"]) -> tuple[str, ...]:
        """The ids of one pool by its name."""
        return {"diag": self.diag, "val": self.val, "test": self.test}[pool]


class SplitParameters(SeedFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a split follows from, beside the questions and the baseline's outcomes.

    n_trainval, n_test: videos. val_ratio: share of trainval's questions that go to val.
    val_wrong_min: questions answered wrong in the baseline that val must hold.
    """

    seed: Count
    n_trainval: Count
    n_test: Count
    val_ratio: Annotated[float, Meta(gt=0, lt=1)]
    val_wrong_min: Count


class SplitManifest(SeedFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a ``pools.json`` comes from. pools_sha256: of the file's bytes.

    dataset_fingerprint: of the questions that are left. excluded: ids of questions that were
    left out by name, sorted; they are in no pool.
    """

    pools_sha256: Sha256
    baseline_run_id: Name
    parameters: SplitParameters
    dataset_fingerprint: Sha256
    tool_version: str
    excluded: tuple[Name, ...] = ()


class SeedInfo(SeedFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``seed.json``. subtitles: whether the baseline's video trees had subtitles.

    agent: who answered the baseline. A run whose own ``actors.config.agent_of`` is the same text
    takes the baseline's answers as the seed package's first draw; any other run draws its own and
    uses them for the split only. ``agent_of`` begins with ``model ``; answers of another program
    are recorded as ``foreign: ...``, which therefore never equals a run's own agent.
    baseline_sha256: of baseline.db's bytes; None in seeds made before it was recorded.
    """

    name: Name
    baseline_run_id: Name
    dataset_fingerprint: Sha256
    pools_sha256: Sha256
    skills_version: Name
    prompts_version: Name
    subtitles: bool
    agent: Name
    tool_version: str
    baseline_sha256: Sha256 | None = None
