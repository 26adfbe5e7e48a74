"""Keeps a region acquainted with the others: who answers, who is the directory, what changed there.

Every second each server asks the other regions; one server of the region brings what changed in
the directory into this region's store. Nothing is owned, so nothing is granted, before the present
homes were heard (`Acquaintance`): a region that comes back learns that its tenants were moved.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec

from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.regions.homes import Acquaintance, DirectoryClaim, DirectoryTerm, leading
from fairway.core.regions.region_map import RegionMap
from fairway.core.regions.unlike import OTHER, REFUSES, is_another_list, unlike_lists
from fairway.runtime.clock import Clock
from fairway.runtime.loops import Step
from fairway.runtime.telemetry import logger
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.peer_calls import (
    BROKEN,
    DIRECTORY_PATH,
    STATE_PATH,
    RegionPeers,
)
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import regions as store
from fairway.store.regions.regions import FIRST_KEYS, Kind, RegionRow
from fairway.store.registry import shards

log = logger("regions")

ROUND_SECONDS = 1.0
STATE_SECONDS_MAX = 1.0
PULL_SECONDS_MAX = 3.0  # a page; below what makes a look stale
PULL_PAUSE_SECONDS = 0.8
OVERLAP = timedelta(seconds=10)  # makes up for commits that come late
ALL_AGAIN_SECONDS = 60.0  # between two looks at all that the directory has, while some clashes
PAGE_ROWS = 2_000
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
NOT_YET_SECONDS = 0.2
KINDS: tuple[Kind, ...] = ("homes", "tenants", "keys")  # nobody is granted a job by an old home


class RegionState(msgspec.Struct):
    """What a region says of itself."""

    region: str
    directory: str
    directory_term: DirectoryTerm
    founded: int  # with so many shards
    shards: int  # that it has now
    names: list[str] = []  # as it was told them; their places are in the ids of jobs


class AskedChanges(msgspec.Struct):
    kind: str
    since: datetime | None  # None: from the beginning
    after: str


class Changes(msgspec.Struct):
    """A page of what changed in the directory."""

    claim: tuple[DirectoryTerm, str]
    now: datetime
    rows: list[str]
    last: tuple[datetime, str] | None
    tiers: str = "[]"


class RegionWatch:
    def __init__(
        self,
        database: Database,
        regions: RegionMap,
        peers: RegionPeers,
        homes: HomeTable,
        metrics: RegionMetrics,
        clock: Clock,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._map = regions
        self._peers = peers
        self._homes = homes
        self._metrics = metrics
        self._clock = clock
        self._tenant_shards = tenant_shards
        self._one_looks = asyncio.Lock()
        self._acquaintance = Acquaintance()
        self._is_founded = False
        self._all_asked_us = 0  # of the directory
        self._shards_there = 0  # that this store has, when it was last looked
        self.states: dict[str, RegionState] = {}  # as last heard
        self.latencies_ms: dict[str, float] = {}
        self.troubles: dict[str, str] = {}  # what is wrong with a region beside its silence

    async def run_once(self, now_us: int) -> float:
        async with self._one_looks:
            await self._look()
        return ROUND_SECONDS

    def guarded(self, own: Step) -> Step:
        """The loop that owns shards: not before the present homes are known here."""

        async def run_once(now_us: int) -> float:
            await self.make_sure()
            if not self._acquaintance.may_dispatch(self._clock.now_us()):
                return NOT_YET_SECONDS
            return await own(now_us)

        return run_once

    async def make_sure(self) -> bool:
        """Look again, if the last look is old; answers whether the homes are known."""
        if self._acquaintance.is_stale(self._clock.now_us()):
            async with self._one_looks:
                if self._acquaintance.is_stale(self._clock.now_us()):
                    await self._look()
        return self._acquaintance.may_dispatch(self._clock.now_us())

    def lag_seconds(self) -> float:
        row = self._homes.row
        if row is None or row.directory == self._map.here or not row.was_told:
            return 0.0
        return max((row.now - row.known_until).total_seconds(), 0.0)

    async def answer_of(self, region: str) -> str:
        """What another region does when it is asked now; empty: it gives no answer."""
        if await self._ask_state(region) is not None:
            return "answers"
        return REFUSES if self.troubles.get(region) == REFUSES else ""

    # -- a look ------------------------------------------------------------------------------

    async def _look(self) -> None:
        began_us = self._clock.now_us()
        must_ask = self._acquaintance.must_ask(began_us)
        answers = await asyncio.gather(*map(self._ask_state, self._map.others))
        heard = [one for one in answers if one is not None]
        self._peers.heard(self._map.here)  # nobody else asks it: what is handed over to it goes on
        async with self._database.background() as connection:
            if not self._is_founded:
                await store.found_region(connection, self._map.here, self._map.first)
                self._is_founded = True
            row = await store.read_region(connection)
            self._check_own(row)
            await self._grow(connection, max((one.shards for one in heard), default=0))
            leader = leading([row.claim, *(_claim(one) for one in heard)])
            if leader > row.claim:
                log.warning("another region is the directory", directory=leader.region)
                await store.follow(connection, leader)
            is_told = leader.region == self._map.here or not self._map.others
            is_mine = not is_told and (
                must_ask or await store.begin_pull(connection, PULL_PAUSE_SECONDS)
            )
        self._acquaintance.goes_on(self._clock.now_us())
        if not is_told and leader.region in {one.region for one in heard}:
            is_told = not is_mine or await self._pull(leader)
        await self._read_homes()
        self._acquaintance.looked(
            began_us,
            self._clock.now_us(),
            is_told=is_told and (bool(heard) or not self._map.others),
        )
        self._metrics.looked(self._map.others, self.latencies_ms, self.lag_seconds())

    async def _read_homes(self) -> None:
        async with self._database.background() as connection:
            await self._homes.read(connection)

    async def _grow(self, connection: Connection, count: int) -> None:
        """As many shards as the others have: tenants come with theirs, and ids of jobs name it."""
        if count <= self._shards_there:  # not what tenants are said to need: that are no rows yet
            return
        async with connection.transaction():
            there = await shards.hold_count(connection)
            if count > there:
                await shards.grow(connection, count)
                log.info("as many shards as in another region", shards=count)
        self._shards_there = max(there, count)
        self._tenant_shards.counted(self._shards_there)

    def _check_own(self, row: RegionRow) -> None:
        if row.region != self._map.here:
            raise RuntimeError(
                f"This store belongs to the region {row.region!r}, and FAIRWAY_REGION is"
                f" {self._map.here!r}."
            )

    async def _ask_state(self, region: str) -> RegionState | None:
        began_us = self._clock.now_us()
        try:
            answer = await self._peers.ask_any(region, STATE_PATH, STATE_SECONDS_MAX)
            state = msgspec.json.decode(answer, type=RegionState)
        except (*BROKEN, msgspec.DecodeError):
            self._not_heard(region, REFUSES if region in self._peers.refusing else "")
            return None
        if state.region != region:
            self._peers.missed(region)
            self._not_heard(region, OTHER.format(state.region))
            return None
        ours = list(self._map.regions)
        if trouble := unlike_lists(ours, state.names):
            self._tell(region, trouble, may_pass=not is_another_list(ours, state.names))
        else:
            self.troubles.pop(region, None)
        self.latencies_ms[region] = (self._clock.now_us() - began_us) / 1000
        self.states[region] = state
        self._peers.heard(region)
        return state

    def _not_heard(self, region: str, trouble: str) -> None:
        self.latencies_ms.pop(region, None)
        if trouble:
            self._tell(region, trouble)
        else:
            self.troubles.pop(region, None)

    def _tell(self, region: str, trouble: str, *, may_pass: bool = False) -> None:
        """`may_pass`: so it is while a region is appended to one list after the other."""
        if self.troubles.get(region) != trouble:
            write = log.warning if may_pass else log.error
            write("regions are not set up alike", region=region, what=trouble)
        self.troubles[region] = trouble

    async def _pull(self, leader: DirectoryClaim) -> bool:
        """All that changed in the directory, page by page; whether it was told to the end."""
        async with self._database.background() as connection:
            row = await store.read_region(connection)
        is_all = self._wants_all(row)
        since = None if is_all else row.known_until - OVERLAP
        conflicts, now = 0, None
        for kind in KINDS:
            asked = AskedChanges(kind, since, FIRST_KEYS[kind])
            while True:
                try:
                    page = await self._ask_changes(leader.region, asked)
                except (*BROKEN, msgspec.DecodeError) as error:
                    log.warning("directory does not answer", error=repr(error))
                    return False
                if DirectoryClaim(*page.claim) != leader:
                    return False
                now = now or page.now
                stored = await self._store(kind, page, leader)
                if stored is None:
                    return False
                conflicts += stored
                self._acquaintance.goes_on(self._clock.now_us())
                if page.last is None:
                    break
                asked = AskedChanges(kind, *page.last)
            if kind == "homes":
                await self._read_homes()  # the rest of a large directory takes its time
        if not is_all:  # what clashes is not among the changes for long, and clashes nevertheless
            conflicts = max(conflicts, row.conflicts)
        if conflicts > row.conflicts:
            log.error("tenants of the directory have names or numbers of others", count=conflicts)
        async with self._database.background() as connection:
            assert now is not None
            await store.pulled(connection, leader, now, conflicts)
        return True

    def _wants_all(self, row: RegionRow) -> bool:
        """Not what changed alone: at first, and while anything clashes now and then, for only so it
        is known how many do, and what does no more is stored."""
        now_us = self._clock.now_us()
        is_time = now_us - self._all_asked_us >= ALL_AGAIN_SECONDS * 1_000_000
        if row.was_told and not (row.conflicts and is_time):
            return False
        self._all_asked_us = now_us
        return True

    async def _ask_changes(self, region: str, asked: AskedChanges) -> Changes:
        body = msgspec.json.encode(asked)
        answer = await self._peers.ask_one(region, DIRECTORY_PATH, body, PULL_SECONDS_MAX)
        return msgspec.json.decode(answer, type=Changes)

    async def _store(self, kind: Kind, page: Changes, leader: DirectoryClaim) -> int | None:
        """How many could not be stored; None: another region is the directory by now."""
        async with self._database.background() as connection, connection.transaction():
            if not await store.hold_directory(connection, leader):
                return None
            if kind == "tenants":
                await store.store_tiers(connection, page.tiers)
            return await store.store_changes(connection, kind, page.rows) if page.rows else 0

    # -- what others ask ---------------------------------------------------------------------

    def tell_state(self) -> bytes:
        row = self._homes.row
        claim = DirectoryClaim(DirectoryTerm(0), self._map.first) if row is None else row.claim
        founded, shards = self._tenant_shards.founded, self._tenant_shards.count
        names = list(self._map.regions)
        state = RegionState(self._map.here, claim.region, claim.term, founded, shards, names)
        return msgspec.json.encode(state)

    async def tell_changes(self, body: bytes) -> bytes:
        asked = msgspec.json.decode(body, type=AskedChanges)
        since = LONG_AGO if asked.since is None else asked.since
        kind = next(one for one in KINDS if one == asked.kind)
        async with self._database.background() as connection:
            row = await store.read_region(connection)
            tiers = await store.tiers(connection) if kind == "tenants" else "[]"
            page = await store.changes(connection, kind, since, asked.after, PAGE_ROWS)
        claim = (row.directory_term, row.directory)
        return msgspec.json.encode(Changes(claim, row.now, page.rows, page.last, tiers))


def _claim(state: RegionState) -> DirectoryClaim:
    return DirectoryClaim(state.directory_term, state.directory)
