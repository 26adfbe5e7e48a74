"""Frames of a line between servers: a number, a status, and bytes; nothing is understood of them.

Both ends number calls as the caller does. A frame that claims to be larger than one may be is an
error at once, before any of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

HEAD = Struct("!IIH")  # bytes of the body, number of the call, status (of an answer; else 0)
FRAME_BYTES_MAX = 512 << 10  # of a call: what is larger goes as a request of its own
#: Of an answer: a call of 512 KB may have ten thousand jobs, each refused in a few hundred bytes.
ANSWER_BYTES_MAX = 8 << 20


class Frame(NamedTuple):
    number: int
    status: int
    body: bytes


def frame_text(frame: Frame) -> bytes:
    return HEAD.pack(len(frame.body), frame.number, frame.status) + frame.body


class FrameReader:
    """Bytes as they come, to whole frames."""

    def __init__(self, bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._left = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole by now; ValueError for one that is too large."""
        data = self._left + data if self._left else data
        start, end = 0, len(data)
        while end - start >= HEAD.size:
            size, number, status = HEAD.unpack_from(data, start)
            if size > self._bytes_max:
                raise ValueError(f"a frame of {size} bytes")
            begins = start + HEAD.size
            if end - begins < size:
                break
            start = begins + size
            yield Frame(number, status, data[begins:start])
        self._left = data[start:]
