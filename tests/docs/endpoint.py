"""An endpoint on loopback that a run can be trained on and that also says hello.

What the simulator knows, the simulator answers, under whatever model name it is asked; anything
else is answered as a server does that can do everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from actors.twin.catalog import NotPlanted, load_catalog
from actors.twin.layout import LayoutError
from actors.twin.server import Knobs, Twin
from actors.twin.shares import Shares
from actors.twin.wire import MODELS, BadRequest, completion_of, parse_request
from actors.twin.written import events
from tests.commands.check_house import good
from tests.llm.server import SSE_HEAD, chunked
from tests.system.seeing import Question, card_of

__all__ = ["talking"]

_CARDS = '_summary"', '"event_description"'


def talking(world: Path, questions: Path) -> Callable[[Mapping[str, object]], bytes]:
    """What to answer to the body of a chat."""
    twin = Twin(
        load_catalog(world, questions),
        Knobs(
            world_seed=7,
            shares=Shares(0.45, 0.3, 0.15, 0.1),
            hostile=0.0,
            judge_noise=0.1,
            chunk_delay_s=0.0,
        ),
    )

    def talk(body: Mapping[str, object]) -> bytes:
        for model in MODELS:
            try:
                request = parse_request(msgspec.json.encode({**body, "model": model}))
                completion = completion_of(request, twin.reply(request))
            except (BadRequest, LayoutError, NotPlanted):
                continue  # another of its models may know what this is about
            return SSE_HEAD + chunked(b"".join(events(completion, True)))
        form = json.dumps(body.get("response_format", ""))
        if any(name in form for name in _CARDS):
            return card_of(Question(dict(body)))
        return good(body)

    return talk
