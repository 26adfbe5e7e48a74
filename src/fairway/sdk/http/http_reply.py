"""An HTTP/1.1 reply, read by hand: bytes in, a reply out. Pure; connections are `lean_http.py`'s.

It knows what a server of JSON, or a proxy before it, sends: a length, chunks, or a body that ends
with the connection. Everything is bounded, and whatever is not HTTP is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

HEAD_BYTES_MAX = 64 << 10
BODY_BYTES_MAX = 64 << 20

_END = b"\r\n\r\n"
_WITHOUT_BODY = (204, 304)


class NotHttp(ValueError):
    """What came is no reply that can be read."""


class HttpReply(NamedTuple):
    status_code: int
    reason_phrase: str
    headers: Mapping[str, str]  # names in small letters
    content: bytes = b""

    @property
    def is_error(self) -> bool:
        return self.status_code >= 400

    @property
    def keeps_open(self) -> bool:
        """Whether the connection can be used again after it."""
        return "close" not in self.headers.get("connection", "").lower()


class ReplyParser:
    """Takes one reply in pieces of any size."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._head: HttpReply | None = None
        self._left: int | None = None  # bytes of the body to come, or of the chunk; None: unknown
        self._body = bytearray()
        self._is_chunked = False

    def feed(self, data: bytes) -> HttpReply | None:
        """The reply, when it is whole; what follows it is nobody's."""
        self._held += data
        if self._head is None and not self._read_head():
            return None
        if len(self._body) + len(self._held) > BODY_BYTES_MAX:
            raise NotHttp(f"the body has more than {BODY_BYTES_MAX} bytes")
        if self._is_chunked:
            return self._whole() if self._read_chunks() else None
        if self._left is None or len(self._held) < self._left:
            return None
        self._body = self._held[: self._left]
        return self._whole()

    def finish(self) -> HttpReply | None:
        """The connection was closed: that is the end of a body without a length."""
        if self._head is None or self._is_chunked or self._left is not None:
            return None
        self._body = self._held
        return self._whole()

    def _whole(self) -> HttpReply | None:
        return self._head and self._head._replace(content=bytes(self._body))

    def _read_head(self) -> bool:
        while True:
            end = self._held.find(_END)
            if end > HEAD_BYTES_MAX or (end < 0 and len(self._held) > HEAD_BYTES_MAX):
                raise NotHttp(f"the head has more than {HEAD_BYTES_MAX} bytes")
            if end < 0:
                return False
            head = _head_of(bytes(self._held[:end]))
            del self._held[: end + len(_END)]
            if head.status_code >= 200:
                break
        self._head = head
        self._is_chunked = "chunked" in head.headers.get("transfer-encoding", "").lower()
        self._left = None if self._is_chunked else _length_of(head)
        return True

    def _read_chunks(self) -> bool:
        """Whether the last one is here."""
        while True:
            if self._left is None:
                end = self._held.find(b"\r\n")
                if end < 0:
                    return False
                self._left = _chunk_size(bytes(self._held[:end]))
                del self._held[: end + 2]
            if self._left == 0:
                return self._held.startswith(b"\r\n") or _END in self._held  # trailers, if any
            if len(self._held) < self._left + 2:
                return False
            self._body += self._held[: self._left]
            del self._held[: self._left + 2]
            self._left = None


def _head_of(text: bytes) -> HttpReply:
    first, *lines = text.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status, _, reason = rest.partition(" ")
    if not version.startswith("HTTP/1.") or not (status.isdecimal() and len(status) == 3):
        raise NotHttp(f"it begins with {first[:40]!r}")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    if version == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return HttpReply(int(status), reason, headers)


def _length_of(head: HttpReply) -> int | None:
    if head.status_code in _WITHOUT_BODY:
        return 0
    text = head.headers.get("content-length")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or int(text[:20]) > BODY_BYTES_MAX:
        raise NotHttp(f"its length is {text[:40]!r}")
    return int(text)


def _chunk_size(line: bytes) -> int:
    text = line.partition(b";")[0].strip()
    try:
        size = int(text, 16)
    except ValueError:
        raise NotHttp(f"a chunk has the size {text[:40]!r}") from None
    if not 0 <= size <= BODY_BYTES_MAX:
        raise NotHttp(f"a chunk has the size {text[:40]!r}")
    return size
