"""Fuzz the stream decoder: any bytes, in any split, give one end and never an exception.

    pip install atheris            # into an environment that has requirements/run.txt
    python -m tests.fuzz.stream_reader -max_total_time=300

The corpus begins with the raw bodies of ``tests/llm/cases/streams.json``. Ends with a traceback
and the input at the first difference; ends quietly after the time.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import msgspec

from actors.llm.sse import EventTooLarge
from actors.llm.stream import End, StreamReader
from protocol.llm import Usage

CASES = Path(__file__).parents[1] / "llm" / "cases" / "streams.json"


def read(data: bytes, cuts: list[int]) -> tuple[End | None, Usage]:
    """Feed the bytes in pieces; the end and the usage. None: an event was too large."""
    reader = StreamReader()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    try:
        for start, stop in pairwise(places):
            reader.feed(data[start:stop])
            if reader.end is not None:
                break
        end = reader.close()
    except EventTooLarge:
        return None, reader.usage
    msgspec.json.encode(end)  # what is stored later must have a UTF-8 form
    return end, reader.usage


def one_input(data: bytes) -> None:
    """The first bytes say where to cut, the rest is the body."""
    n_cuts = data[0] % 8 if data else 0
    cuts = [int.from_bytes(data[1 + 2 * n : 3 + 2 * n], "big") for n in range(n_cuts)]
    body = data[1 + 2 * n_cuts :]
    assert read(body, cuts) == read(body, []), (body, cuts)


def corpus() -> list[bytes]:
    """The bodies of the known cases, each in front of it a byte that asks for no cuts."""
    found = []
    for case in json.loads(CASES.read_text(encoding="utf-8")):
        sent = b"".join(
            step["send"].encode() if "send" in step else base64.b64decode(step["send_b64"])
            for step in case["steps"]
            if "send" in step or "send_b64" in step
        )
        found.append(b"\x00" + sent.partition(b"\r\n\r\n")[2])
    return found


def main() -> None:
    """Run atheris over the decoder."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    with tempfile.TemporaryDirectory() as folder:
        for number, body in enumerate(corpus()):
            (Path(folder) / f"case-{number}").write_bytes(body)
        atheris.instrument_all()
        atheris.Setup([*sys.argv, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
