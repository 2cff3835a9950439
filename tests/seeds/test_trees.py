"""Valid trees in the owner's format, in which every answer can be proved."""

from __future__ import annotations

import re
from itertools import pairwise

from actors.twin.world import holds
from seeds.demo_builder.build import build
from tests.seeds.committed import Tree, node_text, questions, trees, world

_SUMMARY = {1: "scene_summary", 2: "event_description", 3: "frame_summary"}


def _spans(tree: Tree, ids: tuple[str, ...]) -> list[tuple[float, float]]:
    return [tree.nodes[node_id].time_range for node_id in ids]


def _level(tree: Tree, level: int) -> tuple[str, ...]:
    return tuple(node_id for node_id, node in tree.nodes.items() if node.level == level)


def test_ids_follow_the_owners_format() -> None:
    """``<videoID>_L<level>_<index>``, counted from 0 in the order of time."""
    for stem, tree in trees().items():
        assert tree.video_id == stem
        for level in (1, 2, 3):
            ids = _level(tree, level)
            assert list(ids) == [f"{stem}_L{level}_{index:03d}" for index in range(len(ids))]
            assert len(ids) >= 2
        assert all(re.fullmatch(rf"{re.escape(stem)}_L[123]_\d{{3}}", name) for name in tree.nodes)


def test_children_exist_once_and_one_level_below() -> None:
    """Every node but a scene has exactly one parent; a key frame has no children."""
    for tree in trees().values():
        named = [child for node in tree.nodes.values() for child in node.children_ids]
        below = [*_level(tree, 2), *_level(tree, 3)]
        assert sorted(named) == sorted(below)
        for node in tree.nodes.values():
            assert all(tree.nodes[child].level == node.level + 1 for child in node.children_ids)
            assert bool(node.children_ids) == (node.level < 3)


def test_times_are_nested_and_without_gaps() -> None:
    """Scenes fill the video; the children of a node fill the node, one after the other."""
    for tree in trees().values():
        whole = (0.0, tree.duration_seconds)
        families = [(whole, _spans(tree, _level(tree, 1)))]
        families += [
            (node.time_range, _spans(tree, node.children_ids))
            for node in tree.nodes.values()
            if node.children_ids
        ]
        for (start, end), spans in families:
            assert (spans[0][0], spans[-1][1]) == (start, end)
            assert all(before[1] == after[0] for before, after in pairwise(spans))
            assert all(begin < finish for begin, finish in spans)


def test_cards_have_their_summary_and_nothing_empty() -> None:
    """The summary field is named after the level; other fields are strings or lists of them."""
    for tree in trees().values():
        for name, node in tree.nodes.items():
            assert isinstance(node.card[_SUMMARY[node.level]], str), name
            assert [key for key in node.card if key in _SUMMARY.values()] == [
                _SUMMARY[node.level]
            ], name
            assert all(node.card.values()), name


def test_an_events_subtitle_is_what_its_frames_say() -> None:
    """Speech stands at the event and, line by line, at its key frames."""
    spoken = 0
    for tree in trees().values():
        for node in tree.nodes.values():
            if node.level == 2:
                said = [tree.nodes[child].subtitle for child in node.children_ids]
                assert node.subtitle == " ".join(filter(None, said))
                spoken += bool(node.subtitle)
    assert spoken > 400


def test_every_answer_is_proved_in_its_own_video() -> None:
    """Each proof's words stand in the node that it names; what decides is in the gold option."""
    rows = {question.question_id: question for question in questions()}
    proofs = build().proofs
    assert sorted(proof.question_id for proof in proofs) == sorted(rows)
    for proof in proofs:
        row = rows[proof.question_id]
        nodes = trees()[row.video_id].nodes
        assert proof.evidence, proof.question_id
        for evidence in proof.evidence:
            assert evidence.words
            assert evidence.words in node_text(nodes[evidence.node_id]), proof
        if proof.decisive:
            gold = row.options["ABCD".index(row.answer)]
            shown = "\n".join(evidence.words for evidence in proof.evidence)
            assert proof.decisive in shown, proof
            if row.task_type != "Action Recognition":  # told there as a verb, asked as a deed
                assert proof.decisive.casefold() in gold.casefold(), proof


def test_an_absent_thing_is_absent() -> None:
    """The gold option of "never seen" stands nowhere in its tree, the wrong ones do."""
    kinds = {proof.question_id: proof.kind for proof in build().proofs}
    asked = [question for question in questions() if kinds[question.question_id] == "absent"]
    assert asked
    for question in asked:
        said = "\n".join(map(node_text, trees()[question.video_id].nodes.values())).casefold()
        for letter, option in zip("ABCD", question.options, strict=True):
            noun = option.split(" ", 1)[1].rstrip(".").casefold()
            assert (noun in said) == (letter != question.answer), question.question_id


def test_trees_never_explain_the_archives_words() -> None:
    """They use *velk*, *bell* or *forenight*; what these mean only a skill can say."""
    said = "\n".join(node_text(node) for tree in trees().values() for node in tree.nodes.values())
    assert all(word in said for word in ("velk", "orm", "tessle", "forenight", " bells"))
    keys = [lesson.key for lesson in world().lessons] + [trap.key for trap in world().traps]
    assert [key for key in keys if holds(said, key)] == []
