"""Ticks of cron expressions against a plain reading of the calendar, and what is refused.

The oracle knows no cron library: it walks real time in quarters of an hour, reads the clock on the
wall in each, and applies the two documented rules. Zones and years are chosen for their trouble:
half-hour and two-hour changes, a day that never was, rules that were abolished, a leap day.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import accumulate, islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairway.core.errors import InvalidRequest
from fairway.core.scheduling.ticks import STEPS_MAX, Every, Steps, TooManySteps, while_affordable
from fairway.services.scheduling.cron import Cron, checked

DAYS = 400
QUARTER = timedelta(minutes=15)
CALLS_MAX = 20 * 3 * STEPS_MAX  # three searches, each with its steps
PLACES = {
    "UTC": date(2023, 12, 1),
    "Europe/Lisbon": date(2023, 12, 1),  # with 29 February 2024
    "America/New_York": date(2023, 6, 1),
    "Australia/Lord_Howe": date(2024, 1, 1),  # half an hour
    "Antarctica/Troll": date(2024, 1, 1),  # two hours
    "Asia/Kathmandu": date(2024, 1, 1),  # an odd offset
    "America/Sao_Paulo": date(2018, 6, 1),  # summer time abolished
    "Europe/Istanbul": date(2016, 1, 1),  # stayed on summer time for good
    "Asia/Pyongyang": date(2018, 1, 1),  # changed its offset by half an hour
    "Pacific/Apia": date(2011, 6, 1),  # 30 December 2011 never was
}
WALL_CLOCK = [
    "30 2 * * *",
    "0,15,30,45 1-2 * * *",
    "0 0 29 2 *",
    "45 23 L * *",
    "0 9 * * MON-FRI",
    "0 0 1 * * *",  # with seconds
    "30 1,2,3 30 * *",
]
REAL_TIME = ["*/15 1-3 * * *", "30 */2 * * *", "0 * * * SUN", "* 15 0-4 * * *"]


@cache
def quarters(zone: str) -> tuple[list[int], list[datetime]]:
    """Every quarter of an hour of the days: the moment, and what the clock on the wall shows."""
    begin = datetime.combine(PLACES[zone], datetime.min.time(), UTC)
    moments = [begin + QUARTER * n for n in range(DAYS * 96)]
    place = ZoneInfo(zone)
    return (
        [round(moment.timestamp() * 1000) for moment in moments],
        [moment.astimezone(place).replace(tzinfo=None) for moment in moments],
    )


def matches(expression: str, wall: datetime) -> bool:
    """A plain reading of the expressions above, on quarters of an hour."""
    *_, minute, hour, day, _month, weekday = expression.split()
    return (
        _in(minute, wall.minute)
        and _in(hour, wall.hour)
        and ((wall + timedelta(days=1)).day == 1 if day == "L" else _in(day, wall.day))
        and _in(_month, wall.month)
        and (weekday == "*" or wall.strftime("%a").upper() in _weekdays(weekday))
    )


@cache
def _in(field: str, value: int) -> bool:
    if field.startswith("*"):
        step = int(field.partition("/")[2] or 1)
        return value % step == 0
    return any(
        int(low) <= value <= int(high or low)
        for low, _, high in (part.partition("-") for part in field.split(","))
    )


def _weekdays(field: str) -> list[str]:
    return ["MON", "TUE", "WED", "THU", "FRI"] if field == "MON-FRI" else [field]


def expected(expression: str, zone: str) -> list[int]:
    moments, walls = quarters(zone)
    if expression in REAL_TIME:
        return [m for m, wall in zip(moments, walls, strict=True) if matches(expression, wall)]
    first_shown: dict[datetime, int] = {}
    for moment, wall in zip(moments, walls, strict=True):
        first_shown.setdefault(wall, moment)
    found, wall = set(), walls[0]
    past = list(accumulate(walls, max))  # how far clocks have come
    while wall <= walls[-1]:
        if matches(expression, wall):
            shown = first_shown.get(wall)
            found.add(moments[bisect_right(past, wall)] if shown is None else shown)
        wall += QUARTER
    return sorted(found)


@pytest.mark.parametrize("zone", PLACES)
@pytest.mark.parametrize("expression", [e for e in WALL_CLOCK + REAL_TIME if len(e.split()) == 5])
def test_ticks_are_those_of_the_calendar_each_once_both_ways(zone: str, expression: str) -> None:
    wanted = expected(expression, zone)
    moments, _ = quarters(zone)
    cron = Cron(expression, zone)
    forward = list(
        takewhile(lambda tick: tick <= moments[-1], cron.after(moments[0] - 1, Steps(10**9)))
    )
    assert forward == wanted
    backward = list(
        takewhile(lambda tick: tick >= moments[0], cron.until(moments[-1], Steps(10**9)))
    )
    assert backward == wanted[::-1]


@pytest.mark.parametrize("zone", PLACES)
def test_seconds_change_nothing_about_the_rule(zone: str) -> None:
    moments, _ = quarters(zone)
    for plain in ("30 2 * * *", "45 */5 * * *"):
        two = [
            list(takewhile(lambda tick: tick <= moments[-1], found))
            for text in (plain, f"0 {plain}")
            for found in [Cron(text, zone).after(moments[0], Steps(10**9))]
        ]
        assert two[0] == two[1]


crons = st.sampled_from([e for e in WALL_CLOCK + REAL_TIME if "0-4" not in e])


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(PLACES)), crons, st.integers(0, DAYS * 86_400_000))
def test_from_any_moment_the_ticks_go_on_without_a_gap_or_a_double(
    zone: str, expression: str, offset_ms: int
) -> None:
    begin = datetime.combine(PLACES[zone], datetime.min.time(), UTC)
    moment = round(begin.timestamp() * 1000) + offset_ms
    cron = Cron(expression, zone)
    before, *earlier = islice(cron.until(moment), 3)
    after = next(cron.after(moment))
    assert before <= moment < after
    assert next(cron.after(before)) == after, "nothing lies between them"
    assert next(cron.until(after - 1)) == before
    assert [before, *earlier] == sorted({before, *earlier}, reverse=True)


def test_a_skipped_time_runs_when_clocks_go_on_and_a_repeated_one_once() -> None:
    lisbon = Cron("30 1 * * *", "Europe/Lisbon")
    march, october = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert _first(lisbon, march) == ["2026-03-29T01:00:00", "2026-03-30T00:30:00"]
    assert _first(lisbon, october) == ["2026-10-25T00:30:00", "2026-10-26T01:30:00"]


def _first(cron: Cron, moment: datetime) -> list[str]:
    ticks = islice(cron.after(round(moment.timestamp() * 1000)), 2)
    return [f"{datetime.fromtimestamp(tick / 1000, UTC):%Y-%m-%dT%H:%M:%S}" for tick in ticks]


@given(st.integers(1000, 10**9), st.integers(0, 10**12), st.integers(0, 10**13))
def test_intervals_are_counted_from_their_anchor(every: int, anchor: int, moment: int) -> None:
    ticks = Every(every, anchor)
    following = next(ticks.after(moment))
    assert following > max(moment, anchor)
    assert (following - anchor) % every == 0
    last = next(ticks.until(moment), None)
    assert last is None or (last <= moment and last + every == following)


# -- what is refused -----------------------------------------------------------------------------

NOW = round(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
BAD = [
    "* * 31 2 *",
    "0 0 30 2 *",
    "*/0 * * * *",
    "* * * * * *",  # every second
    "*/5 * * * * *",
    "0-1 0 0 1 1 *",  # two in one second's distance, once a year
    "61 * * * *",
    "* * * *",
    "",
    "a b c d e",
    "* * * * * * *",
    "0 0 * * MON#9",
    "1," * 200 + "1 * * * *",
    "L/2 * * * *",
    "99999999999999999999 * * * *",
]


@pytest.mark.parametrize("cron", BAD)
def test_the_impossible_and_the_explosive_are_refused_quickly(cron: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidRequest) as refusal:
        checked(cron=cron, every_ms=None, zone="Europe/Lisbon", now_ms=NOW, gap_ms_min=10_000)
    assert refusal.value.field == "/cron"
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("cron", ["* * * * *", "0 0 29 2 *", "*/10 * * * * *", "0 9 * * MON-FRI"])
def test_the_rare_and_the_usual_are_taken(cron: str) -> None:
    began = time.process_time()
    checked(cron=cron, every_ms=None, zone="America/New_York", now_ms=NOW, gap_ms_min=10_000)
    assert time.process_time() - began < 0.5


def test_zones_and_kinds_are_checked() -> None:
    with pytest.raises(InvalidRequest, match="no time zone"):
        checked(cron="* * * * *", every_ms=None, zone="Mars/Base", now_ms=NOW, gap_ms_min=1)
    for cron, every in ((None, None), ("* * * * *", 60_000)):
        with pytest.raises(InvalidRequest, match="one of them"):
            checked(cron=cron, every_ms=every, zone="UTC", now_ms=NOW, gap_ms_min=1)
    with pytest.raises(InvalidRequest, match="too often"):
        checked(cron=None, every_ms=9_999, zone="UTC", now_ms=NOW, gap_ms_min=10_000)


def test_plain_english() -> None:
    text = Cron("0 9 * * MON-FRI", "Europe/Lisbon").text
    assert text == "At 09:00 on Monday through Friday (Europe/Lisbon)"
    assert [Every(ms, 0).text for ms in (60_000, 90_000, 7_200_000, 86_400_000, 1500)] == [
        "Every minute", "Every 90 seconds", "Every 2 hours", "Every day", "Every 1.5 seconds",
    ]  # fmt: skip


# -- what it costs -------------------------------------------------------------------------------

EXPENSIVE = [
    ("*/30 0 * 2 MON#5", "Europe/Lisbon"),  # once in 28 years
    ("*/30 0 29 2 *", "Europe/Lisbon"),
    ("30 0 * 2 MON#5", "Europe/Lisbon"),
    ("* 0 */31 * MON#5", "Africa/Casablanca"),  # never; clocks change four times a year
    ("*/59 */59 */23 */30 * 0#5", "Australia/Lord_Howe"),
]


def part(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    bounds = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    steps = st.integers(1, high - low + 1).map(lambda step: f"*/{step}")
    several = st.lists(st.integers(low, high), min_size=2, max_size=4).map(
        lambda found: ",".join(map(str, found))
    )
    return st.one_of(
        st.just("*"), number, steps, several, bounds.map(lambda two: f"{two[0]}-{two[1]}")
    )


weekday = st.one_of(
    part(0, 6),
    st.tuples(st.integers(0, 6), st.integers(1, 5)).map(lambda two: f"{two[0]}#{two[1]}"),
    st.integers(0, 6).map(lambda day: f"{day}L"),
)
any_cron = st.tuples(
    part(0, 59), part(0, 23), st.one_of(part(1, 31), st.sampled_from(["L", "LW"])), part(1, 12),
    weekday,
).map(" ".join)  # fmt: skip


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called: a measure of work that no busy machine changes."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def all_questions(cron: str, zone: str, now_ms: int) -> None:
    """What a request and the ticker ask of an expression."""
    try:
        found = checked(cron=cron, every_ms=None, zone=zone, now_ms=now_ms, gap_ms_min=10_000)
        list(islice(while_affordable(found.until(now_ms)), 1100))
        list(islice(while_affordable(found.after(now_ms)), 5))
    except InvalidRequest:
        return


@pytest.mark.parametrize(("cron", "zone"), EXPENSIVE)
def test_no_known_bomb_costs_more_than_its_steps(cron: str, zone: str) -> None:
    assert calls_of(lambda: all_questions(cron, zone, NOW)) < CALLS_MAX


@settings(deadline=None, max_examples=40)
@given(any_cron, st.sampled_from(sorted(PLACES)), st.integers(0, 250_000_000_000_000))
def test_no_expression_costs_more_than_its_steps(cron: str, zone: str, now_ms: int) -> None:
    assert calls_of(lambda: all_questions(cron, zone, now_ms)) < CALLS_MAX


@given(any_cron, st.sampled_from(sorted(PLACES)))
@settings(deadline=None, max_examples=40)
def test_steps_are_paid_for_what_is_done(cron: str, zone: str) -> None:
    try:
        checked(cron=cron, every_ms=None, zone=zone, now_ms=NOW, gap_ms_min=1)
    except InvalidRequest:
        assume(False)  # such as the 30th of February
    steps = Steps()

    def search() -> None:
        with suppress(TooManySteps):
            list(islice(Cron(cron, zone).after(NOW, steps), 50))

    calls = calls_of(search)
    assert calls <= 20 * (STEPS_MAX - steps.left) + 2000


def test_a_calendar_that_ends_ends() -> None:
    last = round(datetime(9998, 12, 30, tzinfo=UTC).timestamp() * 1000)
    for cron in ("0 0 29 2 MON", "*/5 * 1 1 *", "0 0 1 1 *"):
        assert len(list(islice(while_affordable(Cron(cron, "Europe/Lisbon").after(last)), 9))) < 10


def test_a_rare_expression_is_searched_for_once() -> None:
    """The same schedules are looked at again and again; each look has its own small budget."""
    cron = Cron("17 3 29 2 MON", "Pacific/Chatham")
    whole = list(islice(cron.after(NOW, Steps(100_000)), 3))
    again = list(islice(Cron("17 3 29 2 MON", "Pacific/Chatham").after(NOW + 1, Steps(3)), 3))
    assert again == whole
    with pytest.raises(TooManySteps):  # the search goes on behind what is known
        list(islice(cron.after(NOW, Steps(10)), 4))
