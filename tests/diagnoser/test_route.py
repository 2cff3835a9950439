"""Which diagnoses are evidence for edits (P1-5)."""

from __future__ import annotations

import pytest

from protocol.diagnoser import Cause, Diagnosis, degraded_share, route


def diagnosis(name: str, cause: Cause | None, *, degraded: bool = False) -> Diagnosis:
    return Diagnosis(
        question_id=name,
        error_type="mixed",
        subtype=None,
        cause=cause,
        degraded=degraded,
        finding="",
    )


def test_p1_5_only_a_readable_defect_is_a_defect() -> None:
    """P1-5: no cause and degraded go the lapse way."""
    given = [
        diagnosis("a", "defect"),
        diagnosis("b", "defect", degraded=True),
        diagnosis("c", None),
        diagnosis("d", "lapse"),
        diagnosis("e", "uncertain"),
        diagnosis("f", "defect"),
    ]
    defects, lapses = route(given)
    assert [item.question_id for item in defects] == ["a", "f"]
    assert [item.question_id for item in lapses] == ["b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("silent", "heard", "share"), [(0, 0, 0.0), (0, 3, 0.0), (1, 1, 0.5), (2, 1, 2 / 3)]
)
def test_p1_5_the_share_that_stops_a_step(silent: int, heard: int, share: float) -> None:
    """P1-5: more than half stops; exactly half does not."""
    given = [diagnosis(f"s{n}", "uncertain", degraded=True) for n in range(silent)]
    given += [diagnosis(f"h{n}", "uncertain") for n in range(heard)]
    assert degraded_share(given) == pytest.approx(share)


def test_p1_5_a_judge_that_failed_counts_as_silent() -> None:
    """P1-5."""
    assert degraded_share([diagnosis("a", None), diagnosis("b", "lapse")]) == 0.5
