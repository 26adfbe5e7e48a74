"""The servers of one platform: any of them will do, so a caller goes to the one that answers.

Workers and programs are told them alike, in one text with commas. A server that gives no answer is
left for the next one at once; the one that answered last stays the first to be asked. No network.
Threads and event loops may share one.

A reply may say who owns the caller's jobs (`Fairway-Owner`). Questions go there for a while, until
it gives no answer. A reply can be forged and the key goes along with a question: so only hosts that
the program was given count, by the same scheme; whatever names another is not heeded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

OWNER_HEADER = "fairway-owner"
SHORT_CUT_SECONDS = 2.0  # servers answer within one, or say that they cannot
SLOW_BYTES_PER_SECOND = 1 << 20
LEFT_SECONDS = 5.0  # an owner that gave no answer may be restarting
OWNER_SECONDS = 60.0  # owners change: then whoever is asked passes on, or says who it is now
URL_CHARACTERS_MAX = 300
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_URL = "http://127.0.0.1:8700"


def checked_urls(text: str) -> tuple[str, ...]:
    """Each address once; ValueError now, not "no answer" after all our patience."""
    given = [one for one in text.split(",") if one.strip()] or [text]
    return tuple(dict.fromkeys(_checked(one) for one in given))


def _checked(text: str) -> str:
    url = text.strip().rstrip("/")
    scheme, _, host = url.partition("://")
    if scheme not in ("http", "https") or not host:
        raise ValueError(
            f"{url!r} is no address of a server: write it as in {DEFAULT_URL} (FAIRWAY_URL or url=)"
        )
    return url


class _Owner(NamedTuple):
    url: str
    until: float


class Addresses:
    """Which server is asked next."""

    def __init__(self, text: str, now: Callable[[], float] = time.monotonic) -> None:
        self.all = checked_urls(text)
        self._place = 0
        self._now = now
        self._hosts = {place for url in self.all if (place := _host_of(url)) is not None}
        self._owner: _Owner | None = None
        self._left: _Owner | None = None  # it gave no answer: not to be followed until then

    @property
    def current(self) -> str:
        owner = self._owner
        if owner is not None and self._now() < owner.until:
            return owner.url
        return self.all[self._place]

    def learn(self, url: str | None) -> None:
        """A reply named the owner, or none."""
        if url is None or len(url) > URL_CHARACTERS_MAX or not self._is_trusted(url):
            return
        url, left = url.rstrip("/"), self._left
        if left is None or left.url != url or self._now() >= left.until:
            self._owner = _Owner(url, self._now() + OWNER_SECONDS)

    def _is_trusted(self, url: str) -> bool:
        place = _host_of(url)
        return place is not None and place in self._hosts

    def leave(self, url: str) -> None:
        """It gave no answer. Who was there before us has left it already: that is no news."""
        owner, place = self._owner, self._place
        if owner is not None and owner.url == url:
            self._owner, self._left = None, _Owner(url, self._now() + LEFT_SECONDS)
        if self.all[place] == url:
            self._place = (place + 1) % len(self.all)

    def is_short_cut(self, url: str) -> bool:
        """Whether it is an owner that a reply named, and none that we were given.

        When it gives no answer, those that we were given have not been asked yet.
        """
        return url not in self.all

    def are_all_tried(self, tries: int) -> bool:
        """After so many tries in a row, each at another one: the next would be a repeat."""
        return tries % len(self.all) == 0

    def rounds(self, tries: int) -> int:
        """How often each was asked, from one; pauses grow by this."""
        return -(-tries // len(self.all))

    def share_seconds(self, seconds: float) -> float:
        """What one of them may take, so that a silent one leaves time for the others."""
        return seconds / (len(self.all) + (self._owner is not None))

    def try_seconds(self, url: str, seconds: float, content_bytes: int) -> float:
        """What one try at this address may take.

        Where a server process is being restarted, whoever connects to its own address waits in line
        until it is back, while its siblings would answer at once.
        """
        share = self.share_seconds(seconds)
        if not self.is_short_cut(url):
            return share
        return min(share, SHORT_CUT_SECONDS + content_bytes / SLOW_BYTES_PER_SECOND)

    def __str__(self) -> str:
        return " and ".join(self.all)


def _host_of(url: str) -> tuple[str, str] | None:
    """Scheme and host of an address that has no more to it than a port; of this machine, one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    has_more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("http", "https") or not host or port == 0 or has_more:
        return None
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    return parts.scheme, "localhost" if host in LOOPBACK else host
