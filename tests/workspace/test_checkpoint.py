"""The checkpoint: what is written comes back; a damaged file never does."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from actors.workspace.checkpoint import CheckpointStore
from actors.workspace.errors import BadFile
from tests.workspace.material import Failing

pytestmark = pytest.mark.anyio

ONE = {"trainer": b'{"epoch":1}', "gate": b"[1.5,null]"}
TWO = {"trainer": b'{"epoch":2}', "gate": b'"\xc3\xa9"'}


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    """A store without a file."""
    return CheckpointStore(tmp_path / "checkpoint.json", "run-1")


async def test_round_trip(store: CheckpointStore, tmp_path: Path) -> None:
    """States come back byte for byte; the file says what it is."""
    assert store.load() is None
    await store.write("epoch-1", ONE)
    assert store.load() == ONE
    stored = msgspec.json.decode((tmp_path / "checkpoint.json").read_bytes())
    assert stored["content"]["label"] == "epoch-1"
    assert stored["content"]["run_id"] == "run-1"
    assert stored["content"]["schema"] == 1
    await store.write("epoch-2", TWO)
    assert store.load() == TWO
    assert CheckpointStore(tmp_path / "checkpoint.json.prev", "run-1").load() == ONE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(states=st.dictionaries(st.text(), JSON, max_size=4), blanks=st.sampled_from(["", " ", "\n"]))
def test_any_json_comes_back(
    tmp_path_factory: pytest.TempPathFactory, states: dict[str, object], blanks: str
) -> None:
    """Layout inside a state does not matter to the hash."""
    store = CheckpointStore(tmp_path_factory.mktemp("c") / "checkpoint.json", "run-1")
    encoded = {
        name: blanks.encode() + msgspec.json.format(msgspec.json.encode(state), indent=2)
        for name, state in states.items()
    }
    anyio.run(store.write, "l", encoded)
    assert store.load() == {name: state.strip() for name, state in encoded.items()}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"epoch":2', b'"epoch":3', "sha256 is wrong"),
        (b'{"sha256"', b'{"sha2"', "sha2"),
        (b"}", b"", "truncated"),
    ],
)
async def test_damage_falls_back_and_says_so(
    store: CheckpointStore, tmp_path: Path, old: bytes, new: bytes, problem: str
) -> None:
    """The previous checkpoint is used, with a warning that says why."""
    await store.write("epoch-1", ONE)
    await store.write("epoch-2", TWO)
    path = tmp_path / "checkpoint.json"
    path.write_bytes(path.read_bytes().replace(old, new))
    with capture_logs() as logs:
        assert store.load() == ONE
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("checkpoint.fallback", "warning")
    assert line["label"] == "epoch-1"
    assert problem in line["problem"]


async def test_lost_file_falls_back(store: CheckpointStore, tmp_path: Path) -> None:
    """So does a checkpoint that somebody removed."""
    await store.write("epoch-1", ONE)
    await store.write("epoch-2", TWO)
    (tmp_path / "checkpoint.json").unlink()
    with capture_logs() as logs:
        assert store.load() == ONE
    assert logs[0]["event"] == "checkpoint.fallback"


async def test_damaged_file_never_becomes_the_previous(
    store: CheckpointStore, tmp_path: Path
) -> None:
    """A new checkpoint over a damaged one keeps the last good one."""
    await store.write("epoch-1", ONE)
    await store.write("epoch-2", TWO)
    (tmp_path / "checkpoint.json").write_bytes(b"torn")
    with capture_logs() as logs:
        await store.write("epoch-3", TWO)
    assert logs[0]["event"] == "checkpoint.damaged"
    (tmp_path / "checkpoint.json").unlink()
    with capture_logs():
        assert store.load() == ONE


async def test_no_usable_checkpoint_is_an_error(store: CheckpointStore, tmp_path: Path) -> None:
    """Starting afresh in silence would lose the run."""
    (tmp_path / "checkpoint.json").write_bytes(b"torn")
    with pytest.raises(BadFile, match=r"checkpoint\.json"):
        store.load()


async def test_other_runs_are_refused(store: CheckpointStore, tmp_path: Path) -> None:
    """A checkpoint belongs to one run."""
    await store.write("epoch-1", ONE)
    with pytest.raises(BadFile, match="run 'run-1', not of 'run-2'"):
        CheckpointStore(tmp_path / "checkpoint.json", "run-2").load()


async def test_state_must_be_json(store: CheckpointStore) -> None:
    """The actor at fault is named before anything is written."""
    with pytest.raises(ValueError, match="'gate' is not JSON"):
        await store.write("epoch-1", {"gate": b"\x00"})
    assert store.load() is None


@pytest.mark.parametrize("at", range(10))
async def test_p1_7_failed_write_keeps_the_old(tmp_path: Path, at: int) -> None:
    """P1-7: whichever call fails, a checkpoint is there: the old or the new one, whole."""
    path = tmp_path / "checkpoint.json"
    await CheckpointStore(path, "run-1").write("epoch-1", ONE)
    failing = CheckpointStore(path, "run-1", files=Failing(at, OSError(5, "I/O error")))
    with pytest.raises(OSError, match="I/O error"):
        await failing.write("epoch-2", TWO)
    loaded = CheckpointStore(path, "run-1").load()
    assert loaded == (TWO if at == 9 else ONE)  # only the last sync comes after the replace


async def test_damage_is_told_although_the_previous_one_serves(
    store: CheckpointStore, tmp_path: Path
) -> None:
    """For whoever looks at the workspace: ``load`` goes on, and only the log would say why."""
    assert store.damage() is None
    await store.write("epoch-1", ONE)
    await store.write("epoch-2", TWO)
    assert store.damage() is None
    (tmp_path / "checkpoint.json").write_text("{")
    damage = store.damage()
    assert damage is not None
    assert damage.path.name == "checkpoint.json"
    (tmp_path / "checkpoint.json").unlink()
    assert store.damage() is not None
    with capture_logs():
        assert store.load() == ONE
