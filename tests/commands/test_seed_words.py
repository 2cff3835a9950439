"""``bin/trm seed --from-scratch``: what it says of the folder that it leaves beside the seed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from actors.commands.seed_making import Made
from actors.places import ROOT
from protocol.seed import SeedInfo
from tests.commands.house import Trm


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("work", [None, "my calls"])
def test_the_last_line_says_what_the_work_folder_is(
    only: bool, work: str | None, tmp_path: Path, trm: Trm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it keeps, what it serves for, that it may go; on stderr, beside --json too."""
    info = msgspec.json.decode((ROOT / "seeds/demo/seed.json").read_bytes(), type=SeedInfo)
    made = Made(tmp_path / "mine", "mine-baseline", 1, 1, None, None, None if only else info)
    monkeypatch.setattr("actors.commands.seed_scratch.from_scratch", lambda *_: made)
    monkeypatch.chdir(tmp_path)
    command = ["seed", "mine", "--from-scratch", "config/demo.yaml"]
    named = [] if work is None else ["--work", work]
    folder = "mine.work" if work is None else "'my calls'"
    inside = "mine.work/run.db" if work is None else "'my calls/run.db'"
    for how in ([], ["--json"]):
        err = trm(*command, *named, *how).err
        last = err.splitlines()[-1]
        assert last.startswith(f"{folder} keeps the calls that were answered: the same command")
        assert f"`--from-db {inside}` makes other seeds of them" in last
        assert last.endswith("it may be deleted.")
        assert how or "1 answer, 1 diagnosis, run mine-baseline" in err


def test_other_seeds_have_no_work_folder(
    tmp_path: Path, trm: Trm, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path / "mine", "mine-baseline", 2, 2, None, None, None)
    monkeypatch.setattr("actors.commands.seed_making.from_answers", lambda *_: made)
    monkeypatch.chdir(tmp_path)
    err = trm("seed", "mine", "--from-db", "a.db", "--config", "config/demo.yaml").err
    assert "keeps the calls" not in err
