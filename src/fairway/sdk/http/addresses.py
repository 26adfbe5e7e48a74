"""The servers of one platform: any of them will do, so a caller goes to the one that answers.

Workers and programs are told them alike, in one text with commas. A server that gives no answer is
left for the next one at once; the one that answered last stays the first to be asked. No network.
Threads and event loops may share one.

Programs may know several regions, with semicolons between, the nearest first. When no server of a
region answers the next region is asked; from there one question in a while looks whether a nearer
one is back, and goes on in the old place if not. Workers serve one region and are told of no other.

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
LOOK_FIRST_SECONDS = 2.0  # until it is looked whether a nearer region is back; then ever longer
LOOK_APART_SECONDS_MAX = 60.0
LOOK_SECONDS = 3.0  # what such a look may cost the one who asks
SHORT_CUT_SECONDS = 2.0  # servers answer within one, or say that they cannot
SLOW_BYTES_PER_SECOND = 1 << 20
LEFT_SECONDS = 5.0  # an owner that gave no answer may be restarting
OWNER_SECONDS = 60.0  # owners change: then whoever is asked passes on, or says who it is now
URL_CHARACTERS_MAX = 300
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_URL = "http://127.0.0.1:8700"


def checked_urls(text: str) -> tuple[str, ...]:
    """Each address once; ValueError now, not "no answer" after all our patience."""
    return tuple(url for region in checked_regions(text) for url in region)


def checked_regions(text: str) -> tuple[tuple[str, ...], ...]:
    """The addresses by regions; one that stands in several belongs to the first of them."""
    regions: list[tuple[str, ...]] = []
    known: set[str] = set()
    for part in [one for one in text.split(";") if one.strip(" ,")] or [text]:
        given = [one for one in part.split(",") if one.strip()] or [part]
        fresh = [url for url in dict.fromkeys(map(_checked, given)) if url not in known]
        known.update(fresh)
        regions += [tuple(fresh)] if fresh else []
    return tuple(regions)


def text_of(regions: tuple[tuple[str, ...], ...]) -> str:
    """As it is written in FAIRWAY_URL."""
    return ";".join(map(",".join, regions))


def both_in(urls: str, known: str) -> str:
    """Those addresses that are in both, by regions as the first has them."""
    its = {_bare(one) for one in known.replace(";", ",").split(",")}
    regions = [[one for one in part.split(",") if _bare(one) in its] for part in urls.split(";")]
    return ";".join(",".join(part) for part in regions if part)


def _bare(url: str) -> str:
    """To be compared."""
    return url.strip().rstrip("/")


def is_this_machine(text: str) -> bool:
    """Whether all addresses in this text are of this machine."""
    return all(map(_is_loopback, text.replace(";", ",").split(",")))


def _is_loopback(url: str) -> bool:
    host = urlsplit(url.strip()).hostname or ""
    is_loopback = host.startswith("127.") and host.replace(".", "").isdecimal()
    return is_loopback or host in ("localhost", "::1")


def _checked(text: str) -> str:
    url = text.strip().rstrip("/")
    scheme, _, host = url.partition("://")
    if scheme not in ("http", "https") or not host:
        raise ValueError(
            f"{url!r} is no address of a server: write it as in {DEFAULT_URL}, with http:// or"
            " https:// (FAIRWAY_URL or url=)"
        )
    return url


class _Owner(NamedTuple):
    url: str
    until: float


class Addresses:
    """Which server is asked next."""

    def __init__(self, text: str, now: Callable[[], float] = time.monotonic) -> None:
        regions = checked_regions(text)
        self.all = tuple(url for region in regions for url in region)
        #: For each address, how many others are in nearer regions.
        self._nearer = [sum(map(len, regions[:n])) for n, one in enumerate(regions) for _ in one]
        self._place = 0
        self._now = now
        self._looks = 0  # in vain, since a nearer region was left
        self._look_at = 0.0
        self._hosts = {place for url in self.all if (place := _host_of(url)) is not None}
        self._owner: _Owner | None = None
        self._left: _Owner | None = None  # it gave no answer: not to be followed until then

    @property
    def current(self) -> str:
        owner = self._owner
        if owner is not None and self._now() < owner.until:
            return owner.url
        return self.all[self._place]

    def pick(self) -> str:
        """The address for one question: now and then one of a nearer region, to see if it is back.

        Only who asks at that moment goes there. Should it give no answer, `current` is next.
        """
        nearer, now = self._nearer[self._place], self._now()
        if not nearer or now < self._look_at:
            return self.current
        url = self.all[self._looks % nearer]
        self._looks += 1
        self._look_at = now + min(LOOK_FIRST_SECONDS * self._looks, LOOK_APART_SECONDS_MAX)
        return url

    def is_look(self, url: str) -> bool:
        """Whether it is of a nearer region than the one that we are in."""
        return url in self.all[: self._nearer[self._place]]

    def answered(self, url: str) -> None:
        """A good answer: from a nearer region, it is back, and all go there again."""
        if self._nearer[self._place] and self.is_look(url):
            self._owner = None
            self._place = self.all.index(url)

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
            self._place = next_place = (place + 1) % len(self.all)
            if self._nearer[next_place] > self._nearer[place]:
                self._looks, self._look_at = 0, self._now() + LOOK_FIRST_SECONDS

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

    def share_seconds(self, seconds: float, url: str = "") -> float:
        """What one of them may take, so that a silent one leaves time for the others."""
        share = seconds / (len(self.all) + (self._owner is not None))
        return min(share, LOOK_SECONDS) if self.is_look(url) else share

    def try_seconds(self, url: str, seconds: float, content_bytes: int) -> float:
        """What one try at this address may take.

        Where a server process is being restarted, whoever connects to its own address waits in line
        until it is back, while its siblings would answer at once.
        """
        share = self.share_seconds(seconds, url)
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
