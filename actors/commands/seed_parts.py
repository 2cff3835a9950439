"""The parts of a seed put together: documents, baseline, split (row seed).

What ``trm seed`` and the demo's builder share. Above the rooms; decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from actors.dataset.pools import load_frozen
from actors.workspace.atomic import write_atomic
from actors.workspace.files import pretty_json
from actors.workspace.seed import POOLS, SPLIT_MANIFEST, Seed, init_seed
from actors.workspace.versions import read_prompts, read_skills, seal_version
from protocol.dataset import Question
from protocol.documents import Package, PackageTexts, Skill
from protocol.seed import SplitManifest

__all__ = ["complete_seed", "read_documents", "read_skill_files"]

_FIRST = "v1"


def read_documents(skills_dir: Path, prompts_dir: Path) -> PackageTexts:
    """Two folders of Markdown as the package that a seed would seal them into.

    Raises VersionError naming the document that cannot be used.
    """
    with TemporaryDirectory(prefix="trm-documents-") as scratch:
        skills, prompts = Path(scratch) / "skills", Path(scratch) / "prompts"
        seal_version(skills_dir, skills, _FIRST, kind="skills", trigger="read")
        seal_version(prompts_dir, prompts, _FIRST, kind="prompts", trigger="read")
        return PackageTexts(
            package=Package(skills=_FIRST, prompts=_FIRST),
            skills=read_skills(skills, _FIRST),
            prompts=read_prompts(prompts, _FIRST),
        )


def read_skill_files(skills_dir: Path) -> tuple[Skill, ...]:
    """A folder of skills, sealed or not. Raises VersionError naming the one that is no skill."""
    with TemporaryDirectory(prefix="trm-documents-") as scratch:
        skills = Path(scratch) / "skills"
        seal_version(skills_dir, skills, _FIRST, kind="skills", trigger="read")
        return read_skills(skills, _FIRST)


def complete_seed(
    out: Path,
    name: str,
    *,
    run_id: str,
    baseline_db: Path,
    pools_json: bytes,
    manifest: SplitManifest,
    questions: Iterable[Question],
    skills_dir: Path,
    prompts_dir: Path,
    subtitles: bool,
    agent: str,
    tool_version: str,
    force: bool,
) -> Seed:
    """Make ``out`` a seed; nothing in it changes unless all parts fit together.

    baseline_db: its bytes become the seed's. The seed is first made whole elsewhere and held
    against the questions, then in its place.

    Raises what ``init_seed`` and ``load_frozen`` raise.
    """
    with TemporaryDirectory(prefix="trm-seed-") as scratch:
        parts = Path(scratch)
        write_atomic(parts / POOLS, pools_json)
        write_atomic(parts / SPLIT_MANIFEST, pretty_json(manifest))

        def make(target: Path, *, replace: bool) -> Seed:
            return init_seed(
                target,
                name,
                baseline_run_id=run_id,
                baseline_db=baseline_db,
                pools_json=parts / POOLS,
                split_manifest=parts / SPLIT_MANIFEST,
                skills_dir=skills_dir,
                prompts_dir=prompts_dir,
                subtitles=subtitles,
                agent=agent,
                tool_version=tool_version,
                force=replace,
            )

        rehearsed = make(parts / "seed", replace=False)
        load_frozen(rehearsed.folder, questions)
        return make(out, replace=force)
