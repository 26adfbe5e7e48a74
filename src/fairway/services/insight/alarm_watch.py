"""Keeps the alarms: looks every few seconds, remembers how long something has held, tells changes.

A raised alarm is a line in the log, a number in `/metrics`, an item of `GET /v1/alarms` and a line
of their history. It decides nothing (`core/insight/alarms.py`). How long something has held is
remembered by this process alone; what was raised before it began is taken over from the history.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from fairway.core.insight.alarm_readings import AlarmFacts
from fairway.core.insight.alarms import ALARMS, Raised, Watch, judge
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import Metrics, logger

log = logger("alarms")

REST_SECONDS = 5.0


class Ledger(Protocol):
    """Who keeps the history: `alarm_ledger.py`."""

    async def take_over(self) -> list[Raised]: ...

    async def write(self, raised: Sequence[Raised]) -> None: ...


class AlarmWatch:
    def __init__(
        self,
        look: Callable[[], Awaitable[AlarmFacts]],
        ledger: Ledger,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._look = look
        self._ledger = ledger
        self._clock = clock
        self._metrics = metrics
        self._watch = Watch()

    def raised(self) -> list[Raised]:
        """The worst first."""
        return self._watch.raised()

    async def run_once(self, now_us: int) -> float:
        left = await self._ledger.take_over()
        facts, now_ms = await self._look(), self._clock.unix_ms()
        news = judge(self._watch.adopting(left, now_ms), facts, now_ms)
        self._watch = news.watch
        for one in news.raised:
            log.warning("alarm raised", **_words(one), what=one.text, helps=one.alarm.runbook)
        for one in news.cleared:
            log.info("alarm over", **_words(one), was=one.text)  # so it is no more
        self._count()
        await self._ledger.write(self._watch.raised())
        return REST_SECONDS

    def _count(self) -> None:
        names = [one.alarm.name for one in self._watch.raised()]
        for alarm in ALARMS:
            gauge = self._metrics.alarms.labels(alarm.name, alarm.severity)
            gauge.set(names.count(alarm.name))


def _words(one: Raised) -> dict[str, str]:
    return {
        "alarm": one.alarm.name,
        "severity": one.alarm.severity,
        "subject": one.subject,
    }
