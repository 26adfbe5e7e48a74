"""What operators do to homes: move a tenant, fail a lost region over, let it come back.

Each is one transaction in the directory's store with its line in the audit. A failover of the
directory itself is done in the region that takes over: it becomes the directory, under a higher
term. Nobody else decides that a region is lost: without a third one to ask, only people know.
One act at a time changes homes, and one that rests on what a region said moves only those tenants
whose home is still the one that it was asked about.
A tenant moves to a region only when that has handed over all it had of it, unless it is forced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from fairway.core.audit import Act, Actor
from fairway.core.errors import Conflict, InvalidRequest, NotFound
from fairway.core.ids import TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.homes import DirectoryTerm, Home
from fairway.core.regions.region_map import RegionMap
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.peer_calls import BROKEN, REMAINING_PATH, RegionPeers
from fairway.services.regions.watch import RegionWatch
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import regions as store
from fairway.store.regions.regions import RegionRow

REMAINING_SECONDS_MAX = 10.0


class Moved(NamedTuple):
    source: str
    target: str
    tenants: int
    directory: str
    directory_term: DirectoryTerm
    tenants_waiting: int = 0  # the target has still something of them, or they moved meanwhile
    jobs_waiting: int = 0


class RegionActs:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        regions: RegionMap,
        homes: HomeTable,
        peers: RegionPeers,
        watch: RegionWatch,
        audit_log: AuditLog,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._directory = directory
        self._map = regions
        self._homes = homes
        self._peers = peers
        self._watch = watch
        self._audit_log = audit_log
        self._tenant_shards = tenant_shards

    def acts_at(self, source: str, target: str) -> str:
        """Where a failover is done: in the directory; or in the target, if that one is lost."""
        directory = self._homes.directory_region
        return target if directory == source else directory

    async def set_home(
        self, name: str, region: str, actor: Actor, *, force: bool = False
    ) -> TenantId:
        """Its unfinished jobs follow it, except what runs and members of flows."""
        self._check_target(region)
        tenant = self._directory.tenant_ids.get(name)
        if tenant is None:
            raise NotFound(f"There is no tenant {name[:64]!r}.")
        before, known = self._homes.home_of(tenant), self._homes.known(tenant)
        if before != region:
            homes = {tenant: known} if known is not None and not force else {}
            if await self._remaining(region, homes):
                if self._peers.is_away(before):
                    raise Conflict(
                        f"The region {before} does not answer, and {region} holds jobs of {name}"
                        " for it. Nothing was changed: wait for it, or if it is lost, fail it over"
                        f" (`fairway region failover {before} --to {region}`), or say force=true."
                    )
                raise Conflict(
                    f"The region {region} has still to hand over to {before} what it has of {name}."
                    " Nothing was changed: try again in a moment, make the pools that"
                    f" {before} lacks, or say force=true."
                )
            async with (
                told_if_away,
                self._database.people() as connection,
                connection.transaction(),
            ):
                row = await self._lock_homes(connection)
                if not force and await store.home_of(connection, tenant) != known:
                    raise Conflict(
                        f"The home of {name} was moved meanwhile. Nothing was changed; try again."
                    )
                await store.set_home(connection, tenant, region, row.directory_term)
                after = {"region": region, "force": force}
                act = Act("set_home", name, tenant, {"region": before}, after)
                await self._audit_log.add(connection, actor, act)
            await self._watch.run_once(0)
        return tenant

    async def fail_over(
        self, source: str, target: str, actor: Actor, *, force: bool = False
    ) -> Moved:
        """All tenants of a region that is lost, on an operator's word.

        One that answers is not lost: a slip, unless that is said as well.
        """
        self._check_named(source)
        if source == target:
            raise InvalidRequest("A region cannot take over from itself.", field="/to")
        if target != self._map.here:
            self._check_target(target)
        if not force and (does := await self._watch.answer_of(source)):
            raise Conflict(
                f"The region {source} {does}: it is not lost. Nothing was changed. Make sure that"
                " its servers do not run; move single tenants with `fairway region set-home`; or"
                " say force=true."
            )
        heard = max((one.directory_term for one in self._watch.states.values()), default=0)
        async with told_if_away, self._database.people() as connection, connection.transaction():
            row = await self._lock_homes(connection, source if target == self._map.here else None)
            if row.directory == source:
                term = await store.be_directory(connection, heard)
            else:
                term = await store.raise_term(connection, row.directory)
            moved = await store.fail_over(connection, source, target, row.directory, term)
            after = {"target": target, "tenants": moved, "directory_term": term, "force": force}
            act = Act("fail_over_region", source, before={"directory": row.directory}, after=after)
            await self._audit_log.add(connection, actor, act)
        await self._watch.run_once(0)
        return Moved(source, target, moved, self._map.here, term)

    async def fail_back(self, region: str, actor: Actor, *, force: bool = False) -> Moved:
        """What a failover took from a region goes back to it; it must be there to take it.

        Each tenant when the region has handed over all that it had of it: the others wait, and are
        moved when this is asked again.
        """
        self._check_target(region)
        async with told_if_away, self._database.people() as connection:
            taken = await store.taken_from(connection, region)
        waiting = {} if force else await self._remaining(region, taken)
        ready = {one: home for one, home in taken.items() if one not in waiting}
        async with told_if_away, self._database.people() as connection, connection.transaction():
            row = await self._lock_homes(connection)
            moved = await store.fail_back(connection, region, ready, row.directory_term)
            left = len(taken) - moved  # what moved again since it was asked about is asked anew
            if moved or not left:
                after = {"tenants": moved, "tenants_waiting": left, "force": force}
                act = Act("fail_back_region", region, after=after)
                await self._audit_log.add(connection, actor, act)
        await self._watch.run_once(0)
        known = row.directory, row.directory_term, left, sum(waiting.values())
        return Moved(self._map.here, region, moved, *known)

    async def _lock_homes(self, connection: Connection, lost: str | None = None) -> RegionRow:
        """Only the directory's word is heard by all: another may have become it since this was
        asked for. `lost` is whom this region takes over from, if it takes over."""
        row = await store.lock_homes(connection)
        if row.directory not in (self._map.here, lost):
            raise Conflict(
                f"The region {row.directory} is the directory by now. Nothing was changed; try"
                " again."
            )
        return row

    async def _remaining(self, region: str, homes: Mapping[TenantId, Home]) -> dict[TenantId, int]:
        """Those of which the region has still something to hand over."""
        if not homes:
            return {}
        body = msgspec.msgpack.encode(homes)
        try:
            told = await self._peers.call(region, REMAINING_PATH, body, REMAINING_SECONDS_MAX)
            found = msgspec.msgpack.decode(told, type=dict[TenantId, int])
            return {tenant: jobs for tenant, jobs in found.items() if tenant in homes}
        except (*BROKEN, msgspec.DecodeError):
            raise Conflict(
                f"The region {region} does not say what it has still to hand over: nobody moves to"
                " it. Nothing was changed; try again when `fairway region ls` shows that it"
                " answers."
            ) from None

    def _check_named(self, region: str) -> None:
        if region not in self._map.regions:
            names = ", ".join(self._map.regions)
            raise NotFound(
                f"There is no region {region[:40]!r}; there are {names} in"
                f" FAIRWAY_REGIONS of {self._map.here}."
            )

    def _check_target(self, region: str) -> None:
        """A home must be there, know of what happened, and have room for the same ids."""
        self._check_named(region)
        if region == self._map.here:
            return
        state, row = self._watch.states.get(region), self._homes.row
        if state is None or region not in self._watch.latencies_ms:
            raise Conflict(f"The region {region} does not answer: nobody can be at home there.")
        if state.founded != self._tenant_shards.founded:
            raise Conflict(
                f"The region {region} was founded with {state.founded} shards and this one"
                f" {self._tenant_shards.founded}: ids of jobs name their shard, so that must be"
                " the same."
            )
        if row is not None and state.directory_term < row.directory_term:
            raise Conflict(f"The region {region} has not heard of the last change yet; try again.")
