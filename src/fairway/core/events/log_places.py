"""How far somebody has come in a tenant's log; of one in several shards, in the log of each part.

Each part numbers its own events, so a place in all of them is a number for each: `4711` of a tenant
in one shard, `12.0.55.3` of one in four. Events of one job are in one part, in order; those of
different parts are put in order of time, as far as they are known. Pure: reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from fairway.core.events.event import Event
from fairway.core.events.event_gap import EventGap, LogItem

Places: TypeAlias = tuple[int, ...]  # the last position, of each part

DIGITS_MAX = 18
_TEXT = re.compile(rf"[0-9]{{1,{DIGITS_MAX}}}(\.[0-9]{{1,{DIGITS_MAX}}})*")
_BEGINNING = "0"


class PartPage(NamedTuple):
    """What was read of one part's log, in the order in which it is asked for."""

    events: Sequence[Event]
    cursor: int  # look on from here
    has_more: bool  # than was read


class PartEvent(NamedTuple):
    part: int
    event: Event


class MergedPage(NamedTuple):
    events: list[PartEvent]
    cursor: Places
    has_more: bool


def text_of(places: Places) -> str:
    return ".".join(map(str, places))


def shown(places: Places) -> int | str:
    """As people see it: a number, as long as one is enough."""
    return places[0] if len(places) == 1 else text_of(places)


def parse_places(text: str, parts: int) -> Places | None:
    """None: it is no place in the log of a tenant with so many parts. 0 is the beginning of all."""
    if len(text) > parts * (DIGITS_MAX + 1) or not _TEXT.fullmatch(text):
        return None
    if text == _BEGINNING:
        return (0,) * parts
    found = tuple(map(int, text.split(".")))
    return found if len(found) == parts else None


def moved(places: Places, part: int, position: int) -> Places:
    return (*places[:part], position, *places[part + 1 :])


def merged(
    pages: Sequence[PartPage], begin: Places, limit: int, *, newest: bool = False
) -> MergedPage:
    """One page of all parts', in order of time. It ends where that of a part ends which has more:
    nobody knows yet what comes next there. `begin`: where each goes on, if nothing of it is taken.
    """
    if len(pages) == 1:
        only = [PartEvent(0, one) for one in pages[0].events]
        return MergedPage(only, (pages[0].cursor,), pages[0].has_more)
    taken: list[PartEvent] = []
    at, sign = [0] * len(pages), -1 if newest else 1
    heads = [  # of each part the next: looking at all of them for every event would take long
        (sign * one.events[0].at.timestamp(), part) for part, one in enumerate(pages) if one.events
    ]
    heapify(heads)
    is_ended = any(one.has_more and not one.events for one in pages)
    while heads and not is_ended and len(taken) < limit:
        _, part = heads[0]
        page = pages[part]
        taken.append(PartEvent(part, page.events[at[part]]))
        at[part] += 1
        if at[part] < len(page.events):
            heapreplace(heads, (sign * page.events[at[part]].at.timestamp(), part))
        else:
            heappop(heads)
            is_ended = page.has_more
    cursor = tuple(_reached(one, at[part], begin[part]) for part, one in enumerate(pages))
    is_left = any(at[part] < len(one.events) for part, one in enumerate(pages))
    return MergedPage(taken, cursor, is_left or any(one.has_more for one in pages))


def _reached(page: PartPage, taken: int, begin: int) -> int:
    if taken == len(page.events):
        return page.cursor
    return page.events[taken - 1].position if taken else begin


def in_order(
    pages: Sequence[tuple[Sequence[Event], int]], after: Places
) -> Iterator[tuple[Places, LogItem]]:
    """All that follows: what is gone, and then each part's events in their own order, between each
    other by time; each with the place behind it. Of each part: its next events, and up to where it
    was trimmed."""
    is_one = len(pages) == 1
    for part, (_, trimmed_to) in enumerate(pages):
        if trimmed_to > after[part]:
            first, after = after[part] + 1, moved(after, part, trimmed_to)
            gap = EventGap(first, trimmed_to)
            yield after, gap if is_one else gap._replace(part=part, cursor=text_of(after))
    whole = [PartPage(events, 0, has_more=False) for events, _ in pages]
    for part, event in merged(whole, after, sum(len(one.events) for one in whole)).events:
        after = moved(after, part, event.position)
        yield after, event if is_one else replace(event, part=part, cursor=text_of(after))
