"""The shards that this server owns: under which term, how far each is taken over, for how long.

Facts alone, of this server's own knowledge: whether a term still holds is the store's to say
(`ownership.py`). Nothing here knows of jobs or workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from fairway.core.ids import ShardId, Term, shard_of
from fairway.core.job import QueuedJob


class OwnedShards:
    def __init__(self) -> None:
        self.terms: dict[ShardId, Term] = {}  # shard → the term under which this server owns it
        self.terms_view: Mapping[ShardId, Term] = MappingProxyType(self.terms)
        self.open: set[ShardId] = set()  # owned, and past the adoption of running leases
        self.pulled: set[ShardId] = set()  # open; their jobs come from the store, not from windows
        self.restoring: set[ShardId] = set()  # owned; their written leases are not all here yet
        self.all_restored = asyncio.Event()
        self.all_restored.set()
        self.claims = 0  # of shards so far
        self.trusted_until_us = 0  # past this moment another server may have taken over

    def claim(self, shard: ShardId, term: Term) -> None:
        """Ours from now on; its leases must be found before anybody is judged."""
        self.terms[shard] = term
        self.open.discard(shard)  # nothing of an earlier term holds
        self.pulled.discard(shard)
        self.claims += 1
        self.restoring.add(shard)
        self.all_restored.clear()

    def restored(self, shard: ShardId) -> None:
        """Every written lease of it is here, or it is another's."""
        self.restoring.discard(shard)
        if not self.restoring:
            self.all_restored.set()

    def open_for_pulls(self, shard: ShardId) -> None:
        """Its jobs go out as those of an open one do, and none of them waits in memory."""
        self.open.add(shard)
        self.pulled.add(shard)

    def has_windows(self, shard: ShardId) -> bool:
        """Whether its jobs are given out from windows in memory, as an owner's are."""
        return shard in self.open and shard not in self.pulled

    def of_windows(
        self, shards: Collection[ShardId], jobs: Sequence[QueuedJob]
    ) -> Sequence[QueuedJob]:
        """Of the jobs of these shards, those that are given out from windows."""
        if all(map(self.has_windows, shards)):
            return jobs
        return [job for job in jobs if self.has_windows(shard_of(job.id))]

    def close(self, shard: ShardId) -> None:
        self.open.discard(shard)
        self.pulled.discard(shard)
        self.restored(shard)
        self.terms.pop(shard, None)

    def restored_term(self, shard: ShardId) -> Term | None:
        """Its term, once all of its written leases are here."""
        return None if shard in self.restoring else self.terms.get(shard)
