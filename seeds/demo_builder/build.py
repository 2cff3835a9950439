"""Everything together: the bytes of each file of the folder, checked before they are handed out.

Pure: reads only ``documents/``; ``__main__`` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from actors.twin.world import Planted, World, holds
from actors.workspace.files import pretty_json, sha256_hex
from actors.workspace.versions import VersionMeta
from seeds.demo_builder.choice import shuffled
from seeds.demo_builder.classes import LESSONS, TRAPS
from seeds.demo_builder.fillers import FILLERS
from seeds.demo_builder.plan import (
    Slot,
    base_of,
    make_plan,
    needs_of,
    prompt_needs,
    video_kinds,
)
from seeds.demo_builder.prompts import PROMPT_FILLERS, PROMPT_LESSONS, PROMPT_TRAPS
from seeds.demo_builder.questions import Draft, Evidence, draft_question
from seeds.demo_builder.trees import build_tree, encode_tree
from seeds.demo_builder.videos import facts_of, video_ids

__all__ = ["DOCUMENTS", "Built", "Proof", "QuestionRow", "build", "write_files"]

DOCUMENTS = Path(__file__).parent / "documents"
_LETTERS = "ABCD"


class QuestionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of questions.jsonl; options are bodies without labels."""

    question_id: str
    video_id: str
    task_type: str
    question: str
    options: tuple[str, ...]
    answer: str
    domain: str
    sub_category: str
    duration: str


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Why a question's answer is right. decisive: see ``questions.Draft``."""

    question_id: str
    kind: str
    evidence: tuple[Evidence, ...]
    decisive: str


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The folder: bytes by relative path, and what the builder knows beside them."""

    files: Mapping[str, bytes]
    rows: tuple[QuestionRow, ...]
    proofs: tuple[Proof, ...]
    world: World


def build() -> Built:
    """Make the folder's content. Raises ValueError naming what is inconsistent."""
    plan = make_plan()
    ids = video_ids()
    kinds = video_kinds(plan)
    facts = [facts_of(index, video_id, kinds[index]) for index, video_id in enumerate(ids)]
    names = _question_ids(plan)
    letters = _gold_letters(plan, names)
    beside = prompt_needs(names, plan)
    rows: list[QuestionRow] = []
    proofs: list[Proof] = []
    planted: list[Planted] = []
    for slot, name in zip(plan, names, strict=True):
        video = facts[slot.video]
        draft = draft_question(video, slot.task_type, slot.kind)
        rows.append(
            QuestionRow(
                question_id=name,
                video_id=video.video_id,
                task_type=slot.task_type,
                question=draft.question,
                options=_options(draft, letters[name], name),
                answer=letters[name],
                domain=video.theme.domain,
                sub_category=video.theme.sub_category,
                duration="medium",
            )
        )
        proofs.append(
            Proof(
                question_id=name,
                kind=slot.kind,
                evidence=draft.evidence,
                decisive=draft.decisive,
            )
        )
        needs = (*needs_of(slot), *beside.get(name, ()))
        planted.append(Planted(question_id=name, base=base_of(slot, name), needs=needs))
    world = World(
        name="demo",
        lessons=(*LESSONS, *PROMPT_LESSONS),
        traps=(*TRAPS, *PROMPT_TRAPS),
        fillers=(*FILLERS, *PROMPT_FILLERS),
        questions=tuple(planted),
    )
    files = {f"trees/{video.video_id}.json": encode_tree(build_tree(video)) for video in facts}
    files["questions.jsonl"] = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    files["world.json"] = _world_json(world)
    files |= _documents("skills") | _documents("prompts")
    _check_keys(world, files)
    return Built(files=files, rows=tuple(rows), proofs=tuple(proofs), world=world)


def _question_ids(plan: tuple[Slot, ...]) -> list[str]:
    """``demo-017-2``: video number and place among its questions."""
    return [f"demo-{slot.video + 1:03d}-{at % 3 + 1}" for at, slot in enumerate(plan)]


def _gold_letters(plan: tuple[Slot, ...], names: list[str]) -> dict[str, str]:
    """Each letter equally often, in every class as far as its size allows."""
    order: list[str] = []
    for task_type in dict.fromkeys(slot.task_type for slot in sorted(plan, key=_by_class)):
        mine = [n for slot, n in zip(plan, names, strict=True) if slot.task_type == task_type]
        order += shuffled(mine, "gold", task_type)
    return {name: _LETTERS[at % 4] for at, name in enumerate(order)}


def _by_class(slot: Slot) -> str:
    return slot.task_type


def _options(draft: Draft, gold: str, name: str) -> tuple[str, ...]:
    bodies = shuffled(draft.wrong, "options", name)
    bodies.insert(_LETTERS.index(gold), draft.gold)
    if len({body.casefold() for body in bodies}) != 4:
        raise ValueError(f"{name}: options are not different: {bodies}")
    return tuple(bodies)


def _world_json(world: World) -> bytes:
    """One lesson, trap, filler or question a line."""
    encode = msgspec.json.encode
    lists = {
        "lessons": world.lessons,
        "traps": world.traps,
        "fillers": world.fillers,
        "questions": world.questions,
    }
    parts = [b'"name": ' + encode(world.name)]
    for name, items in lists.items():
        parts.append(encode(name) + b": [\n" + b",\n".join(map(encode, items)) + b"\n]")
    return b"{\n" + b",\n".join(parts) + b"\n}\n"


def _documents(kind: str) -> dict[str, bytes]:
    """Version v1 of the skills or the prompts, with the ``meta.json`` that seals it."""
    root = DOCUMENTS / kind
    texts = {
        path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.md"))
    }
    meta = VersionMeta(
        version="v1",
        parent=None,
        source="seed",
        trigger="demo",
        files={name: sha256_hex(text) for name, text in sorted(texts.items())},
    )
    files = {f"{kind}/v1/{name}": text for name, text in texts.items()}
    files[f"{kind}/v1/meta.json"] = pretty_json(meta)
    return files


def _check_keys(world: World, files: Mapping[str, bytes]) -> None:
    """A key is said by its own line and by nothing else, or the planted truth would be false."""
    said: list[tuple[str, str]] = [
        (path, files[path].decode()) for path in files if path.endswith(".md")
    ]
    said += [(lesson.lesson_id, lesson.text) for lesson in world.lessons]
    said += [(trap.trap_id, trap.text) for trap in world.traps]
    said += [(f"filler {filler.text!r}", filler.text) for filler in world.fillers]
    lessons = [(lesson.lesson_id, lesson.key) for lesson in world.lessons]
    for owner, key in [*lessons, *((trap.trap_id, trap.key) for trap in world.traps)]:
        holders = [place for place, text in said if holds(text, key)]
        if holders != [owner]:
            raise ValueError(f"key {key!r} of {owner} is said by {holders}")


def write_files(built: Built, folder: Path) -> None:
    """Write every file below ``folder``; files of other names are left alone."""
    for name, content in sorted(built.files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
