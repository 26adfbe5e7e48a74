"""Whose home is where, and whose word on that counts: terms that only grow, no clocks.

One region at a time is the directory: tenants, tiers, keys and homes are changed there. Each change
of the directory has a higher *directory term*; each move of a tenant has a higher *home term*. What
was said under a higher directory term stands above all that was said under a lower one, so a region
that was cut off and went on by itself loses, whatever it said meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, NewType

HomeTerm = NewType("HomeTerm", int)
DirectoryTerm = NewType("DirectoryTerm", int)

#: Without a peer's answer for so long, a region that starts goes on with what it knows.
ALONE_SECONDS = 5.0
#: A server that did not look for so long was stopped: what it knew may be old.
STALE_SECONDS = 5.0


class HomeVersion(NamedTuple):
    """Which of two homes that were said of one tenant stands: the greater."""

    directory_term: DirectoryTerm
    term: HomeTerm


NEVER_MOVED = HomeVersion(DirectoryTerm(0), HomeTerm(0))


class Home(NamedTuple):
    """Where a tenant's jobs are dispatched, by the word of the directory."""

    region: str
    term: HomeTerm
    directory_term: DirectoryTerm

    @property
    def version(self) -> HomeVersion:
        return HomeVersion(self.directory_term, self.term)

    def is_newer_than(self, other: Home) -> bool:
        return self.version > other.version


def version_of(home: Home | None) -> HomeVersion:
    return NEVER_MOVED if home is None else home.version


class Meant(NamedTuple):
    """The tenant that one region means when it sends another something: two regions may know one
    number as two tenants, and what was under way while a home moved on may come when it is back."""

    name: str  # "": it is not known there
    home: Home | None  # None: it never moved

    def is_outdated(self, known: Home | None) -> bool:
        """Whether it was sent by an older word than whoever takes it knows."""
        return version_of(known) > version_of(self.home)


def will_take_none(sent_under: HomeVersion, known: HomeVersion, *, is_home: bool) -> bool:
    """Whether a region that knows this home takes nothing any more that was sent under that one:
    at home elsewhere it takes nothing at all, until it hears of a newer home."""
    return known > sent_under or (known == sent_under and not is_home)


class DirectoryClaim(NamedTuple):
    """That a region is the directory, as one of them believes."""

    term: DirectoryTerm
    region: str


def leading(claims: Iterable[DirectoryClaim]) -> DirectoryClaim:
    """Whom all follow. Of two that were made at once, by operators who knew nothing of each other,
    the name decides, everywhere alike."""
    return max(claims)


class Acquaintance:
    """Whether this server knows the present homes well enough to dispatch anything.

    It does once the directory has told it; or when it has asked in vain for a while, since no other
    region's word can be had. Who was stopped and resumed begins again.
    """

    def __init__(self) -> None:
        self._asking_since_us: int | None = None
        self._looked_us: int | None = None
        self._is_told = False

    def is_stale(self, now_us: int) -> bool:
        """No look was finished for so long that it must be looked again before anything else."""
        looked_us = self._looked_us
        return looked_us is None or now_us - looked_us > STALE_SECONDS * 1e6

    def must_ask(self, now_us: int) -> bool:
        """Another server of the region may have asked in vain: only the directory's own answer
        tells this one, until it had one."""
        return not self._is_told or self.is_stale(now_us)

    def goes_on(self, now_us: int) -> None:
        """A look is under way that takes long, and this server was not stopped meanwhile."""
        if not self.is_stale(now_us):
            self._looked_us = now_us

    def looked(self, began_us: int, now_us: int, *, is_told: bool) -> None:
        """A look is over; `is_told`: the directory answered, or is this region."""
        if self.is_stale(began_us):
            self._is_told, self._asking_since_us = False, began_us
        elif self.is_stale(now_us):  # stopped within it: what it heard may be of before
            self._is_told, self._asking_since_us, is_told = False, now_us, False
        self._looked_us = now_us
        self._is_told = self._is_told or is_told

    def may_dispatch(self, now_us: int) -> bool:
        if self.is_stale(now_us):
            return False
        since_us = self._asking_since_us
        is_alone = since_us is not None and now_us - since_us >= ALONE_SECONDS * 1e6
        return self._is_told or is_alone
