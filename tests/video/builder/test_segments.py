"""Time divided: no gap, no overlap, everything inside what is above it, for any video."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.video.builder.cards import plain_card
from actors.video.builder.cuts import Cut, cuts_of, histogram
from actors.video.builder.outline import drafts, tree_json
from actors.video.builder.segments import Span, Timeline, divide
from actors.video.builder.srt import Cue
from actors.video.tree import parse_tree

_cuts = st.lists(
    st.builds(Cut, st.floats(0, 8000).map(lambda t: round(t, 3)), st.floats(0, 1)), max_size=60
)
_cues = st.lists(
    st.builds(
        lambda start, length, text: Cue(start, start + length, text),
        st.floats(0, 8000),
        st.floats(0, 20),
        st.text("abc", min_size=1, max_size=8),
    ),
    max_size=30,
)


def timeline(duration_s: float, cuts: list[Cut], scale: float = 1, frames: int = 3) -> Timeline:
    return divide(
        duration_s, cuts, scene_s=300 * scale, event_s=30 * scale, frames_per_event=frames
    )


@settings(deadline=None)
@given(st.floats(0.001, 8000), _cuts, st.floats(0.1, 3), st.integers(1, 5))
def test_every_level_fills_the_level_above(
    duration_s: float, cuts: list[Cut], scale: float, frames: int
) -> None:
    made = timeline(duration_s, cuts, scale, frames)
    whole = [Span(0.0, round(duration_s, 3))]
    events = [[made.events[place] for place in places] for places in made.events_of]
    shown = [[made.frames[place] for place in places] for places in made.frames_of]
    for above, families in (
        (whole, [list(made.scenes)]),
        (made.scenes, events),
        (made.events, shown),
    ):
        for parent, family in zip(above, families, strict=True):
            assert (family[0].start_s, family[-1].end_s) == (parent.start_s, parent.end_s)
            assert all(one.end_s == other.start_s for one, other in pairwise(family))
            assert all(span.start_s < span.end_s for span in family)
            assert all(span.start_s <= span.middle_s <= span.end_s for span in family)
    assert list(chain(*made.events_of)) == list(range(len(made.events)))
    assert list(chain(*made.frames_of)) == list(range(len(made.frames)))
    assert max(map(len, made.frames_of)) <= frames


@settings(deadline=None)
@given(st.floats(50, 8000), _cuts)
def test_events_are_half_to_one_and_a_half_of_their_length(
    duration_s: float, cuts: list[Cut]
) -> None:
    made = timeline(duration_s, cuts)
    for event in made.events:
        assert 14.99 <= event.end_s - event.start_s <= 45.01


@settings(deadline=None)
@given(st.floats(0.001, 8000), _cuts, _cues)
def test_the_tree_of_any_video_is_read_without_a_warning(
    duration_s: float, cuts: list[Cut], cues: list[Cue]
) -> None:
    """Ids in time order, each cue at exactly one frame and at all that is above it."""
    made = timeline(duration_s, cuts)
    nodes = drafts(made, cues)
    cards = {n.name: plain_card(n.level, n.span.start_s, n.span.end_s, n.subtitle) for n in nodes}
    raw = tree_json("-x", "unknown", made.duration_s, nodes, cards)
    tree = parse_tree(raw, "t.json")
    assert tree.warnings == ()
    for level in (1, 2, 3):
        found = [node for node in tree.nodes.values() if node.level == level]
        names = [f"-x_L{level}_{number:03d}" for number in range(len(found))]
        assert [node.node_id for node in found] == names
        said = [line for node in found for line in node.subtitle.split("\n") if line]
        assert sorted(said) == sorted(cue.text for cue in cues)
    assert set(tree.parents) == {name for name, node in tree.nodes.items() if node.level > 1}


def test_boundaries_are_at_the_strongest_cut_in_reach() -> None:
    cuts = [Cut(20.0, 0.5), Cut(31.0, 0.4), Cut(40.0, 0.9), Cut(75.0, 0.3), Cut(110.0, 1.0)]
    made = timeline(120.0, cuts)
    assert [event.start_s for event in made.events] == [0.0, 40.0, 75.0]


def test_no_cut_leaves_a_crumb_at_the_end() -> None:
    """The strongest cut would leave 1.1 seconds: it is out of reach."""
    assert [event.start_s for event in timeline(46.0, [Cut(44.9, 1.0)]).events] == [0.0, 30.0]
    assert [event.start_s for event in timeline(46.0, [Cut(30.9, 1.0)]).events] == [0.0, 30.9]


def test_without_a_cut_all_events_are_of_one_length() -> None:
    made = timeline(100.0, [])
    assert [event.start_s for event in made.events] == [0.0, 33.333, 66.667]
    assert len(made.frames) == 9


def test_a_scene_begins_at_an_event_and_at_a_strong_cut_where_there_is_one() -> None:
    cuts = [Cut(float(second), 0.3) for second in range(10, 1000, 10)] + [Cut(330.0, 1.0)]
    made = timeline(1000.0, cuts)
    assert made.scenes[1].start_s == 330.0
    assert {scene.start_s for scene in made.scenes} <= {event.start_s for event in made.events}


def test_short_events_have_fewer_key_frames() -> None:
    assert len(timeline(0.5, []).frames) == 1
    assert len(timeline(2.5, []).frames) == 2


def test_a_41_minute_video_has_about_8_scenes_and_80_events() -> None:
    """As the owner's trees have."""
    made = timeline(41 * 60, [])
    assert (len(made.scenes), len(made.events)) == (8, 82)


@pytest.mark.parametrize(
    ("duration_s", "scene_s", "event_s", "frames"),
    [(0.0, 300, 30, 3), (0.0001, 300, 30, 3), (9, 30, 300, 3), (9, 300, 0, 3), (9, 300, 30, 0)],
)
def test_sizes_that_make_no_tree_are_refused(
    duration_s: float, scene_s: float, event_s: float, frames: int
) -> None:
    with pytest.raises(ValueError, match=r"millisecond|wanted"):
        divide(duration_s, [], scene_s=scene_s, event_s=event_s, frames_per_event=frames)


def test_a_cue_over_a_boundary_belongs_to_where_its_middle_is() -> None:
    made = timeline(2.0, [], frames=2)  # frames 0-1 and 1-2 s
    cues = [Cue(0.5, 1.6, "later"), Cue(0.8, 1.1, "earlier"), Cue(50.0, 60.0, "after the end")]
    said = {node.name: node.subtitle for node in drafts(made, cues)}
    assert said["L3_000"] == "earlier"
    assert said["L3_001"] == "later\nafter the end"
    assert said["L2_000"] == said["L1_000"] == "earlier\nlater\nafter the end"


def test_cuts_are_where_colours_change() -> None:
    def shot(red: int, blue: int) -> np.ndarray:
        picture = np.zeros((36, 64, 3), dtype=np.uint8)
        picture[..., 0], picture[..., 2] = red, blue
        return picture

    moved = shot(200, 0)
    moved[:5, :10] = 255  # something small moves: no cut
    shots = [shot(200, 0), moved, shot(0, 200), shot(0, 200)]
    found = list(cuts_of((place / 4, histogram(picture)) for place, picture in enumerate(shots)))
    assert [(cut.time_s, cut.strength > 0.9) for cut in found] == [(0.5, True)]
    assert histogram(shots[1]).sum() == pytest.approx(1.0)
    turned = shot(200, 0)
    turned[:, :32] = (0, 0, 200)
    sides = [(0.0, histogram(turned)), (0.25, histogram(turned[:, ::-1]))]
    assert [cut.time_s for cut in cuts_of(sides)] == [0.25]  # the same colours, changed about
    assert list(cuts_of([])) == []
