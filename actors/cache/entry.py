"""An answer as bytes that prove themselves.

The first line is a digest over the key and the rest: an entry that was cut, changed, or
handed back for another key is recognised and never taken for an answer.
"""

from __future__ import annotations

import hashlib

import msgspec

from protocol.llm import ChatAnswer

__all__ = ["CorruptEntry", "decode_entry", "encode_entry"]

_DIGEST_CHARS = 64


class CorruptEntry(Exception):
    """The bytes are not an entry of this key; the message says in what way."""


def encode_entry(key: str, answer: ChatAnswer) -> bytes:
    """The entry of a key. Raises UnicodeEncodeError if a text holds half a surrogate pair."""
    body = msgspec.json.encode(answer)
    return _digest(key, body) + b"\n" + body


def decode_entry(key: str, entry: bytes) -> ChatAnswer:
    """The answer in an entry. Raises CorruptEntry."""
    digest, body = entry[:_DIGEST_CHARS], entry[_DIGEST_CHARS + 1 :]
    if digest != _digest(key, body):
        raise CorruptEntry("the digest does not fit key and content")
    try:
        return msgspec.json.decode(body, type=ChatAnswer)
    except msgspec.DecodeError as error:  # written by a version with other fields
        raise CorruptEntry(str(error)) from error


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + body).hexdigest().encode()
