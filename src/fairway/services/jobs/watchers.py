"""Who waits for news of a job: long-polls and event streams.

The owner tells as it records; a server that does not own a job asks the store now and then, in
one question for all of its waiters. Telling costs nothing when nobody waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fairway.core.ids import TenantId


class Watchers:
    def __init__(self) -> None:
        self._events: dict[str, set[asyncio.Event]] = {}
        self._tenants: dict[str, TenantId] = {}
        self.is_closed = False  # the server is about to stop: nobody waits any longer

    @contextmanager
    def watch(self, tenant: TenantId, job: str) -> Iterator[asyncio.Event]:
        """An event that is set at every change of the job; clear it before looking again."""
        event = asyncio.Event()
        self._events.setdefault(job, set()).add(event)
        self._tenants[job] = tenant
        try:
            yield event
        finally:
            self._events[job].discard(event)
            if not self._events[job]:
                del self._events[job], self._tenants[job]

    def notify(self, jobs: Iterable[str]) -> None:
        if not self._events:
            return
        for job in jobs:
            for event in self._events.get(job, ()):
                event.set()

    def close(self) -> None:
        self.is_closed = True
        self.notify(list(self._events))

    def watched(self) -> list[tuple[TenantId, str]]:
        """Every (tenant, job) that somebody waits for."""
        return [(tenant, job) for job, tenant in self._tenants.items()]
