"""The rejected ledger's memory, and several analysts' edits as one list."""

from __future__ import annotations

import msgspec
import pytest

from actors.evolver.merge import merge_edits
from actors.evolver.rejected import edits_of, fingerprint, fingerprints, in_order
from tests.evolver.make import edit, rejected

ONE = edit("append", "", "- Compare start times.", "q1")


def test_fingerprints_forgive_case_space_and_the_final_stop() -> None:
    assert fingerprint(ONE) == fingerprint(edit("append", "ignored", "-  compare\nSTART times"))
    assert fingerprint(ONE) != fingerprint(edit("append", "", "- Compare end times."))
    assert fingerprint(edit("delete", "x", "a")) == fingerprint(edit("delete", "x", ""))
    assert fingerprint(edit("delete", "x")) != fingerprint(edit("delete", "y"))
    assert fingerprint(edit("replace", "a", "b")) != fingerprint(edit("insert_after", "a", "b"))


def test_rejected_rows_give_their_edits_back() -> None:
    two = edit("delete", "- x")
    row = rejected([ONE, two])
    assert edits_of(row) == (ONE, two)
    assert fingerprints([row]) == {fingerprint(ONE), fingerprint(two)}
    with pytest.raises(msgspec.DecodeError):
        fingerprints([msgspec.structs.replace(row, edits="[{")])


def test_rows_come_in_the_order_of_the_run() -> None:
    rows = [rejected([], key) for key in ("e10/order/s1", "e2/order/s10", "e2/order/s9")]
    assert [row.run_key for row in in_order(rows)] == [
        "e2/order/s9",
        "e2/order/s10",
        "e10/order/s1",
    ]


def test_merging_unites_support_and_ranks_by_it() -> None:
    weak = edit("append", "", "- weak", "q1")
    strong = edit("append", "", "- strong", "q2", "q3")
    again = edit("append", "", "- STRONG", "q3", "q4", "made up")
    merged = merge_edits([weak, strong, ONE, again], {"q1", "q2", "q3", "q4"})
    assert [item.content for item in merged] == ["- strong", "- weak", "- Compare start times."]
    assert merged[0].support == ("q2", "q3", "q4")


def test_merging_is_idempotent_and_drops_invented_support() -> None:
    merged = merge_edits([edit("append", "", "- x", "nobody")], {"q1"})
    assert merged[0].support == ()
    assert merge_edits(merged, {"q1"}) == merged
    assert merge_edits([], {"q1"}) == ()
