"""An event as the body of a webhook: `{type, timestamp, data}`, as Standard Webhooks has it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from fairway.core.events.event import Event, Fact
from fairway.core.events.event_filter import is_among
from fairway.core.events.kinds import OF_JOBS

TEST_KIND = "webhook.test"


class Message(msgspec.Struct, frozen=True):
    type: str
    timestamp: datetime  # when it happened; when it is sent stands in a header
    data: dict[str, Fact]


def body_of(event: Event) -> bytes:
    data = {**event.data, "position": event.position, "job": event.job, "subject": event.subject}
    return msgspec.json.encode(Message(event.kind, event.at, data))


def body_of_test(webhook: str, now: datetime) -> bytes:
    data: dict[str, Fact] = {"webhook": webhook, "detail": "This is a test: it is in no log."}
    return msgspec.json.encode(Message(TEST_KIND, now, data))


def wants_job_events(kinds: tuple[str, ...]) -> bool:
    """Whether a filter lets through what is only written for tenants that asked for it."""
    return not kinds or any(is_among(kind, kinds) for kind in OF_JOBS)
