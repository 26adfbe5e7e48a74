"""New jobs of a tenant whose home is another shard since they were made, or is about to be.

They were made before this server heard of the move, and waited: for others to be written with, for
a connection, or because the whole server stood still. Written now, they would be where nobody looks
for keys any more, and one could be accepted twice. So they are refused: their callers ask again.
"""

from __future__ import annotations

from fairway.core.ids import ShardId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.tenant import tenant_moving
from fairway.services.submit.submission_group import Submission


class OutOfPlace(Exception):
    """Some of a group would be written to the wrong shard."""

    def __init__(self, those: list[Submission]) -> None:
        super().__init__(f"{len(those)} submissions of tenants that move")
        self._those = those

    def others_of(self, group: list[Submission]) -> list[Submission]:
        """Tell those who asked; answers what is left of the group."""
        for one in self._those:
            if not one.verdicts.done():
                one.verdicts.set_exception(tenant_moving())
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
        raise OutOfPlace(those)
