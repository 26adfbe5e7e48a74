"""A text in memory that outlives the process that wrote it: its parent holds the file.

One process writes, others read. There are two places, written in turn: who reads while one is
written, or after a death in the midst of it, finds the text of before, and never half of one.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import NamedTuple

HEAD = struct.Struct("<QQI")  # the how-manieth it is, bytes, and what proves that they are whole
TEXT_BYTES_MAX = 8 << 20
PLACES = (0, HEAD.size + TEXT_BYTES_MAX)


class _Kept(NamedTuple):
    number: int
    text: bytes


def write_text(descriptor: int, text: bytes) -> None:
    if len(text) <= TEXT_BYTES_MAX:
        kept = [_read(descriptor, place) for place in PLACES]
        older = PLACES[kept[0].number > kept[1].number]
        number = max(one.number for one in kept) + 1
        os.pwrite(descriptor, HEAD.pack(number, len(text), zlib.crc32(text)) + text, older)


def read_text(descriptor: int) -> bytes:
    """The newest that is whole; empty when there is none."""
    return max(_read(descriptor, place) for place in PLACES).text


def _read(descriptor: int, place: int) -> _Kept:
    """Number 0 when there is none, or none that is whole."""
    head = os.pread(descriptor, HEAD.size, place)
    if len(head) == HEAD.size:
        number, size, proof = HEAD.unpack(head)
        text = os.pread(descriptor, min(size, TEXT_BYTES_MAX), place + HEAD.size)
        if len(text) == size and zlib.crc32(text) == proof:
            return _Kept(number, text)
    return _Kept(0, b"")
