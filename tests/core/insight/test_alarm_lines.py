"""Lines of the history of alarms: each alarm has one, whoever writes and however often it fails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.insight.alarm_lines import (
    CHANGES_MAX,
    AlarmLine,
    body_of_alarm,
    changes,
    number_of,
    raised_of,
)
from fairway.core.insight.alarm_readings import AlarmReading
from fairway.core.insight.alarms import ALARMS, Key, Raised
from fairway.core.insight.marks import BUILD_CHARACTERS_MAX, ChartMark, first_seen, with_incidents
from fairway.core.unix_time import from_unix_ms

BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
alarms = st.builds(
    Raised,
    alarm=st.sampled_from(ALARMS),
    subject=st.integers(0, 20).map(lambda number: f"pool {number}"),
    since_ms=st.integers(1_700_000_000_000, 1_800_000_000_000),
    reading=st.builds(AlarmReading, st.floats(0, 100), st.just("It is too much."), st.just(2.0)),
)
raised_once = st.lists(alarms, max_size=60, unique_by=lambda one: one.key)


def line_of(one: Raised, number: int = 1) -> AlarmLine:
    said = one.subject, one.text, one.reading.value, one.threshold
    since = from_unix_ms(one.since_ms)
    return AlarmLine(number, one.alarm.name, one.alarm.severity, *said, since, None)


@tried(30)
@given(raised_once, raised_once)
def test_lines_become_what_is_raised_a_few_at_a_time(
    before: list[Raised], now: list[Raised]
) -> None:
    lines: dict[Key, AlarmLine] = {one.key: line_of(one) for one in before}
    for _ in range(len(before) + len(now)):
        begun, over = changes(lines, now)
        assert max(len(begun), len(over)) <= CHANGES_MAX
        assert not {one.key for one in begun} & lines.keys(), "none has two lines"
        for line in over:
            del lines[line.key]
        lines |= {one.key: line_of(one) for one in begun}
        if not (begun or over):
            break
    assert lines.keys() == {one.key for one in now}


@given(alarms)
def test_a_line_is_read_as_it_was_raised(one: Raised) -> None:
    (again,) = raised_of([line_of(one)])
    assert (again.key, again.since_ms, again.text) == (one.key, one.since_ms, one.text)
    assert abs(again.threshold - one.threshold) < 1e-9
    gone = line_of(one)._replace(name="AN_ALARM_OF_LONG_AGO")
    assert list(raised_of([gone])) == []


@given(st.sets(st.integers(1, 10**9), min_size=2))
def test_every_message_has_a_number_of_its_own(ids: set[int]) -> None:
    one = line_of(Raised(ALARMS[0], "pool short", 0, AlarmReading(1, "…")))
    lines = [one._replace(id=number) for number in ids]
    lines += [line._replace(ended_at=BEGAN) for line in lines]
    assert len({number_of(line) for line in lines}) == len(lines)
    assert min(map(number_of, lines)) > 0, "below are tests"


def test_a_message_says_what_and_since_when_and_what_helps() -> None:
    alarm = ALARMS[0]
    line = line_of(Raised(alarm, "pool short", 1_769_860_800_000, AlarmReading(9.0, "It waits.")))
    told = msgspec.json.decode(body_of_alarm(line))
    assert (told["type"], told["timestamp"]) == ("alarm.raised", "2026-01-31T12:00:00Z")
    assert told["data"] == {
        "id": 1,
        "name": alarm.name,
        "severity": alarm.severity,
        "subject": "pool short",
        "text": "It waits.",
        "runbook": alarm.runbook,
        "since": "2026-01-31T12:00:00Z",
        "ended_at": None,
        "value": 9.0,
        "threshold": 1.0,
        "link": alarm.link,
    }
    ended = line._replace(ended_at=BEGAN + timedelta(minutes=5))
    told = msgspec.json.decode(body_of_alarm(ended))
    assert (told["type"], told["timestamp"]) == ("alarm.ended", "2026-01-31T12:05:00Z")
    assert (told["data"]["id"], told["data"]["ended_at"]) == (1, "2026-01-31T12:05:00Z")


@tried(30)
@given(st.lists(st.text()), st.lists(st.text()))
def test_whatever_a_worker_says_of_its_build_is_a_line(
    versions: list[str], builds: list[str]
) -> None:
    for text, source in first_seen(versions, builds):
        assert text.isprintable()
        assert len(source) <= len("workers ") + BUILD_CHARACTERS_MAX


def test_incidents_stand_among_the_marks() -> None:
    line = line_of(
        Raised(ALARMS[1], "pool short", 1_769_860_800_000, AlarmReading(9.0, "It waits."))
    )
    ended = line._replace(ended_at=BEGAN + timedelta(minutes=5))
    note = ChartMark(BEGAN + timedelta(minutes=1), "note", "more workers")
    assert with_incidents([note], [ended]) == [
        ChartMark(
            BEGAN, "incident", "OLDEST_AGE_FAR_OVER_SLO (pool short): It waits.", ended.ended_at
        ),
        note,
    ]
