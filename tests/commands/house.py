"""A made-up workspace with a history: two epochs, accepted and rejected steps, a slow update."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from actors.config import dump_config, load_config
from actors.ledger import schema
from actors.main import main
from actors.workspace.create import init_workspace_from_seed
from actors.workspace.manifest import read_manifest, write_manifest
from actors.workspace.versions import write_prompts, write_skills
from protocol.documents import Document, Package, Skill, text_hash
from protocol.rows import (
    AnyRow,
    DecisionRow,
    DocumentRow,
    EditRow,
    EpochRow,
    EvaluationRow,
    OutcomeRow,
    SlowRow,
    StepRow,
    TraceRow,
)
from tests.protocol.samples import sample
from tests.workspace.material import make_seed, skill_text, write_parts

__all__ = ["CLASS", "Made", "Trm", "add_rows", "edit_row", "make_history", "row"]

CLASS = "Counting Problem"
QUESTIONS = (
    (
        "001-1",
        "How many red boats lie in the harbour at noon today?",
        "Three small red boats lie there",
    ),
    ("001-2", "What happens first?", "A gull"),
    ("002-1", "Who waves?", "The man in the yellow coat"),
    ("003-1", "Where is it?", "Behind the old mill at the river"),
)

T = TypeVar("T", bound=AnyRow)


class Done:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Trm:
    """Runs ``bin/trm`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path, expect: int = 0) -> Done:
        """Run a command and hold its exit code to what is expected."""
        self._capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        out, err = self._capsys.readouterr()
        assert code == expect, f"exit {code}\n{out}\n{err}"
        return Done(code, out, err)


class Made(msgspec.Struct, frozen=True):
    """The workspace and the texts that its class's skill had, from the seed's on."""

    path: Path
    texts: tuple[str, ...]


def row(kind: type[T], /, **changes: object) -> T:
    """A row with every column filled, and these as said."""
    made = msgspec.structs.replace(sample(kind), **changes)
    assert isinstance(made, kind)
    return made


def edit_row(run_key: str, position: int, content: str, **changes: object) -> EditRow:
    """An applied edit."""
    fields: dict[str, object] = {
        "run_key": run_key,
        "position": position,
        "task_type": CLASS,
        "op": "append",
        "target": "",
        "content": content,
        "support": '["001-1"]',
        "reason": "a rule was lacking",
        "status": "applied",
        "detail": "",
        "document": "skill",
    }
    return row(EditRow, **(fields | changes))


def add_rows(workspace: Path, *rows: AnyRow) -> None:
    """Write rows as the ledger writes them."""
    with closing(sqlite3.connect(workspace / "run.db")) as connection, connection:
        for statement in schema.ddl():
            connection.execute(statement)
        for one in rows:
            connection.execute(schema.upsert_sql(type(one)), schema.parameters(one))


def fresh_workspace(folder: Path, *assignments: str) -> Path:
    """A workspace that no step was made in. assignments: what differs in its configuration."""
    write_parts(folder / "parts")
    seed = make_seed(folder / "parts", folder / "seed").folder
    questions = folder / "questions.jsonl"
    questions.write_bytes(
        b"".join(
            msgspec.json.encode(
                {
                    "question_id": question_id,
                    "video_id": question_id[:3],
                    "task_type": CLASS,
                    "question": question,
                    "options": [gold, "no", "two", "never"],
                    "answer": "A",
                }
            )
            + b"\n"
            for question_id, question, gold in QUESTIONS
        )
    )
    config = dump_config(load_config(None, ["data.questions=../questions.jsonl", *assignments]))
    init_workspace_from_seed(
        seed,
        folder / "run",
        "made-up-1",
        settings_sha256="5" * 64,
        trees_sha256="7" * 64,
        beside={"config.yaml": config.encode()},
    )
    return folder / "run"


def make_history(folder: Path, note: str = "Read every option.") -> Made:
    """v1, epoch 1's accepted step is v2, its slow update v3 and prompts/v2, epoch 2's step v4.

    best_hard is v4 with prompts/v2. note: what the appendix note of epoch 2 says.
    """
    workspace = fresh_workspace(folder)
    seed = skill_text(CLASS)
    stepped = seed.replace("- Look twice.\n", "- Look twice.\n- Count twice.\n")
    slowed = f"{stepped}\n<!-- MOMENTUM_START -->\nKeep counting in order.\n<!-- MOMENTUM_END -->\n"
    noted = slowed.replace(
        "\n<!-- MOMENTUM_START",
        "- Name the unit.\n\n<!-- APPENDIX_START -->\n## Reminders\n\n"
        f"- {note}\n<!-- APPENDIX_END -->\n\n<!-- MOMENTUM_START",
    )
    for text, trigger in ((stepped, "epoch-1"), (slowed, "epoch-1-slow"), (noted, "epoch-2")):
        skills = workspace / "skills"
        parent = read_manifest(workspace).current.skills
        version = write_skills(skills, parent, [Skill(task_type=CLASS, text=text)], trigger)
        _point(workspace, Package(skills=version, prompts="v1"))
    system = "You answer questions.\nSay how sure you are.\n"
    prompts = write_prompts(
        workspace / "prompts", "v1", [Document(name="system", text=system)], "epoch-1-slow"
    )
    _point(workspace, Package(skills="v4", prompts=prompts))
    add_rows(
        workspace,
        *_steps(seed, stepped, slowed, noted),
        *_edits(note),
        *(_text(text) for text in (seed, stepped, slowed, noted, system)),
        *_passes(),
    )
    return Made(workspace, (seed, stepped, slowed, noted))


def _point(workspace: Path, package: Package) -> None:
    manifest = read_manifest(workspace)
    write_manifest(
        workspace,
        msgspec.structs.replace(
            manifest, current=package, best_hard=package, best_mixed=package, epoch=2
        ),
    )


def _text(text: str) -> DocumentRow:
    return DocumentRow(hash=text_hash(text), task_type=CLASS, text=text)


def _steps(seed: str, stepped: str, slowed: str, noted: str) -> list[AnyRow]:
    made: list[AnyRow] = []
    for epoch, step, before, after, result, p in (
        (1, 1, seed, seed, "reject", 1.0),
        (1, 2, seed, stepped, "accept", 0.04),
        (2, 1, slowed, noted, "accept", 0.01),
    ):
        key = f"e{epoch}/counting-problem/s{step}"
        made.append(
            row(
                StepRow,
                run_key=key,
                epoch=epoch,
                step=step,
                task_type=CLASS,
                skill_before=text_hash(before),
                skill_after=text_hash(after),
                result=result,
            )
        )
        made.append(
            row(
                DecisionRow,
                run_key=key,
                epoch=epoch,
                step=step,
                task_type=CLASS,
                verdict=result,
                p_gate=p,
                lower_bound=0.05 if result == "accept" else None,
                wins=9,
                losses=2,
                in_sample=False,
            )
        )
    made.append(row(SlowRow, epoch=1, result="kept", wins=4, losses=1, pairs=20, p_harm=0.97))
    made += [row(EpochRow, epoch=n, tests=2, accepted=1, sum_alpha=0.2) for n in (1, 2)]
    return made


def _edits(note: str) -> list[AnyRow]:
    first, second = "e1/counting-problem/s2/proposal", "e2/counting-problem/s1/proposal"
    return [
        edit_row("e1/counting-problem/s1/proposal", 0, "- Guess boldly."),
        edit_row(first, 0, "- Count twice.", status="ambiguous"),  # was not what wrote the line
        edit_row(first, 1, "- Count twice.", op="insert_after", target="- Look twice."),
        edit_row(second, 0, "- Name the unit.", support='["001-2","002-1","003-1"]'),
        edit_row(second, 1, note, op="note", support="[]", reason="lapse"),
        edit_row("e1/slow/momentum/counting-problem", 0, "Keep counting in order.", op="momentum"),
        edit_row("e1/slow/system", 0, "Say how sure you are.", task_type="", document="system"),
    ]


def _passes() -> list[AnyRow]:
    made: list[AnyRow] = []
    for key, epoch, pool, kind, package, right in (
        ("e0/val/seed", 0, "val", "seed", ("v1", "v1"), ()),
        ("e2/val/final", 2, "val", "final", ("v4", "v2"), ("002-1",)),
        ("e2/test/final", 2, "test", "final", ("v4", "v2"), ("003-1",)),
        ("e0/test/seed", 0, "test", "seed", ("v1", "v1"), ()),
    ):
        ids = ("002-1",) if pool == "val" else ("003-1",)
        made.append(
            row(
                EvaluationRow,
                run_key=key,
                epoch=epoch,
                pool=pool,
                kind=kind,
                skills_version=package[0],
                prompts_version=package[1],
                planned=len(ids),
                right=len(right),
                missing=0,
                outcomes_key=key,
            )
        )
        made += [
            row(
                OutcomeRow,
                run_key=key,
                question_id=question_id,
                outcome="right" if question_id in right else "wrong",
                missing_kind=None,
            )
            for question_id in ids
        ]
    made.append(
        row(
            TraceRow,
            run_key="e2/counting-problem/s1/rollout",
            question_id="001-2",
            step=1,
            tool="view_node",
            arguments="{}",
            observation="At dawn. A gull lands on the pier before anybody wakes. The sea is calm.",
            node_ids="[]",
            flags="[]",
        )
    )
    return made
