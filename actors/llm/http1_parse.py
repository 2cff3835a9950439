"""HTTP/1.1 on the wire: a request's head as bytes, and the bytes of a response read.

llhttp (through httptools) does the reading; what it leaves to its user is here: interim
responses, bodies that end with the connection, and what makes a connection unfit for another
request. As lenient as h11, which httpx uses, and with the same exceptions. Never waits.
"""

from __future__ import annotations

import re

import httptools
import httpx

__all__ = ["MAX_HEAD_BYTES", "ResponseParser", "request_head"]

MAX_HEAD_BYTES = 64 * 1024
"""Ceiling of a response's head, interim responses before it included."""

_CUT = "peer closed connection without sending complete message body"
_TOKEN = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+")
_TARGET = re.compile(rb"[\x21-\x7e]+")
_VALUE = re.compile(rb"(?:[^\x00\s]+(?:[ \t]+[^\x00\s]+)*)?")
_NEVER_IN_A_VALUE = re.compile(rb"[\x00\r\n]")


def request_head(request: httpx.Request) -> bytes:
    """The request line and the headers.

    Raises LocalProtocolError where a character would let a header say more than it should, and
    for a body of unknown length.
    """
    method, target = request.method.encode("ascii"), request.url.raw_path
    if not (_TOKEN.fullmatch(method) and _TARGET.fullmatch(target)):
        raise httpx.LocalProtocolError(f"Illegal request line {method!r} {target!r}")
    parts = [b"%s %s HTTP/1.1\r\n" % (method, target)]
    for name, value in request.headers.raw:
        if not _TOKEN.fullmatch(name):
            raise httpx.LocalProtocolError(f"Illegal header name {name!r}")
        if not _VALUE.fullmatch(value):
            # the value may be a key: it is not shown
            raise httpx.LocalProtocolError(f"Illegal header value of {name!r}")
        if name.lower() == b"transfer-encoding":
            raise httpx.LocalProtocolError("only bodies of known length are sent")
        parts.append(b"%s: %s\r\n" % (name, value))
    parts.append(b"\r\n")
    return b"".join(parts)


class ResponseParser:
    """Reads one response.

    status, headers: valid once ``head_done``. complete: the body has ended. reusable: the
    connection may serve another request, once ``complete``. error: what is wrong with the
    response; what came before it is good.
    """

    __slots__ = (
        "_chunked",
        "_head_bytes",
        "_interim",
        "_kept",
        "_length",
        "_parser",
        "_parts",
        "complete",
        "error",
        "head_done",
        "headers",
        "on_body",
        "reusable",
        "status",
    )

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.head_done = False
        self.complete = False
        self.reusable = False
        self.error: str | None = None
        self._parts: list[bytes] = []
        self._kept = 0
        self.on_body = self._parts.append  # called by httptools; no function of ours is cheaper
        self._interim = False
        self._chunked = False
        self._length: bytes | None = None
        self._head_bytes = 0
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,  # folded lines; what is truly unfit is refused below
            lenient_chunked_length=True,  # chunked rules where both are said (RFC 9112, 6.3)
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes) -> bytes:
        """Read what came; the part of it that is body. Afterwards look at ``error`` first."""
        assert self._parser is not None, "nothing is fed after the end"
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            raise  # a mistake of ours
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.reusable = False
            if not self.complete:  # else: bytes after the end, which are no part of the answer
                self.error = self.error or str(error)
        if not self.head_done:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.error = self.error or f"the head is larger than {MAX_HEAD_BYTES} bytes"
            return b""
        parts = self._parts
        if self.complete:
            self._parser = None  # it refers to this object: no work for the collector
            del parts[self._kept :]
        if len(parts) == 1:
            return parts.pop()
        body = b"".join(parts)
        parts.clear()
        return body

    def eof(self) -> None:
        """The connection has ended: in order for a body whose end nothing else tells."""
        self.reusable = False
        if self.complete or self.error is not None:
            return
        if not self.head_done:
            self.error = "Server disconnected without sending a response."
        elif self._chunked:
            self.error = f"{_CUT} (incomplete chunked read)"
        elif self._length is not None:
            self.error = f"{_CUT} (expected {self._length.decode('latin-1')} bytes)"
        else:
            self.complete = True
            self._parser = None

    # Called by httptools. Exceptions would be taken for the peer's, so none is raised here.

    def on_message_begin(self) -> None:
        """A response begins; after the end of ours it is one that nobody asked for."""
        if self.complete:
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is of no use."""
        if self.head_done:
            return
        sent, value = value, value.strip(b" \t")
        if _NEVER_IN_A_VALUE.search(value):
            self.error = self.error or f"illegal value of header {name!r}"
        lowered = name.lower()
        if lowered == b"content-length":
            self._length = value
        elif lowered == b"transfer-encoding":
            # llhttp does not know "chunked" when a tab follows, and would read until the end
            if self._chunked or sent.strip(b" ").lower() != b"chunked":
                self.error = self.error or "only Transfer-Encoding: chunked is supported"
            self._chunked = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole; one of an interim response is forgotten."""
        if self.head_done or self.error is not None:
            return
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 100:
            self.error = f"illegal status {status:03}"
            return
        if 100 <= status < 200 and status != 101:
            self._interim = True
            self._chunked = False
            self._length = None
            self.headers.clear()
            return
        self.status = status
        self.head_done = True
        # with two lengths nobody knows where the next answer begins
        two_lengths = self._chunked and self._length is not None
        self.reusable = self._parser.should_keep_alive() and not two_lengths

    def on_message_complete(self) -> None:
        """The response has ended, or one that nobody asked for."""
        if self._interim:
            self._interim = False
        elif not self.complete:
            self.complete = self.head_done  # not if the head was refused
            self._kept = len(self._parts)
