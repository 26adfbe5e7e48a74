"""Logs of several parts read as one: nothing is left out, nothing comes twice, each in order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.events.event import Event
from fairway.core.events.event_gap import EventGap
from fairway.core.events.log_places import (
    PartPage,
    Places,
    in_order,
    merged,
    parse_places,
    shown,
    text_of,
)

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def _log(seconds: list[int]) -> list[Event]:
    """A part's log: its events at these moments, in its own order."""
    return [
        Event(place + 1, BEGIN + timedelta(seconds=at), "job.accepted", None, "t", {})
        for place, at in enumerate(seconds)
    ]


SECONDS = st.lists(st.integers(0, 20), max_size=12)
LOGS = st.lists(SECONDS.map(_log), min_size=1, max_size=5) | st.lists(
    SECONDS.map(sorted).map(_log),
    min_size=1,
    max_size=5,  # as they are but for clocks that differ
)


def _read(logs: list[list[Event]], some: int, limit: int, *, newest: bool) -> list[tuple[int, int]]:
    """By pages, as a client reads on; each part gives `some` events at a time."""
    places: Places = tuple(len(log) + 1 if newest else 0 for log in logs)
    seen: list[tuple[int, int]] = []
    for _ in range(200):
        pages = []
        for log, at in zip(logs, places, strict=True):
            left = log[: at - 1][::-1] if newest else log[at:]
            events = left[:some]
            cursor = events[-1].position if events else at
            pages.append(PartPage(events, cursor, len(left) > some))
        page = merged(pages, places, limit, newest=newest)
        assert len(page.events) <= limit or len(logs) == 1
        seen += [(part, event.position) for part, event in page.events]
        assert page.has_more == (page.cursor != _end(logs, newest=newest)), "it says when it ends"
        places = page.cursor
        if not page.has_more:
            return seen
    raise AssertionError("it never ends")


def _end(logs: list[list[Event]], *, newest: bool) -> Places:
    if newest:
        return tuple(1 if log else len(log) + 1 for log in logs)
    return tuple(len(log) for log in logs)


@given(LOGS, st.integers(1, 4), st.integers(1, 9), st.booleans())
def test_every_event_is_read_once_and_each_part_in_its_order(
    logs: list[list[Event]], some: int, limit: int, newest: bool
) -> None:
    seen = _read(logs, min(some, limit), limit, newest=newest)
    for part, log in enumerate(logs):
        of_part = [position for place, position in seen if place == part]
        wanted = [event.position for event in log]
        assert of_part == (wanted[::-1] if newest else wanted)
    if all(log == sorted(log, key=lambda one: one.at) for log in logs):
        times = [logs[part][position - 1].at for part, position in seen]
        assert times == sorted(times, reverse=newest), "in order of time, over all pages"


@given(LOGS, st.data())
def test_whoever_comes_back_anywhere_misses_nothing(
    logs: list[list[Event]], data: st.DataObject
) -> None:
    told = [*in_order([(log, 0) for log in logs], (0,) * len(logs))]
    assert len(told) == sum(map(len, logs))
    cut = data.draw(st.integers(0, len(told)))
    places = told[cut - 1][0] if cut else (0,) * len(logs)
    again = parse_places(text_of(places), len(logs))
    assert again == places
    rest = [*in_order([(log[at:], 0) for log, at in zip(logs, again, strict=True)], again)]
    heard = [(item.part, item.position) for _, item in [*told[:cut], *rest]]
    assert sorted(heard, key=str) == sorted(
        ((item.part, item.position) for _, item in told), key=str
    )


def test_what_is_gone_is_told_with_its_part() -> None:
    ((places, gap),) = in_order([([], 0), ([], 7)], (0, 2))
    assert (places, gap) == ((0, 7), EventGap(3, 7, 1, "0.7"))
    ((_, gap),) = in_order([([], 7)], (2,))
    assert (gap, gap.resume_after) == (EventGap(3, 7), 7)


@pytest.mark.parametrize(
    ("text", "parts", "places"),
    [
        ("0", 3, (0, 0, 0)),
        ("4711", 1, (4711,)),
        ("1.2.3", 3, (1, 2, 3)),
        ("1.2.3", 2, None),
        ("4711", 2, None),
        ("", 1, None),
        ("-1", 1, None),
        ("1.", 2, None),
        ("\u0661", 1, None),
        ("1" * 19, 1, None),
        (".".join(["9" * 18] * 17), 16, None),
    ],
)
def test_a_place_has_a_number_for_each_part(text: str, parts: int, places: Places | None) -> None:
    assert parse_places(text, parts) == places


def test_a_place_of_one_part_is_a_number() -> None:
    assert shown((5,)) == 5
    assert shown((5, 0)) == "5.0"


class _Looked(list[Event]):
    """Events that count how often somebody looked at one of them."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)


def test_an_event_is_looked_at_a_few_times_however_many_parts_there_are() -> None:
    """All parts' next once for every event held everybody up: a tenth of a second for 3 200."""
    logs = [_Looked(_log([*range(50)])) for _ in range(16)]
    told = merged([PartPage(log, 50, has_more=False) for log in logs], (0,) * 16, 1000)
    assert len(told.events) == 16 * 50
    assert sum(log.looks for log in logs) <= 3 * len(told.events)
