"""Who waits for news of a job: long-polls and event streams.

The owner tells as it records; a server that does not own a job asks the store now and then, in
one question for all of its waiters. Telling costs nothing when nobody waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from fairway.core.ids import JobId, TenantId


class Told(Protocol):
    """What is set at every change of a job."""

    def set(self) -> None: ...


class ManyWatch:
    """News of many jobs, and of which."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.changed: set[JobId] = set()

    def take(self) -> set[JobId]:
        """Those that changed since; what changes from now on is news again."""
        self.news.clear()
        changed, self.changed = self.changed, set()
        return changed

    def tell(self, job: JobId) -> None:
        self.changed.add(job)
        self.news.set()


class _OfMany:
    def __init__(self, watch: ManyWatch, job: JobId) -> None:
        self._watch = watch
        self._job = job

    def set(self) -> None:
        self._watch.tell(self._job)


class Watchers:
    def __init__(self) -> None:
        self._events: dict[str, set[Told]] = {}
        self._tenants: dict[str, TenantId] = {}
        self.is_closed = False  # the server is about to stop: nobody waits any longer

    @contextmanager
    def watch(self, tenant: TenantId, job: str) -> Iterator[asyncio.Event]:
        """An event that is set at every change of the job; clear it before looking again."""
        event = asyncio.Event()
        self._add(tenant, job, event)
        try:
            yield event
        finally:
            self._remove(job, event)

    @contextmanager
    def watch_many(self, tenant: TenantId, jobs: Iterable[JobId]) -> Iterator[ManyWatch]:
        """The same for many jobs, each of which may be named once."""
        watch = ManyWatch()
        each = {job: _OfMany(watch, job) for job in jobs}
        for job, told in each.items():
            self._add(tenant, job, told)
        try:
            yield watch
        finally:
            for job, told in each.items():
                self._remove(job, told)

    def _add(self, tenant: TenantId, job: str, told: Told) -> None:
        self._events.setdefault(job, set()).add(told)
        self._tenants[job] = tenant

    def _remove(self, job: str, told: Told) -> None:
        self._events[job].discard(told)
        if not self._events[job]:
            del self._events[job], self._tenants[job]

    def notify(self, jobs: Iterable[str]) -> None:
        if not self._events:
            return
        for job in jobs:
            for event in self._events.get(job, ()):
                event.set()

    @property
    def are_any(self) -> bool:
        """Whether anybody waits for anything."""
        return bool(self._events)

    def is_watched(self, job: str) -> bool:
        return job in self._events

    def close(self) -> None:
        self.is_closed = True
        self.notify(list(self._events))

    def watched(self) -> list[tuple[TenantId, str]]:
        """Every (tenant, job) that somebody waits for."""
        return [(tenant, job) for job, tenant in self._tenants.items()]
