"""What a receiver reads, and which filters need the events of jobs."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from fairway.core.events.event import Event
from fairway.core.webhooks.messages import body_of, wants_job_events

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_body_has_a_type_a_time_and_data() -> None:
    event = Event(7, NOW, "job.dead", "01980a5e", "email.send", {"attempt": 3, "state": "dead"})
    assert msgspec.json.decode(body_of(event)) == {
        "type": "job.dead",
        "timestamp": "2026-01-31T12:00:00Z",
        "data": {
            "position": 7,
            "job": "01980a5e",
            "subject": "email.send",
            "attempt": 3,
            "state": "dead",
        },
    }


@pytest.mark.parametrize(
    ("kinds", "wants"),
    [
        ((), True), (("*",), True), (("job.*",), True), (("job.dead", "circuit.*"), True),
        (("circuit.*",), False), (("job.late",), False),
    ],
)  # fmt: skip
def test_who_asks_for_jobs_gets_them_written(kinds: tuple[str, ...], wants: bool) -> None:
    assert wants_job_events(kinds) == wants
