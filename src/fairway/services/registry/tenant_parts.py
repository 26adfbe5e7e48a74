"""Tenants in several shards, as this server knows them: their parts, and which of them is meant.

Each part is a tenant in the directory, with its portion of what the whole is entitled to
(`core/ownership/tenant_parts.py`). A tenant in one shard is not looked at here. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import randrange

from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId, shard_of
from fairway.core.ownership.tenant_parts import part_in_force, part_name, part_of_job
from fairway.core.tenant import Tenant


class TenantParts:
    def __init__(self, tenants: Mapping[TenantId, Tenant]) -> None:
        """`tenants` are those in force, by number: parts are learnt together with their first."""
        self._tenants = tenants
        self._whole: dict[TenantId, Tenant] = {}  # as they are written, by the number of a part
        self._turns: dict[TenantId, int] = {}  # of jobs that may go to any part

    def __bool__(self) -> bool:
        """Whether there is any tenant in several shards."""
        return bool(self._whole)

    def learn(self, tenant: Tenant) -> Tenant:
        """A part as it was read; answers it with its portion of what the whole is entitled to."""
        self._whole[tenant.id] = tenant
        return part_in_force(tenant, tenant.parts.index(tenant.id))

    def as_written(self, tenant: Tenant) -> Tenant:
        """With what the whole is entitled to, for people."""
        return self._whole.get(tenant.id, tenant)

    def all_of(self, tenant: Tenant) -> list[Tenant]:
        """A tenant's parts, the first first; of one in one shard itself. Of one that was deleted
        some may be gone already: their rows are."""
        found = [self._tenants.get(one) for one in tenant.parts]
        return [one or _gone(tenant, place) for place, one in enumerate(found)] or [tenant]

    def taking(self, tenant: Tenant, place: int) -> Tenant:
        """The part at this place, for somebody who writes anything new there. Of one that is not
        known here nobody knows the shard: by its number it would be in another tenant's."""
        found = self._tenants.get(tenant.parts[place])
        if found is None:
            raise Unavailable("This server does not know all shards of your tenant yet; try again.")
        return found

    def ids_of(self, tenant: Tenant) -> tuple[TenantId, ...]:
        return tenant.parts or (tenant.id,)

    def of(self, part: TenantId) -> tuple[TenantId, ...]:
        """All parts of the tenant that this is one of; none where it is a tenant in one shard."""
        whole = self._whole.get(part)
        return () if whole is None else whole.parts

    def with_job(self, tenant: Tenant, job: str) -> Tenant:
        """The part that a job is in, by the shard that its id names; what is in none is looked for
        in the first, and not found there."""
        shard = shard_of(job)
        for part in self.all_of(tenant):
            if part.shard == shard:
                return part
        return tenant

    def for_new(self, tenant: Tenant, key: str | None, *, is_judged_in_one_place: bool) -> int:
        """The place of the part for a new job with this Idempotency-Key, or without one."""
        turn = 0
        if key is None and not is_judged_in_one_place:
            turn = self._next_turn(tenant)
        return part_of_job(
            key, len(tenant.parts), turn, is_judged_in_one_place=is_judged_in_one_place
        )

    def _next_turn(self, tenant: Tenant) -> int:
        turn = self._turns.get(tenant.id)
        if turn is None:  # servers that start together must not all begin with the first
            turn = randrange(len(tenant.parts))
        self._turns[tenant.id] = turn + 1
        return turn


def _gone(tenant: Tenant, place: int) -> Tenant:
    named = part_name(tenant.name, place)
    return tenant._replace(id=tenant.parts[place], name=named, parts=(), part_of=tenant.id)
