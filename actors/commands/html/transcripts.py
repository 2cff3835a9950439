"""Questions, outcomes and transcripts as the page's script reads them.

What the rollouts over a video hold is packed together: equal lines once, deflated, base64, so that
nothing in it can be taken for markup. The script unpacks what is looked at, nothing else.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from actors.commands.html.markup import legible
from actors.commands.html.passes import Pass
from actors.commands.html.story import Questioned
from actors.commands.html.words import count
from actors.ledger.reader import Reader
from protocol.ledger import Where
from protocol.rows import OutcomeRow, TraceRow

__all__ = ["MOST_CHARS", "Embedded", "Steps", "embed", "index_of", "pack", "steps_of"]

MOST_CHARS = 24_000_000
"""Characters of packed transcripts in a page: what a browser opens without a thought."""

Steps = Callable[[str, str], Sequence[TraceRow]]
"""The stored steps of a pass (``run_key``) and a question."""


Numbered = tuple[int, OutcomeRow]


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """chunks: packed, by their number. of: (question, pass) by number -> the number of its chunk.

    held, left_out: rollouts whose steps are in the page, and those that found no room.
    """

    chunks: tuple[str, ...]
    of: dict[tuple[int, int], int]
    held: int
    left_out: int


class _Chunk(msgspec.Struct, frozen=True):
    """The rollouts over a video. lines: every line of text once; a text is its lines' numbers.

    steps: by the numbers of question and pass, ``12.3``.
    """

    lines: list[str]
    steps: dict[str, list[tuple[object, ...]]]


def pack(value: object) -> str:
    """As JSON, deflated, base64."""
    return b64encode(zlib.compress(msgspec.json.encode(value), 9)).decode("ascii")


def steps_of(reader: Reader | None) -> Steps:
    """Reads the steps of one rollout at a time, so that no run is too large."""

    def read(run_key: str, question_id: str) -> Sequence[TraceRow]:
        if reader is None:
            return ()
        return reader.rows(
            TraceRow,
            Where(column="run_key", value=run_key),
            Where(column="question_id", value=question_id),
        )

    return read


def embed(
    questions: Sequence[Questioned],
    passes: Sequence[Pass],
    read: Steps,
    first: Collection[str] = (),
    most: int = MOST_CHARS,
) -> Embedded:
    """Pack the rollouts, video by video, until ``most`` characters are full.

    first: the passes that come first; then those over val, test and the steps; of each those of
    videos with a wrong answer.
    """
    numbers = {one.key: number for number, one in enumerate(passes)}
    chunks: list[str] = []
    of: dict[tuple[int, int], int] = {}
    held = left_out = 0
    room = most
    for rows in _portions(questions, passes, first):
        chunk, places = _chunk(rows, numbers, read)
        if not places:
            continue
        packed = pack(chunk)
        if len(packed) > room:
            left_out += len(places)
            continue
        room -= len(packed)
        held += len(places)
        of |= dict.fromkeys(places, len(chunks))
        chunks.append(packed)
    return Embedded(chunks=tuple(chunks), of=of, held=held, left_out=left_out)


def _portions(
    questions: Sequence[Questioned], passes: Sequence[Pass], first: Collection[str]
) -> Iterator[list[Numbered]]:
    """The outcomes over a video, in the order in which there is room for them."""
    tiers = {one.key: 0 if one.key in first else 1 if one.main else 2 for one in passes}
    portions: defaultdict[tuple[int, str], list[Numbered]] = defaultdict(list)
    for index, asked in enumerate(questions):
        for row in asked.outcomes:
            portions[tiers[row.run_key], asked.video_id].append((index, row))

    def rank(key: tuple[int, str]) -> tuple[int, bool]:
        return key[0], all(row.outcome == "right" for _, row in portions[key])

    for key in sorted(portions, key=rank):
        yield portions[key]


def _chunk(
    rows: Sequence[Numbered], numbers: Mapping[str, int], read: Steps
) -> tuple[_Chunk, list[tuple[int, int]]]:
    """The rollouts that have steps, and their places: question and pass by number."""
    lines: dict[str, int] = {}

    def put(text: str) -> list[int]:
        told = legible(text)
        return [lines.setdefault(line, len(lines)) for line in told.split("\n")] if told else []

    steps: dict[str, list[tuple[object, ...]]] = {}
    places = []
    for index, row in rows:
        stored = read(row.run_key, row.question_id)
        if not stored:
            continue
        places.append((index, numbers[row.run_key]))
        steps[f"{index}.{numbers[row.run_key]}"] = [
            (
                None if step.tool is None else legible(step.tool),
                put(step.thought),
                put(step.raw if step.tool is None else step.arguments),
                put(step.observation),
                put(step.notice),
                legible(_flags(step)),
                step.prompt_tokens,
                step.completion_tokens,
                round(step.seconds, 1),
            )
            for step in stored
        ]
    return _Chunk(list(lines), steps), places


def _flags(step: TraceRow) -> str:
    """What is to be said of a step, in words."""
    try:
        told = list(msgspec.json.decode(step.flags, type=list[str]))
    except msgspec.MsgspecError:
        told = [step.flags]
    if step.dropped:
        told.append(f"{step.dropped} earlier observations left out")
    return ", ".join(told).replace("_", " ")


# -- the index --------------------------------------------------------------------------


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    """An outcome. chunk: -1: its steps are not in the page."""

    in_pass: int
    outcome: str
    letter: str
    confidence: float | None
    told: str
    finding: str
    chunk: int


class _Asked(msgspec.Struct, frozen=True):
    id: str
    video: str
    task: str
    pool: str
    known: bool
    text: str
    options: tuple[str, ...]
    gold: str
    answers: list[_Answer]


class _Index(msgspec.Struct, frozen=True):
    passes: list[tuple[str, str]]
    questions: list[_Asked]


def index_of(
    questions: Sequence[Questioned],
    passes: Sequence[Pass],
    findings: dict[tuple[str, str], str],
    embedded: Embedded,
) -> str:
    """Questions and outcomes, packed: what the script needs before it shows a transcript."""
    numbers = {one.key: number for number, one in enumerate(passes)}
    asked = []
    for index, one in enumerate(questions):
        answers = [_seeded(one, numbers)] if one.seed is not None else []
        for row in sorted(one.outcomes, key=lambda row: numbers[row.run_key]):
            number = numbers[row.run_key]
            answers.append(
                _Answer(
                    in_pass=number,
                    outcome=row.outcome,
                    letter=row.letter or "",
                    confidence=None if row.outcome == "missing" else round(row.confidence, 2),
                    told=legible(_told(row)),
                    finding=legible(findings.get((row.run_key, row.question_id), "")),
                    chunk=embedded.of.get((index, number), -1),
                )
            )
        asked.append(
            _Asked(
                id=legible(one.question_id),
                video=legible(one.video_id),
                task=legible(one.task_type),
                pool=one.pool,
                known=one.known,
                text=legible(one.text),
                options=tuple(map(legible, one.options)),
                gold=one.gold,
                answers=answers,
            )
        )
    return pack(_Index([(one.label, one.key) for one in passes], asked))


def _seeded(one: Questioned, numbers: dict[str, int]) -> _Answer:
    assert one.seed is not None, "asked only where the seed has one"
    letter, right = one.seed
    return _Answer(
        in_pass=numbers["seed"],
        outcome="right" if right else "wrong",
        letter=letter,
        confidence=None,
        told="from the seed's baseline, which keeps no steps",
        finding="",
        chunk=-1,
    )


def _told(row: OutcomeRow) -> str:
    """The rest of an outcome, in a line."""
    if row.outcome == "missing":
        return f"{row.missing_kind or 'unknown'}: {row.detail}".replace("_", " ")
    parts = [
        count(row.n_steps, "step"),
        f"{row.prompt_tokens:,} + {row.completion_tokens:,} tokens",
        f"{row.seconds:.1f} s",
    ]
    if row.stop != "submitted":
        parts.append(row.stop.replace("_", " "))
    if row.forced_by:
        parts.append(f"forced by {row.forced_by}")
    return ", ".join(parts)
