"""New jobs that must not be written here any more: their tenant has moved since they were made.

Its home is another shard, or is about to be; or it is another region, by the word of its own store.
They waited: for others to be written with, for a connection, or because the whole server stood
still. Written now, they would be where nobody looks for keys any more, and one could be accepted
twice; or they would run where they have ended already. So they are refused: their callers ask
again.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.core.errors import FairwayError, Unavailable
from fairway.core.ids import ShardId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.tenant import tenant_moving
from fairway.services.submit.submission_group import Submission
from fairway.store.connections.database import Connection
from fairway.store.regions.regions import stay_at_home


class OutOfPlace(Exception):
    """Some of a group would be written to the wrong shard, or in the wrong region."""

    def __init__(self, those: list[Submission], why: Callable[[], FairwayError]) -> None:
        super().__init__(f"{len(those)} submissions of tenants that move")
        self._those = those
        self._why = why

    def others_of(self, group: list[Submission]) -> list[Submission]:
        """Tell those who asked; answers what is left of the group."""
        for one in self._those:
            if not one.verdicts.done():
                one.verdicts.set_exception(self._why())
        refused = {id(one) for one in self._those}
        return [one for one in group if id(one) not in refused]


def be_in_place(group: list[Submission], shard: ShardId | None, homes: TenantShards) -> None:
    """Asked with a connection at hand, right before they are written; None: to where ids say.

    While no tenant ever moved it looks at none of them.
    """
    if not (homes.any_moving or homes.any_moved):
        return
    firsts = ((one, one.jobs[0]) for one in group)  # each is of one tenant
    those = [one for one, job in firsts if homes.is_out_of_place(job.tenant, job.id, shard)]
    if those:
        raise OutOfPlace(those, tenant_moving)


async def be_at_home(connection: Connection, group: list[Submission]) -> None:
    """Asked in the transaction that writes them, of those that other regions sent: no home moves
    before it ends."""
    meant = {one.jobs[0].tenant: one.meant for one in group if one.meant is not None}
    at_home = await stay_at_home(connection, meant)
    those = [
        one
        for one in group
        if one.meant is not None
        and (one.jobs[0].tenant not in at_home or one.meant != meant[one.jobs[0].tenant])
    ]
    if those:
        raise OutOfPlace(those, not_at_home)


def not_at_home() -> FairwayError:
    return Unavailable(code="NOT_HOME")
