"""A text in memory that outlives the process that wrote it: its parent holds the file.

One process writes, others read. Who reads while it is written, or after a death in the midst of it,
finds nothing rather than half of it.
"""

from __future__ import annotations

import os
import struct
import zlib

HEAD = struct.Struct("<QI")  # bytes of the text, and what proves that they belong together
TEXT_BYTES_MAX = 8 << 20


def write_text(descriptor: int, text: bytes) -> None:
    if len(text) <= TEXT_BYTES_MAX:
        os.pwrite(descriptor, HEAD.pack(len(text), zlib.crc32(text)) + text, 0)


def read_text(descriptor: int) -> bytes:
    """Empty when there is none, or none that is whole."""
    head = os.pread(descriptor, HEAD.size, 0)
    if len(head) < HEAD.size:
        return b""
    size, proof = HEAD.unpack(head)
    text = os.pread(descriptor, min(size, TEXT_BYTES_MAX), HEAD.size)
    return text if len(text) == size and zlib.crc32(text) == proof else b""
