"""Alarms as lines of their history, and as messages to an operator's receiver.

What changes between two looks is a pure difference: alarms that are raised and have no line yet
get one, lines whose alarm is over get their end. So whoever writes may fail and try again, or be
another server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from fairway.core.events.event import Fact
from fairway.core.insight.alarm_readings import AlarmReading
from fairway.core.insight.alarms import ALARMS, Key, Raised
from fairway.core.unix_time import to_unix_ms
from fairway.core.webhooks.messages import Message

LINES_KEPT_MAX = 10_000
CHANGES_MAX = 20  # lines that begin, and that end, by one look: the rest by the next
RAISED, ENDED = "alarm.raised", "alarm.ended"  # kinds of what is sent

_BY_NAME = {alarm.name: alarm for alarm in ALARMS}


class AlarmLine(NamedTuple):
    id: int
    name: str
    severity: str
    subject: str
    text: str
    value: float
    threshold: float
    raised_at: datetime
    ended_at: datetime | None

    @property
    def key(self) -> Key:
        return self.name, self.subject


class Changes(NamedTuple):
    begun: list[Raised]
    over: list[AlarmLine]


def changes(lines: Mapping[Key, AlarmLine], raised: Iterable[Raised]) -> Changes:
    """What is to be written, given the lines without an end and what is raised now."""
    now = {one.key: one for one in raised}
    begun = [one for key, one in now.items() if key not in lines]
    over = [line for key, line in lines.items() if key not in now]
    return Changes(begun[:CHANGES_MAX], over[:CHANGES_MAX])


def raised_of(lines: Iterable[AlarmLine]) -> Iterator[Raised]:
    """As they were raised; an alarm that there is no more is left out, and so over."""
    for line in lines:
        if (alarm := _BY_NAME.get(line.name)) is not None:
            scale = line.threshold / alarm.threshold if alarm.threshold else 1.0
            reading = AlarmReading(line.value, line.text, scale)
            yield Raised(alarm, line.subject, to_unix_ms(line.raised_at), reading)


def number_of(line: AlarmLine) -> int:
    """Of the message about it: its beginning and its end have one each, for ever the same."""
    return 2 * line.id - (line.ended_at is None)


def kind_of(line: AlarmLine) -> str:
    return RAISED if line.ended_at is None else ENDED


def body_of_alarm(line: AlarmLine) -> bytes:
    """As Standard Webhooks has it; `id` is the same of its beginning and its end."""
    alarm = _BY_NAME.get(line.name)
    data: dict[str, Fact] = {
        "id": line.id,
        "name": line.name,
        "severity": line.severity,
        "subject": line.subject,
        "text": line.text,
        "runbook": alarm.runbook if alarm else "",
        "since": _text(line.raised_at),
        "ended_at": None if line.ended_at is None else _text(line.ended_at),
        "value": round(line.value, 3),
        "threshold": round(line.threshold, 3),
        "link": alarm.link if alarm else "",
    }
    return msgspec.json.encode(Message(kind_of(line), line.ended_at or line.raised_at, data))


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
