"""Case packs: chosen from stored rows, bounded, the same every time, and without the answer."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.diagnoser.actor import DiagnoserActor
from prompts.trajectory import EmptyTrajectory
from protocol.base import Refused, Request
from protocol.diagnoser import CasePacks, GetCasePacks, PackCase
from protocol.ledger import Select, Selected
from protocol.rows import AnyRow
from tests.diagnoser.make import SETTINGS, call, diagnosed, question, submit
from tests.diagnoser.shelf import LOOK, TOOLS, Shelf, graded, names
from tests.support.fakes import FakeAddress


def texts(packs: CasePacks) -> Iterator[tuple[str, str]]:
    """Every text of a pack that an editor reads, with its question's id."""
    for pack in packs.skills:
        for case in (*pack.failures, *pack.successes):
            yield from ((case.question_id, t) for t in _of_case(case))
    for group in packs.system.groups:
        for case in group.cases:
            yield from ((case.question_id, t) for t in _of_case(case))
    for tools in packs.tools:
        for span in (*tools.failing, *tools.good):
            said = (span.reason, span.arguments, span.observation, span.follows)
            yield from ((span.question_id, t) for t in said)


def _of_case(case: PackCase) -> tuple[str, ...]:
    return (case.reason, case.finding, case.facts, case.trace)


# -- skills -----------------------------------------------------------------------------


def test_two_failures_of_every_error_type_the_defects_first() -> None:
    shelf = Shelf()
    for number, cause in enumerate(["lapse", None, "uncertain", "defect", "lapse"]):
        shelf.add(f"r{number}", judged=diagnosed(cause=cause))
    shelf.add("d1", judged=diagnosed(cause="defect", degraded=True))
    shelf.add("s1", judged=diagnosed(error_type="search_failure", subtype=None, cause="lapse"))
    shelf.add("u1").add("u2").add("u3")
    (pack,) = shelf.packs().skills
    assert names(pack.failures) == ["s1", "r3", "r0", "u1", "u2"]
    assert [(count.error_type, count.wrong) for count in pack.errors] == [
        ("search_failure", 1),
        ("reasoning_failure", 6),
        (None, 3),
    ]
    assert (pack.answered, pack.right, pack.defects, pack.lapses) == (10, 0, 1, 9)
    assert pack.failures[1].reason == "reasoning_failure (logic_error), defect"
    assert pack.failures[3].reason == "wrong, not diagnosed"


def test_the_sure_ones_before_the_unsure() -> None:
    shelf = Shelf().add("a", judged=diagnosed(), rows=(submit(1, 0.3),))
    shelf.add("b", judged=diagnosed(), rows=(submit(1, 0.9),))
    (pack,) = shelf.packs().skills
    assert names(pack.failures) == ["b", "a"]


def test_successes_that_looked_the_shortest_first() -> None:
    """At least two, at most four, about half as many as failures; a lucky guess comes last."""
    look = call(1, "view_node", LOOK, '["v1_L1_000"]')
    shelf = Shelf().add("guess", rows=(submit(1),), outcome="right")
    shelf.add("long", rows=(look, call(2, "view_node", LOOK), submit(3)), outcome="right")
    shelf.add("short", rows=(look, submit(2)), outcome="right")
    (pack,) = shelf.packs().skills
    assert names(pack.successes) == ["short", "long"]
    assert pack.successes[0].reason == "right, after 1 calls"
    assert (pack.right, pack.failures, pack.errors) == (3, (), ())


def test_a_diagnosis_of_an_answer_that_is_right_now_is_left_out() -> None:
    """It was made of an earlier try."""
    (pack,) = Shelf().add("a", judged=diagnosed(), outcome="right").packs().skills
    assert (pack.successes[0].finding, pack.successes[0].cause) == ("", None)


def test_classes_are_kept_apart_and_sorted() -> None:
    shelf = Shelf().add("a", task_type="Order").add("b", task_type="Count")
    assert [pack.task_type for pack in shelf.packs().skills] == ["Count", "Order"]


def test_options_are_shown_to_the_editor_of_a_class_only() -> None:
    shelf = Shelf()
    for number in range(3):
        shelf.add(f"a{number}", rows=(submit(1),), judged=diagnosed())
    packs = shelf.packs()
    assert packs.skills[0].failures[0].options == question().options
    early = next(group for group in packs.system.groups if group.habit == "early_submit")
    assert early.cases
    assert all(case.options == () for case in early.cases)


def test_lost_outcomes_are_counted_and_nobodys_case() -> None:
    packs = Shelf().add("a").add("b", rows=(), outcome="missing").packs()
    assert packs.missing == 1
    assert packs.skills[0].answered == 1


# -- the system prompt ------------------------------------------------------------------


def habit(packs: CasePacks, name: str) -> tuple[int, list[str]]:
    group = next(group for group in packs.system.groups if group.habit == name)
    return group.total, names(group.cases)


def test_habits_across_classes() -> None:
    """Early, sure and wrong, unreadable, unanswered: each of an answer that shows it."""
    looks = [call(n, "view_node", LOOK, '["v1_L1_000"]') for n in range(1, 6)]
    shelf = Shelf()
    for number in range(3):
        shelf.add(f"early{number}", rows=(submit(1, 0.4),))
        shelf.add(f"sure{number}", rows=(*looks, submit(6, 0.8)))
        shelf.add(f"odd{number}", rows=(call(1, None, raw="?"), *looks[1:], submit(6, 0.1)))
        shelf.add(f"none{number}", rows=looks, stop="budget", letter=None)
        shelf.add(f"right{number}", rows=(submit(1, 0.9),), outcome="right")
    packs = shelf.packs()
    for name in ("early", "sure", "odd", "none"):
        habits = {
            "early": "early_submit",
            "sure": "high_conf_wrong",
            "odd": "parse_failures",
            "none": "no_answer",
        }
        assert habit(packs, habits[name]) == (3, [f"{name}{number}" for number in range(3)])
    assert (packs.system.answered, packs.system.right) == (15, 3)


def test_a_rare_habit_is_counted_and_not_shown() -> None:
    """The system prompt is changed for all classes at once: twice is chance."""
    packs = Shelf().add("a", rows=(submit(1),)).add("b", rows=(submit(1),)).packs()
    assert habit(packs, "early_submit") == (2, [])


def test_every_class_comes_before_any_comes_twice() -> None:
    shelf = Shelf()
    for number in range(4):
        shelf.add(f"a{number}", task_type="A", rows=(submit(1),))
    shelf.add("b0", task_type="B", rows=(submit(1),))
    assert habit(shelf.packs(), "early_submit") == (5, ["a0", "b0", "a1"])


def test_an_unknown_budget_leaves_only_those_that_never_looked() -> None:
    """Trajectories of another program: how many calls were allowed is not known."""
    shelf = Shelf()
    for number in range(3):
        shelf.add(f"blind{number}", rows=(submit(1),)).add(f"one{number}")
    assert habit(shelf.packs(max_calls=None), "early_submit")[0] == 3
    assert habit(shelf.packs(max_calls=8), "early_submit")[0] == 6


# -- what holds for all of them ---------------------------------------------------------

SPOKEN = st.lists(
    st.sampled_from(
        (
            *("I take option B,", "so the answer is (C).", "A, not B.", "It rains.", "q-7-1"),
            *("The lamp is lit by the keeper.", "Two gulls fight over bread!", "A boat came."),
            *("x-B_y_L2_001", "Let me look.", '"D"', "\n"),
        )
    ),
    max_size=12,
).map(" ".join)
LONG_OPTIONS = ("The lamp is lit by the keeper.", "A boat.", "Rain.", "Two gulls fight over bread")


@settings(deadline=None, max_examples=60)
@given(
    said=st.lists(SPOKEN, min_size=6, max_size=6),
    kinds=st.lists(st.sampled_from(("right", "wrong")), min_size=6, max_size=6),
    gold=st.sampled_from("BCD"),
    max_chars=st.integers(200, 900),
)
def test_no_text_of_a_pack_tells_the_answer(
    said: list[str], kinds: list[str], gold: str, max_chars: int
) -> None:
    """Neither letters, nor long option texts, nor ids; and every text is bounded."""
    shelf = Shelf()
    for number, (text, kind) in enumerate(zip(said, kinds, strict=True)):
        evidence = f"So:\\n{gold}.\\nThe lamp is lit by the keeper"
        sent = f'{{"answer": "{gold}", "evidence": "{evidence}"}}'
        rows = (
            call(1, "view_node", LOOK, '["v1_L1_000"]', observation=text, thought=text),
            call(2, None, raw=text),
            call(3, "submit_answer", sent, thought=f"It is {gold}."),
        )
        name = f"q-7-{number}"
        judged = diagnosed(finding=text, grades=graded((1, 0.0, 1.0)))
        shelf.add(name, rows=rows, judged=judged, outcome=kind)
        shelf.questions[name] = msgspec.structs.replace(
            question(name), options=LONG_OPTIONS, answer=gold
        )
    packs = shelf.packs(max_chars)
    found = list(texts(packs))
    assert found
    for name, text in found:
        plain = re.sub(r"[\w-]+_L\d+_\d+", "", text)
        assert not re.search(r"(?<![A-Za-z0-9])[BCD](?![A-Za-z0-9])", plain), text
        assert "(A)" not in text
        assert "lamp is lit by" not in text
        assert "gulls fight over" not in text.casefold()
        assert name not in text
        assert len(text) <= max(max_chars, 700)


def full_shelf() -> Shelf:
    """Some of everything."""
    shelf = Shelf()
    for number in range(12):
        shelf.add(
            f"a{number}",
            task_type=f"T{number % 3}",
            run_key=f"e1/t/s{number % 2}",
            judged=diagnosed(grades=graded((1, number / 12, 0.0)))
            if number % 4
            else diagnosed(error_type="mixed", cause="lapse"),
            outcome="right" if number % 5 == 0 else "wrong",
        )
    return shelf


def test_the_order_of_rows_does_not_matter() -> None:
    """The same rows give the same bytes, whoever read them in what order."""
    expected = msgspec.json.encode(full_shelf().packs())
    for seed in range(5):
        shelf = full_shelf()
        shuffler = random.Random(seed)
        for rows in (shelf.outcomes, shelf.traces, shelf.diagnoses):
            shuffler.shuffle(rows)
        assert msgspec.json.encode(shelf.packs()) == expected


def test_packs_are_small_however_much_there_is() -> None:
    shelf = Shelf()
    kinds = ("no_search", "extraction_failure", "search_failure", "reasoning_failure", "mixed")
    for number in range(200):
        shelf.add(
            f"a{number:03}",
            rows=(call(1, None, raw="?"), *(submit(n, 0.9) for n in range(2, 6))),
            judged=diagnosed(error_type=kinds[number % 5]),
            outcome="right" if number % 3 == 0 else "wrong",
        )
    packs = shelf.packs()
    (pack,) = packs.skills
    assert (len(pack.failures), len(pack.successes)) == (10, 4)
    assert all(len(group.cases) <= 3 for group in packs.system.groups)
    assert all(len(p.failing) <= 4 and len(p.good) <= 4 for p in packs.tools)
    assert len(msgspec.json.encode(packs)) < 60_000


def test_other_questions_than_those_that_editors_may_read_are_left_out() -> None:
    """The gate tests on them: nothing of theirs may reach an editor."""
    shelf = Shelf().add("a").add("secret")
    del shelf.questions["secret"]
    packs = shelf.packs()
    assert packs.system.answered == 1
    assert b"secret" not in msgspec.json.encode(packs)


# -- on the wire ------------------------------------------------------------------------


async def asked(shelf: Shelf, *run_keys: str) -> CasePacks | Refused:
    """The actor's reply over a ledger that holds the shelf."""

    async def ledger(request: Request[object]) -> object:
        assert isinstance(request, Select)
        tables: dict[str, Sequence[AnyRow]] = {
            "outcomes": shelf.outcomes,
            "traces": shelf.traces,
            "diagnoses": shelf.diagnoses,
        }
        (where,) = request.where
        return Selected(
            rows=tuple(r for r in tables[request.table] if getattr(r, "run_key", "") == where.value)
        )

    async def nobody(_: Request[object]) -> object:
        raise AssertionError("packs need no model")

    actor = DiagnoserActor(
        SETTINGS, FakeAddress("llm", nobody), FakeAddress("ledger", ledger), max_calls=8
    )
    return await actor.on_case_packs(
        GetCasePacks(run_keys=run_keys, questions=tuple(shelf.questions.values()), tools=TOOLS)
    )


@pytest.mark.anyio
async def test_packs_are_read_from_the_ledger() -> None:
    """Of the passes that were named, each once, with the configured bounds."""
    shelf = full_shelf()
    assert await asked(shelf, "e1/t/s0", "e1/t/s1", "e1/t/s0") == shelf.packs(
        SETTINGS.max_case_chars
    )
    half = await asked(shelf, "e1/t/s0")
    assert isinstance(half, CasePacks)
    assert half.system.answered == 6


@pytest.mark.anyio
async def test_p0_2_an_answer_without_steps_gives_no_packs() -> None:
    """P0-2: it is an error that names the answer, not a case without a trajectory."""
    shelf = Shelf().add("a").add("b", rows=())
    with pytest.raises(EmptyTrajectory, match="b in e1/order/s1"):
        shelf.packs()
    reply = await asked(shelf, "e1/order/s1")
    assert isinstance(reply, Refused)
    assert "b in e1/order/s1" in reply.what
