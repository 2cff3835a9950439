"""``trm diff``: what two versions differ in, line by line and word by word."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands.diff_text import compare_texts, plain
from tests.commands.house import CLASS, Made, Trm


def test_two_versions(trm: Trm, made: Made) -> None:
    """A unified diff of what changed and nothing else; 1 means there is a difference."""
    done = trm("diff", "v1", "v2", "--workspace", made.path, expect=1)
    assert done.out == (
        "--- skills/v1/counting-problem.md\n"
        "+++ skills/v2/counting-problem.md\n"
        "@@ -7,3 +7,4 @@\n"
        " \n"
        " ## Steps\n"
        " - Look twice.\n"
        "+- Count twice.\n"
    )


def test_no_difference(trm: Trm, made: Made) -> None:
    """Nothing is printed, and 0 says so."""
    assert trm("diff", "v2", "v2", "--workspace", made.path).out == ""
    arguments = ("--workspace", made.path, "--document", "_default")
    assert trm("diff", "skills/v1", "v4", *arguments).out == ""


def test_prompts_and_documents(trm: Trm, made: Made) -> None:
    """By name of the class, of its file, or of the prompt."""
    done = trm("diff", "prompts/v1", "prompts/v2", "--workspace", made.path, expect=1)
    assert "+++ prompts/v2/system.md\n" in done.out
    for name in (CLASS, "counting-problem"):
        arguments = ("--workspace", made.path, "--document", name)
        assert trm("diff", "v1", "v4", *arguments, expect=1).out.count("+++") == 1
    arguments = ("--workspace", made.path, "--document", "tools")
    err = trm("diff", "prompts/v1", "prompts/v2", *arguments, expect=2).err
    assert "system, view_node" in err


def test_paths_of_versions_and_files(trm: Trm, made: Made) -> None:
    """A seed's version against a workspace's, and two files."""
    seed = made.path.parent / "seed" / "skills" / "v1"
    done = trm("diff", seed, made.path / "skills" / "v2", expect=1)
    assert "+- Count twice.\n" in done.out
    assert trm("diff", seed, made.path / "skills" / "v1").out == ""
    files = [made.path / "skills" / name / "counting-problem.md" for name in ("v1", "v2")]
    done = trm("diff", *files, expect=1)
    assert done.out.startswith(f"--- {files[0]}\n+++ {files[1]}\n")


def test_colour(trm: Trm, made: Made) -> None:
    """Asked for, it is there; the words are the same."""
    arguments = ("diff", "v1", "v2", "--workspace", made.path, "--color")
    coloured = trm(*arguments, "always", expect=1).out
    assert "\x1b[32m+- Count twice.\x1b[0m" in coloured
    assert "\x1b" not in trm(*arguments, "never", expect=1).out
    assert "\x1b" not in trm(*arguments, "auto", expect=1).out


def test_words(trm: Trm, tmp_path: Path) -> None:
    """One line for a changed one; a line that is another altogether stays two."""
    before, after = tmp_path / "a.md", tmp_path / "b.md"
    before.write_text("Look at the first frame.\nsame\nred\n", encoding="utf-8")
    after.write_text("Look at the very last frame.\nsame\nBehind it all.\n", encoding="utf-8")
    out = trm("diff", before, after, "--words", expect=1).out
    assert "~Look at the [-first-]{+very last+} frame.\n" in out
    assert "-red\n+Behind it all.\n" in out
    coloured = trm("diff", before, after, "--words", "--color", "always", expect=1).out
    assert "[-" not in coloured


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("v1", "v9", "v1, v2, v3, v4"),
        ("v1", "prompts/v1", "cannot be compared"),
        ("v1", "nonsense", "is no version and no file"),
        ("v1", "README.md", "is no version"),
    ],
)
def test_what_cannot_be_compared(trm: Trm, made: Made, before: str, after: str, said: str) -> None:
    """2, as diff has it, and a word of what is wrong."""
    err = trm("diff", before, after, "--workspace", made.path, expect=2).err
    assert said in err or "one is a file" in err


def test_a_damaged_version(trm: Trm, made: Made) -> None:
    """A version that was changed by hand is not compared as if it were whole."""
    (made.path / "skills" / "v2" / "counting-problem.md").write_text("x", encoding="utf-8")
    err = trm("diff", "v1", "v2", "--workspace", made.path, expect=2).err
    assert "was changed after" in err


_TEXT = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c d e\n", "c d f\n", "x\r\n"]), max_size=10)


@given(_TEXT, _TEXT, st.sampled_from(["", "tail"]), st.integers(0, 3))
def test_patch_agrees(before: list[str], after: list[str], tail: str, context: int) -> None:
    """Both sides can be read back from the diff's lines: what it says is what there is."""
    old, new = "".join(before) + tail, "".join(after)
    lines = compare_texts(("a", "b"), old, new, words=False, context=100)
    if old == new:
        assert lines == []
        return
    for marks, text in ((("same", "removed"), old), (("same", "added"), new)):
        shown = [line.text for line in lines if line.mark in marks]
        assert "\n".join(shown) == text.removesuffix("\n")
    fewer = compare_texts(("a", "b"), old, new, words=False, context=context)
    assert [line for line in fewer if line.mark in ("added", "removed")] == [
        line for line in lines if line.mark in ("added", "removed")
    ]


@given(_TEXT, _TEXT, st.sampled_from(["", "c d g"]))
def test_words_say_the_same(before: list[str], after: list[str], tail: str) -> None:
    """Word by word or line by line: both sides are still there."""
    old, new = "".join(before) + tail, "".join(after)
    lines = compare_texts(("a", "b"), old, new, words=True, context=100)
    for side, whole in (("removed", old), ("added", new)):
        shown = []
        for line in lines:
            if line.mark in ("same", side):
                shown.append(line.text)
            elif line.mark == "changed":
                kept = (piece.text for piece in line.pieces if piece.mark in ("same", side))
                shown.append("".join(kept))
        assert not lines or "\n".join(shown) == whole.removesuffix("\n")


def test_the_tool_named_patch_takes_it(tmp_path: Path) -> None:
    """The plain form is a real unified diff."""
    old, new = "a\nb\nc\nd\ne\nf\ng\nh\n", "a\nB\nc\nd\ne\nf\ng\nh\ni"
    target = tmp_path / "a"
    target.write_text(old, encoding="utf-8")
    text = plain(compare_texts(("a", "a"), old, new, words=False, context=1))
    try:
        done = subprocess.run(
            ["patch", "--quiet", str(target)],
            input=text,
            text=True,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("there is no patch on this machine")
    assert done.returncode == 0, done.stdout + done.stderr
    assert target.read_text(encoding="utf-8") == new
