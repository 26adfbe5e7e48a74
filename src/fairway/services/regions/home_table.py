"""Whose home is where, in memory: asked for every submission, told to the dispatcher as holds.

Read from this region's store, which the watch keeps up with the directory. A tenant that is at home
elsewhere has nothing started here, and its schedules fire nothing, until what can be handed over is
gone (`leaving_jobs.py`); what then is left, members of flows, ends where it began.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from fairway.core.backlog.holds import ELSEWHERE, Hold
from fairway.core.ids import TenantId
from fairway.core.regions.homes import Home, HomeTerm, Meant
from fairway.core.regions.region_map import RegionMap
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.restraints.holds import HoldRegistry
from fairway.store.connections.database import Connection
from fairway.store.regions import regions as store
from fairway.store.regions.regions import RegionRow

SOURCE = "homes"


class HomeTable:
    def __init__(
        self,
        regions: RegionMap,
        directory: Directory,
        holds: HoldRegistry,
    ) -> None:
        self._map = regions
        self._directory = directory
        self._holds = holds
        self._homes: dict[TenantId, Home] = {}
        self._emptied: set[TenantId] = set()  # are at home elsewhere, and nothing is left to move
        self._since = datetime(2000, 1, 1, tzinfo=UTC)
        self._looked_at: set[TenantId] = set()
        self.row: RegionRow | None = None  # before the store was first read
        self.changes = 0  # how often any of this was not as before

    @property
    def here(self) -> str:
        return self._map.here

    @property
    def directory_region(self) -> str:
        return self._map.first if self.row is None else self.row.directory

    def home_of(self, tenant: TenantId) -> str:
        home = self._homes.get(tenant)
        return self.directory_region if home is None else home.region

    def term_of(self, tenant: TenantId) -> HomeTerm:
        home = self._homes.get(tenant)
        return HomeTerm(0) if home is None else home.term

    def meant(self, tenant: TenantId) -> Meant:
        there = self._directory.tenants.get(tenant)
        return Meant("" if there is None else there.name, self.known(tenant))

    def known(self, tenant: TenantId) -> Home | None:
        """None: it never moved."""
        return self._homes.get(tenant)

    def is_here(self, tenant: TenantId) -> bool:
        return self.home_of(tenant) == self._map.here

    def away(self) -> dict[TenantId, Home | None]:
        """Tenants that are at home elsewhere; None: in the directory, for they never moved."""
        return {
            one: self._homes.get(one) for one in self._directory.tenants if not self.is_here(one)
        }

    def emptied(self, tenant: TenantId, under: Home | None) -> None:
        """All that can be handed over is gone: members of flows may go on here. Not if the home is
        another by now: who came back meanwhile would be held by nothing when it leaves again."""
        if tenant not in self._emptied and self._homes.get(tenant) == under:
            self._emptied.add(tenant)
            self._holds.replace_for(SOURCE, {tenant: ()})

    async def read(self, connection: Connection) -> RegionRow:
        """What changed in this store since the last time."""
        row = await store.read_region(connection)
        changed = await store.homes(connection, self._since)
        is_other = self.row is None or self.row.directory != row.directory
        self.row, self._since = row, row.now
        moved = {
            tenant: home for tenant, home in changed.items() if self._homes.get(tenant) != home
        }
        self._homes.update(moved)
        self._emptied -= moved.keys()  # it may have been here between two looks
        tenants = self._directory.tenants
        if is_other:
            self._hold(tenants)
            self._looked_at = set(tenants)
        else:
            new = tenants.keys() - self._looked_at if len(tenants) > len(self._looked_at) else ()
            self._looked_at.update(new)
            if moved or new:
                self._hold({*moved, *new})
        return row

    def _hold(self, tenants: Iterable[TenantId]) -> None:
        self.changes += 1
        found: dict[TenantId, tuple[Hold, ...]] = {}
        for tenant in tenants:
            if self.is_here(tenant):
                self._emptied.discard(tenant)
                found[tenant] = ()
            elif tenant not in self._emptied:
                found[tenant] = (Hold(tenant, reason=ELSEWHERE),)
        self._holds.replace_for(SOURCE, found)
