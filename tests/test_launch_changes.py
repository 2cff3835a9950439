"""What is kept of a setting that was changed on the way."""

from __future__ import annotations

import msgspec

from actors.launch_changes import changes_words, setting_changes
from protocol.workspace import Manifest
from tests.protocol.samples import sample


def test_a_change_says_when_it_was_made() -> None:
    """By the last epoch that was whole; before any it was made in the first."""
    changed = [("gate.alpha_small", 0.2, 0.3), ("trainer.slow_update", True, False)]
    assert changes_words(setting_changes(changed, 1)) == (
        "Settings changed on the way: gate.alpha_small: 0.2 -> 0.3 after epoch 1; "
        "trainer.slow_update: True -> False after epoch 1."
    )
    assert str(setting_changes(changed, 0)[0]) == "gate.alpha_small: 0.2 -> 0.3 in epoch 1"
    assert changes_words(()) == ""


def test_a_value_is_no_page_and_no_secret() -> None:
    """It stands in what may be published."""
    (change,) = setting_changes(
        [("llm.endpoints", [{"api_key": "sk-very"}], [{"model": "m" * 500}])], 2
    )
    assert "sk-very" not in change.before
    assert len(change.after) <= 80
    assert change.after.endswith("..")


def test_a_manifest_of_before_has_no_change() -> None:
    """Workspaces that were made without the field can be read."""
    manifest = sample(Manifest)
    assert isinstance(manifest, Manifest)
    plain = msgspec.to_builtins(manifest)
    assert plain.pop("changes")
    assert msgspec.convert(plain, Manifest).changes == ()
