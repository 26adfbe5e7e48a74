"""`fairway events tail`: events as they happen, for people and for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import httpx2
from tests.api.house import NO_TLS, House

from fairway.cli import events
from fairway.core.events.event import Event
from fairway.core.events.event_gap import EventGap


def test_it_follows_by_filter_and_position(house: House) -> None:
    """An operator says whose; a tenant need not."""
    name, key = house.new_tenant()
    headers = {"authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=house.url, headers=headers, verify=NO_TLS) as client:
        assert client.put("/v1/events/settings", json={"job_events": True}).is_success
        kept, *_ = (
            client.post("/v1/jobs", json={"type": type_}).json()["id"]
            for type_ in ("cli.told", "cli.other", "cli.other")
        )
        words = ["events", "tail", "--json", "--after", "0", "--type", "cli.told"]
        words += ["--url", house.url, "--key", house.operator_key, "--tenant", name]
        with subprocess.Popen(
            [sys.executable, "-m", "fairway", *words],
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        ) as tailing:
            assert tailing.stdout is not None
            first = json.loads(tailing.stdout.readline())
            later = client.post("/v1/jobs", json={"type": "cli.told"}).json()["id"]
            second = json.loads(tailing.stdout.readline())
            tailing.terminate()
    assert [(one["kind"], one["job"]) for one in (first, second)] == [
        ("job.accepted", kept),
        ("job.accepted", later),
    ]
    assert (first["position"], second["position"]) == (1, 4)


def test_what_people_read() -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    event = Event(7, at, "job.dead", "j-1", "email.send", {"state": "dead", "attempt": 3})
    assert events._line(event).split("  ")[1:] == [
        "7", "job.dead", "email.send", "j-1", "state dead, attempt 3",
    ]  # fmt: skip
    assert "events 3 to 9 were deleted" in events._line(EventGap(3, 9))
