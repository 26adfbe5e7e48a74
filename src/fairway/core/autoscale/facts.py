"""What the autoscaler looks at, what it is told, and what it answers, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

Mode = Literal["off", "dry_run", "on"]
Code = Literal["BACKLOG", "OLDEST_AGE", "IDLE", "MINIMUM", "MAXIMUM", "OVERRIDE"]

MODES: tuple[Mode, ...] = ("off", "dry_run", "on")
WORKERS_MAX = 10_000  # in one pool: no server hears more


class WorkerLoad(NamedTuple):
    """A worker that might be spared. It is busy with any job at all, of whatever pool."""

    name: str
    busy: int  # runs it has in hand
    idle_ms: int = 0  # for how long it has had none; 0 while it is busy
    is_closed: bool = False  # it gets no more jobs, as the last decision said


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """One pool at one moment. What is capped, paused or parked is no part of the backlog."""

    workers: int  # that serve everybody and do not drain
    slots: int  # of those
    busy_slots: int
    busy_workers: int = 0
    closed_workers: int = 0  # that get no more jobs
    backlog_jobs: int = 0  # that could start now if there were a slot
    backlog_slot_seconds: float = 0.0  # what these would take
    oldest_runnable_age_seconds: float = 0.0
    spare: tuple[WorkerLoad, ...] = ()  # the least busy, so many at most
    slots_of_new_worker: int = 1  # while nobody is there to tell

    @property
    def utilisation(self) -> float:
        return self.busy_slots / self.slots if self.slots else 0.0

    @property
    def slots_per_worker(self) -> float:
        if self.workers and self.slots:
            return self.slots / self.workers
        return float(max(self.slots_of_new_worker, 1))


class Override(NamedTuple):
    """So many workers, because somebody said so, for a while."""

    workers: int
    until_ms: int
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSettings:
    """What operators say of one pool."""

    mode: Mode = "off"
    minimum_workers: int = 1
    maximum_workers: int = 10
    down_after_seconds: float | None = None  # None: by the pool's rules
    override: Override | None = None

    def override_at(self, now_ms: int) -> Override | None:
        one = self.override
        return one if one is not None and now_ms < one.until_ms else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleMemory:
    """What is remembered between two looks."""

    wanted: int
    seen_ms: int | None = None
    known_since_ms: int | None = None  # since when it has been looked at without a long break
    fast_slots: float = 0.0  # busy slots, smoothed over seconds
    slow_slots: float = 0.0  # and over a part of the time after which workers may go
    quiet_since_ms: int | None = None  # since when nothing has waited for long
    raised_ms: int | None = None
    lowered_ms: int | None = None
    closing: tuple[str, ...] = ()  # get no more jobs; they go once they are idle
    leaving: tuple[str, ...] = ()  # closed and idle: these may be ended, and count no more


class ScaleDecision(NamedTuple):
    wanted: int
    code: Code | None  # None: nothing changes
    reason: str  # a sentence with the numbers; empty when nothing changes
    may_go: tuple[str, ...]  # idle workers that get no jobs any more
    closed: tuple[str, ...]  # workers that must get no more jobs, `may_go` among them
    short_of: int  # workers that the pool needs beyond its maximum
    memory: ScaleMemory


class RecordedDecision(NamedTuple):
    """One that was written down, as it is read again."""

    id: int
    at: datetime
    pool: str
    from_workers: int
    to_workers: int
    code: str
    reason: str
    dry_run: bool
    facts: str  # a JSON object
