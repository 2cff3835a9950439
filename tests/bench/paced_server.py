"""A chat server that costs next to nothing: one loop on plain sockets, one pace for everyone.

An answer gets a chunk a tick. In lockstep all answers do so at once, which is the worst case for
a pool of connections: all requests end and begin together. Spread out, each has its own place
within the tick, which is the worst case for a loop: it wakes for every event.
Serves POST with a Content-Length and keep-alive; anything else is out of its depth.

``python -m tests.bench.paced_server`` prints its port, and serves until its input is closed.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import sys
import time

import msgspec

__all__ = ["EVENTS", "TICK_S", "main"]

TICK_S = 0.04
EVENTS = 51
"""Chunks of an answer: 50 with text, and one with the finish, the usage and the end marker."""

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _event(delta: dict[str, str], finish: str | None) -> bytes:
    data = {
        "id": "chatcmpl-0123456789abcdef0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "some-model-of-some-size",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


_TEXT = _chunk(_event({"content": " some words."}, None))
_USAGE = (
    b'data: {"id":"x","object":"chat.completion.chunk","created":1700000000,"model":"m",'
    b'"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":50,"total_tokens":59}}\n\n'
)
_LAST = _chunk(_event({}, "stop") + _USAGE + b"data: [DONE]\n\n") + b"0\r\n\r\n"


class _Stream:
    """One connection: what it has asked, and how many events it still gets."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.unread = bytearray()
        self.left = 0
        self.place = 0

    def read(self) -> bool:
        """Take in what came; false: the client is gone."""
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        self.unread += data
        return bool(data)

    def asked(self) -> bool:
        """A whole request is there; it is taken."""
        head, end, body = self.unread.partition(b"\r\n\r\n")
        if not end:
            return False
        _, _, length = head.lower().partition(b"content-length:")
        size = int(length.split(b"\r\n")[0])
        if len(body) < size:
            return False
        del self.unread[: len(head) + 4 + size]
        return True

    def send(self) -> bool:
        """The next event; false: the client is gone, or so slow that its buffer is full."""
        head = _HEAD if self.left == EVENTS else b""
        self.left -= 1
        data = head + (_TEXT if self.left else _LAST)
        try:
            return self.sock.send(data) == len(data)
        except OSError:
            return False


class _House:
    """All connections, and those that are being answered, by their place in the tick."""

    def __init__(self, listener: socket.socket, places: int, tick_s: float) -> None:
        self._listener = listener
        self._step_s = tick_s / places
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        self._streams: dict[int, _Stream] = {}
        self._talking: list[dict[int, _Stream]] = [{} for _ in range(places)]
        self._accepted = 0

    def serve(self) -> None:
        """Serve until standard input ends."""
        places = len(self._talking)
        begun, turns = time.monotonic(), 1
        while self._listen(begun + turns * self._step_s):
            while time.monotonic() >= begun + turns * self._step_s:
                self._speak(self._talking[turns % places])
                turns += 1

    def _listen(self, until: float) -> bool:
        """Take in what has come; false: standard input has ended."""
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fd not in self._streams:
                return False
            else:
                stream = self._streams[key.fd]
                if not stream.read():
                    self._drop(stream)
                elif stream.asked():
                    stream.left = EVENTS
                    self._talking[stream.place][key.fd] = stream
        return True

    def _speak(self, talking: dict[int, _Stream]) -> None:
        for fd, stream in list(talking.items()):
            if not stream.send():
                self._drop(stream)
            elif not stream.left:
                del talking[fd]

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = self._streams[sock.fileno()] = _Stream(sock)
            self._accepted += 1
            stream.place = self._accepted % len(self._talking)
            self._selector.register(sock, selectors.EVENT_READ)

    def _drop(self, stream: _Stream) -> None:
        fd = stream.sock.fileno()
        self._selector.unregister(stream.sock)
        self._talking[stream.place].pop(fd, None)
        del self._streams[fd]
        stream.sock.close()


def main() -> None:
    """Listen on a free port of the loopback interface, and say which."""
    parser = argparse.ArgumentParser(description="A paced chat server; ends with its input")
    parser.add_argument("--places", type=int, default=1, help="in a tick; 1: lockstep")
    parser.add_argument("--tick-s", type=float, default=TICK_S, help="between two events")
    args = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    _House(listener, args.places, args.tick_s).serve()


if __name__ == "__main__":
    main()
