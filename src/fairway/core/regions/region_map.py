"""The regions that an operator named, read once: names, addresses, and the number of each in ids.

A region's number is its place in the list, from 1 on: new ones are appended, and none is taken out.
Without a name for this server's own region there are none, and nothing else here is asked.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fairway.core.ids import RANDOM_BITS, REGION_BITS
from fairway.core.regions.addresses import is_address

REGIONS_MAX = (1 << REGION_BITS) - 1
SECRET_LENGTH_MIN = 16
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


class Region(NamedTuple):
    """A store, its servers and its workers."""

    name: str
    urls: tuple[str, ...]  # of its servers
    number: int  # in ids of jobs that it accepts


class StoreSigns(NamedTuple):
    """What a store says of itself before a server serves on it."""

    founded_as: str | None  # the region that it is, once a server of one was there
    has_parts: bool = False  # a tenant of it has several shards
    has_tenants: bool = False


class RegionMap(NamedTuple):
    here: str
    regions: dict[str, Region]

    @property
    def first(self) -> str:
        """The directory, while nobody has said otherwise."""
        return next(iter(self.regions))

    @property
    def others(self) -> list[str]:
        return [name for name in self.regions if name != self.here]

    @property
    def number(self) -> int:
        return self.regions[self.here].number

    def named(self, number: int) -> str | None:
        """The region that an id names; None: it names none of these."""
        return next((one.name for one in self.regions.values() if one.number == number), None)


def parsed_regions(text: str) -> dict[str, Region]:
    """`eu=http://a:1,http://b:2;us=http://c:3`; ValueError says what is wrong with it."""
    found: dict[str, Region] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, _, addresses = part.partition("=")
        urls = tuple(one.strip().rstrip("/") for one in addresses.split(",") if one.strip())
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name[:40]!r} is no name of a region: small letters, digits, hyphens"
            )
        if name in found:
            raise ValueError(f"{name} is named twice")
        if not urls or not all(is_address(url) for url in urls):
            raise ValueError(f"{name} needs addresses of its servers, such as http://10.0.0.1:8700")
        taken = {url for other in found.values() for url in other.urls}
        if twice := taken.intersection(urls):
            raise ValueError(f"{min(twice)} is an address of two regions")
        found[name] = Region(name, urls, len(found) + 1)
    if len(found) > REGIONS_MAX:
        raise ValueError(f"there are at most {REGIONS_MAX} regions")
    return found


def region_map(here: str, text: str) -> RegionMap | None:
    """None: this server belongs to no region."""
    return RegionMap(here, parsed_regions(text)) if here else None


def wrong_regions(here: str, text: str, secret: str) -> list[str]:
    """What is wrong with these three settings, each as a sentence that says what to do."""
    try:
        named = parsed_regions(text)
    except ValueError as error:
        return [f"FAIRWAY_REGIONS: {error}. Write eu=http://a:8700,http://b:8700;us=http://c:8700."]
    if not here:
        return ["FAIRWAY_REGIONS is set and FAIRWAY_REGION is not: name this one."] if text else []
    found = []
    if here not in named:
        found.append(f"FAIRWAY_REGION is {here!r}, which FAIRWAY_REGIONS does not name.")
    if len(secret) < SECRET_LENGTH_MIN:
        found.append(
            f"FAIRWAY_REGION_SECRET needs {SECRET_LENGTH_MIN} characters or more, the same in all"
            " regions: servers prove by it that they are ours."
        )
    if not (secret.isascii() and secret.isprintable() and secret == secret.strip()):
        found.append(
            "FAIRWAY_REGION_SECRET travels in a header: use printable ASCII characters, without a"
            " space or a line break around them."
        )
    return found


def region_number_of(job_id: str) -> int:
    """The region in which a job was accepted, if it was when there were regions; else chance."""
    return int(job_id[-11:], 16) >> (RANDOM_BITS - REGION_BITS) & REGIONS_MAX


def unfit_store(here: RegionMap | None, signs: StoreSigns) -> str | None:
    """Why servers of this region (None: of none) must not serve on such a store; or None."""
    founded_as = signs.founded_as
    if here is None:
        return None if founded_as is None else _forgotten(founded_as)
    if founded_as is None and signs.has_parts:
        return (
            "A tenant of this platform has several shards, so it cannot have regions: start servers"
            " without FAIRWAY_REGION."
        )
    if founded_as is None and signs.has_tenants and here.here != here.first:
        return (
            f"This database has tenants already, and joins the region {here.first!r}, which is"
            " first in FAIRWAY_REGIONS and knows others: one of the same name and number would be"
            f" taken for its own. Give {here.here!r} a new database, or name it first everywhere if"
            " its tenants are those to go on with."
        )
    if founded_as not in (None, here.here):
        return (
            f"This database is the region {founded_as!r}, and FAIRWAY_REGION is {here.here!r}: each"
            " region has a database of its own."
        )
    return None


def _forgotten(founded_as: str) -> str:
    return (
        f"This database is the region {founded_as!r}: set FAIRWAY_REGION, FAIRWAY_REGIONS and"
        " FAIRWAY_REGION_SECRET as its other servers have them. Without them tenants of other"
        " regions would be served here."
    )
