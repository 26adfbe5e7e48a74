"""Hands what is held here over to the tenants' homes: once, by id.

Before anything is sent it is written down to whom, and under which home: from then on that region
may have it, whatever is heard. Once the home is a newer one, be it the same region again, the one
that it was sent to is asked whether it ever had it, and until it answers the job is in doubt and
goes nowhere: it is run late rather than twice. The home may be this region: then it is handed to
itself, the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import msgspec

from fairway.core.ids import LOWEST_JOB_ID, JobId, ShardId, TenantId, ids_from
from fairway.core.regions.held import HeldKind, SentTo
from fairway.core.regions.homes import DirectoryTerm, HomeTerm, HomeVersion, Meant, version_of
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.regions.home_table import HomeTable
from fairway.services.regions.moved_rows import AskedJobs, MovedCall
from fairway.services.regions.peer_calls import (
    BROKEN,
    JOBS_PATH,
    KNOWN_PATH,
    ROWS_PATH,
    RegionPeers,
)
from fairway.services.regions.region_metrics import RegionMetrics
from fairway.services.regions.settling import Settling
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.regions import held_jobs as store
from fairway.store.regions.held_jobs import HeldRow

log = logger("regions")

ROWS_AT_ONCE = 200
TENANTS_PER_ROUND = 100
CALL_SECONDS_MAX = 10.0
IDS_ASKED_MAX = 10_000  # at once, whether another region has them
BUSY_SECONDS = 0.02
REST_SECONDS = 0.5

_encode = msgspec.msgpack.Encoder().encode


class HandOver:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        homes: HomeTable,
        peers: RegionPeers,
        metrics: RegionMetrics,
    ) -> None:
        self._database = database
        self._settling = Settling(database)
        self._dispatcher = dispatcher
        self._homes = homes
        self._peers = peers
        self._metrics = metrics
        self._after: dict[ShardId, TenantId] = {}  # whose turn was last
        self._refused_up_to: dict[TenantId, str] = {}  # those behind have their turn, too
        self._refusals: dict[TenantId, Set[str]] = {}  # as last told
        self._silent: set[str] = set()  # regions that gave no answer in this round

    async def run_once(self, now_us: int) -> float:
        shards, did_something = self._dispatcher.open_shards(), False
        if not shards:
            return REST_SECONDS
        self._silent.clear()
        async with self._database.background() as connection:
            busy = await store.shards_with_held(connection, list(shards))
        for shard in busy:
            for tenant in await self._next_tenants(shard):
                did_something |= await self._has_left(shard, tenant)
        return BUSY_SECONDS if did_something else REST_SECONDS

    async def _next_tenants(self, shard: ShardId) -> list[TenantId]:
        """In turn: many whose home is away keep none of the others waiting."""
        after = self._after.get(shard, TenantId(-1))
        async with self._database.background() as connection:
            found = await store.tenants_with_held(connection, shard, after, TENANTS_PER_ROUND)
        self._after[shard] = found[-1] if len(found) == TENANTS_PER_ROUND else TenantId(-1)
        return found

    async def _has_left(self, shard: ShardId, tenant: TenantId) -> bool:
        """What goes wrong with one tenant's is its own: the others have their turn."""
        try:
            return await self._hand_over(shard, tenant)
        except DISCONNECTED:
            raise
        except Exception as error:
            log.error("cannot be handed over", tenant=tenant, error=repr(error))
            return False

    def _is_silent(self, region: str) -> bool:
        """It may be heard by now, and still take nothing: that costs one call a round."""
        return region in self._silent or self._peers.is_away(region)

    async def _hand_over(self, shard: ShardId, tenant: TenantId) -> bool:
        """One call's worth to the home, and one question about what another may have; whether
        anything left. What is in doubt as long as a region is lost keeps nothing else here."""
        meant = self._homes.meant(tenant)  # and nothing newer, whatever is heard meanwhile
        home = SentTo(shard, tenant, self._homes.home_of(tenant), version_of(meant.home))
        silent = [*self._silent, *self._peers.away]
        async with self._database.background() as connection:
            doubtful = await store.doubtful_of(connection, home, silent, ROWS_AT_ONCE)
            rows: list[HeldRow] = []
            if not self._is_silent(home.region):  # of a lost one very much is held: it is not read
                after = self._refused_up_to.pop(tenant, LOWEST_JOB_ID)
                rows = await store.held_of(connection, home, ROWS_AT_ONCE, after)
        is_surer = bool(doubtful) and await self._make_sure(shard, tenant, doubtful)
        return await self._offer(home, meant, _one_kind(rows)) or is_surer

    async def _offer(self, to: SentTo, meant: Meant, rows: list[HeldRow]) -> bool:
        if not rows or self._is_silent(to.region):
            return False
        async with self._database.background() as connection:
            ours = await store.offer(connection, to, [row.id for row in rows])
        rows = [row for row in rows if row.id in ours]
        if not rows:
            return False  # the next owner of the shard was quicker
        try:
            answers = await self._send(to.region, to.tenant, meant, rows)
        except (*BROKEN, msgspec.DecodeError) as error:
            self._note_silence(to.region)
            log.warning("home takes nothing", region=to.region, error=repr(error))
            return False
        return await self._settle(to, rows, answers)

    async def _send(
        self, home: str, tenant: TenantId, meant: Meant, rows: Sequence[HeldRow]
    ) -> list[Any]:
        if rows[0].kind == HeldKind.SUBMISSION:
            calls = [msgspec.Raw(row.body) for row in rows]
            body = _encode([calls, {tenant: meant}])
            answer = await self._peers.call(home, JOBS_PATH, body, CALL_SECONDS_MAX)
            items: list[Any] = msgspec.msgpack.decode(answer)[0]
        else:
            body = _encode(MovedCall(tenant, rows[0].kind, [row.body for row in rows], meant))
            answer = await self._peers.call(home, ROWS_PATH, body, CALL_SECONDS_MAX)
            items = msgspec.msgpack.decode(answer)
        if len(items) != len(rows):
            raise msgspec.DecodeError("an answer for each row")
        return items

    async def _settle(self, to: SentTo, rows: Sequence[HeldRow], answers: Sequence[Any]) -> bool:
        settled = await self._settling.by_answers(to, rows, answers)
        if settled.waiting:
            self._refused_up_to[to.tenant] = rows[-1].id
        self._note_refusals(to.region, to.tenant, settled.waiting)
        if not settled.taken and not settled.others:
            return False
        self._metrics.handed_over.labels(to.region).inc(settled.taken)
        what = {"jobs": settled.taken, "otherwise": settled.others}
        log.info("handed over", region=to.region, tenant=to.tenant, **what)
        return True

    def _note_refusals(
        self, home: str, tenant: TenantId, refused: Mapping[JobId, Mapping[str, Any]]
    ) -> None:
        """Said once, as long as it is the same: it is tried again twice a second."""
        codes = {str(said.get("code")): job for job, said in refused.items()}
        if codes and codes.keys() != self._refusals.get(tenant):
            log.warning("home takes some not yet", region=home, tenant=tenant, refused=codes)
        self._refusals.pop(tenant, None)
        if codes:
            self._refusals[tenant] = codes.keys()

    async def _make_sure(self, shard: ShardId, tenant: TenantId, rows: Sequence[HeldRow]) -> bool:
        """Of a region that may have them: those that it has are its own to hand over."""
        region, terms = rows[0].offered_to or "", rows[0].offered_under
        under = HomeVersion(DirectoryTerm(terms[0]), HomeTerm(terms[1]))
        same = [row for row in rows if (row.offered_to, row.offered_under) == (region, terms)]
        asked = _ids_of_each(same)
        if self._is_silent(region):
            return False
        try:
            every = [one for ids in asked.values() for one in ids]
            body = _encode(AskedJobs(tenant, every, self._homes.here, under))
            answer = await self._peers.call(region, KNOWN_PATH, body, CALL_SECONDS_MAX)
            known = set(msgspec.msgpack.decode(answer, type=list[str]))
        except (*BROKEN, msgspec.DecodeError):
            self._note_silence(region)
            return False
        await self._settling.by_ids(SentTo(shard, tenant, region, under), asked, known)
        return True

    def _note_silence(self, region: str) -> None:
        if self._peers.is_away(region):  # not one that refused this call alone
            self._silent.add(region)


def _ids_of_each(rows: Sequence[HeldRow]) -> dict[JobId, Sequence[str]]:
    """All that a region could know of each row: the first of a call may have become another job,
    or been refused, while the rest of it is there. As many rows as one question holds."""
    found: dict[JobId, Sequence[str]] = {}
    count = 0
    for row in rows:
        count += max(row.jobs, 1)
        if found and count > IDS_ASKED_MAX:
            break
        found[row.id] = ids_from(row.id, row.jobs) if row.jobs > 1 else [row.id]
    return found


def _one_kind(rows: Sequence[HeldRow]) -> list[HeldRow]:
    """Of the first one's, as many as go in one call."""
    found: list[HeldRow] = []
    size_bytes = 0
    for row in rows:
        size_bytes += len(row.body)
        if row.kind != rows[0].kind or (found and size_bytes > store.BYTES_AT_ONCE):
            break
        found.append(row)
    return found
