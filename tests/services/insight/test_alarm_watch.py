"""The watch over alarms: what it shows, counts and logs as facts come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog

from fairway.core.insight.alarm_readings import AlarmFacts, TypeParked
from fairway.core.insight.alarms import Raised
from fairway.runtime.clock import ManualClock
from fairway.runtime.telemetry import Metrics
from fairway.services.insight.alarm_watch import AlarmWatch

CIRCUIT = {"name": "CIRCUIT_OPEN", "severity": "warning"}


class NoHistory:
    """Nothing was raised before, and nobody keeps what is."""

    async def take_over(self) -> list[Raised]:
        return []

    async def write(self, raised: Sequence[Raised]) -> None:
        pass


class Seen:
    """What is to be seen, until it is said otherwise."""

    def __init__(self) -> None:
        self.facts = AlarmFacts()
        self.clock, self.metrics = ManualClock(), Metrics()
        self.watch = AlarmWatch(self._look, NoHistory(), self.clock, self.metrics)

    async def _look(self) -> AlarmFacts:
        return self.facts

    async def look_for(self, facts: AlarmFacts, seconds: float) -> list[Any]:
        """What was logged meanwhile."""
        self.facts, ends_us = facts, self.clock.now_us() + seconds * 1_000_000
        with structlog.testing.capture_logs() as lines:
            while self.clock.now_us() < ends_us:
                self.clock.advance(await self.watch.run_once(self.clock.now_us()))
        return [(one["event"], one["alarm"], one.get("what"), one.get("was")) for one in lines]

    def counted(self, **labels: str) -> float | None:
        found: float | None = self.metrics.registry.get_sample_value("fairway_alarms", labels)
        return found


async def test_an_alarm_is_shown_counted_and_logged_once_each_way() -> None:
    seen = Seen()
    assert await seen.look_for(AlarmFacts(parked=()), 30) == []
    assert seen.counted(**CIRCUIT) == 0, "a metric that is there before it is needed"
    raised = await seen.look_for(
        AlarmFacts(parked=(TypeParked("acme", "a.b", "mail", 2, 1, 1),)), 300
    )
    text = "mail and 1 more are away: jobs of the type a.b of acme that need it are parked."
    assert raised == [("alarm raised", "CIRCUIT_OPEN", text, None)]
    assert [one.alarm.name for one in seen.watch.raised()] == ["CIRCUIT_OPEN"]
    assert seen.counted(**CIRCUIT) == 1
    assert await seen.look_for(AlarmFacts(parked=()), 300) == [
        ("alarm over", "CIRCUIT_OPEN", None, text)
    ]
    assert seen.watch.raised() == []
    assert seen.counted(**CIRCUIT) == 0
