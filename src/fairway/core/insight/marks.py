"""Marks beside graphs: deploys, incidents and notes, as values.

A deploy is a version of the server or a build of shared workers that is seen for the first time;
an incident is a critical alarm; a note is what an operator wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from fairway.core.insight.alarm_lines import AlarmLine

MarkKind = Literal["deploy", "incident", "note"]

MARKS_KEPT_MAX = 2_000  # of each kind
FIRST_SEEN_MAX = 20  # an hour: a build for every worker is no deploy
BUILD_CHARACTERS_MAX = 64


class ChartMark(NamedTuple):
    at: datetime
    kind: MarkKind
    text: str
    until: datetime | None = None


class FirstSeen(NamedTuple):
    text: str
    source: str  # by which it is known again


def first_seen(versions: Iterable[str], builds: Iterable[str]) -> Iterator[FirstSeen]:
    """What would leave a mark, if it was not seen before."""
    for one in filter(None, map(_plain, versions)):
        yield FirstSeen(f"version {one} of the server first seen", f"server {one}")
    for one in filter(None, map(_plain, builds)):
        yield FirstSeen(f"build {one} of workers first seen", f"workers {one}")


def _plain(text: str) -> str:
    """A worker says of its build whatever it likes."""
    return "".join(one for one in text if one.isprintable())[:BUILD_CHARACTERS_MAX]


def with_incidents(marks: Iterable[ChartMark], lines: Iterable[AlarmLine]) -> list[ChartMark]:
    """In the order in which they were."""
    return sorted([*marks, *map(_incident, lines)], key=lambda one: one.at)


def _incident(line: AlarmLine) -> ChartMark:
    text = f"{line.name} ({line.subject}): {line.text}"
    return ChartMark(line.raised_at, "incident", text, line.ended_at)
