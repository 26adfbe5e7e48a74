"""Cancellations whose commit nobody heard: a job of these may be cancelled on disk, or may not.

The reply was lost, so memory still has the job, and would start it. Until the store has told what
became of it, it is out of the windows, and no read brings it back. Nothing here asks the store: who
does (`Control.make_sure`) takes what is due, and says when it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.store.history import LiveJob

PAGE_MAX = 500  # jobs that are asked about at once


class UnheardPage(NamedTuple):
    shard: ShardId
    tenant: TenantId
    jobs: list[LiveJob]


class UnheardCancels:
    def __init__(self, dispatcher: Dispatcher, on_added: Callable[[], None]) -> None:
        self._dispatcher = dispatcher
        self._on_added = on_added
        self._jobs: dict[tuple[ShardId, TenantId], dict[JobId, LiveJob]] = {}
        self._withheld: set[JobId] = set()

    @contextmanager
    def watching(self, shard: ShardId, tenant: TenantId, page: Sequence[LiveJob]) -> Iterator[None]:
        """Around a write and its commit; `page` may be filled within."""
        try:
            yield
        except BaseException:  # whatever it says: the commit may stand
            self.add(shard, tenant, page)
            raise

    def add(self, shard: ShardId, tenant: TenantId, page: Sequence[LiveJob]) -> None:
        if not page:
            return
        self._jobs.setdefault((shard, tenant), {}).update((job.id, job) for job in page)
        waiting = [job for job in page if not self._dispatcher.is_underway(job.id)]
        self._withheld.update(job.id for job in waiting)
        self._dispatcher.inserting(job.id for job in waiting)  # so no read brings them
        self._dispatcher.expired([(job.id, job.key) for job in waiting])
        self._on_added()

    def pages(self) -> list[UnheardPage]:
        """Some of each tenant's, of those that are not known yet."""
        return [
            UnheardPage(shard, tenant, list(islice(jobs.values(), PAGE_MAX)))
            for (shard, tenant), jobs in self._jobs.items()
        ]

    def known(self, page: UnheardPage, waiting: set[JobId]) -> None:
        """What became of these is known; those that wait after all are read again."""
        of_tenant = self._jobs.get((page.shard, page.tenant), {})
        for job in page.jobs:
            of_tenant.pop(job.id, None)
        if not of_tenant:
            self._jobs.pop((page.shard, page.tenant), None)
        withheld = [job for job in page.jobs if job.id in self._withheld]
        self._withheld.difference_update(job.id for job in withheld)
        self._dispatcher.inserted(job.id for job in withheld)
        firsts: dict[StreamKey, str] = {}
        for job in withheld:
            if job.id in waiting:
                firsts[job.key] = min(job.id, firsts.get(job.key, job.id))
        if firsts:
            self._dispatcher.hinted(page.shard, firsts)
