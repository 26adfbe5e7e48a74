"""What servers of other regions ask of this one: its state, the directory, jobs to take in.

Only who shows the regions' secret gets here. Jobs are taken only for tenants that are at home here,
as far as this server has heard a moment ago: one that was stopped and resumed looks first.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from typing import Any

import msgspec

from fairway.api.http.asgi import CONNECTION, Receive, Scope, Send, read_body, send_bytes
from fairway.api.http.headers import header
from fairway.api.passed_jobs import (
    PassedReply,
    RegionJobs,
    decode_region_calls,
    encode,
    refusal,
    told_of,
    unforeseen,
)
from fairway.api.passing import Passing
from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import FairwayError, InvalidRequest, NotFound, Unavailable
from fairway.core.ids import TenantId
from fairway.core.regions.hand_over import in_doubt_here
from fairway.core.regions.held import HeldKind
from fairway.core.regions.homes import Home, Meant, version_of, will_take_none
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import logger
from fairway.services.platform import Platform
from fairway.services.regions.moved_rows import AskedJobs, MovedCall, MovedLot, MovedRow
from fairway.services.regions.peer_calls import (
    DIRECTORY_PATH,
    JOBS_PATH,
    KNOWN_PATH,
    REGION_SECRET,
    REMAINING_PATH,
    ROWS_PATH,
    STATE_PATH,
)
from fairway.services.regions.regions import Regions
from fairway.services.submit.submission_group import NewJob

log = logger("regions")

BODY_BYTES_MAX = 64 << 20
IDS_MAX = 10_000
NOBODY = Meant("", None)


class RegionInlet:
    def __init__(self, platform: Platform, regions: Regions, passing: Passing) -> None:
        self._platform = platform
        self._regions = regions
        self._passing = passing

    def is_peer(self, scope: Scope) -> bool:
        is_peer = hmac.compare_digest(header(scope, REGION_SECRET) or b"", self._regions.secret)
        if is_peer and CONNECTION in scope:  # it gives way to no stranger
            scope[CONNECTION].proved(STAFF)
        return is_peer

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if not self.is_peer(scope):
            raise NotFound(f"POST {path}: Not Found.")  # as if it were not there
        body = await read_body(scope, receive, BODY_BYTES_MAX)
        try:
            await send_bytes(send, 200, await self._answer(path, body))
        except (msgspec.DecodeError, msgspec.ValidationError, StopIteration) as error:
            raise InvalidRequest(str(error)) from None

    async def _answer(self, path: str, body: bytes) -> bytes:
        if path == STATE_PATH:
            return self._regions.watch.tell_state()
        if path == DIRECTORY_PATH:
            return await self._regions.watch.tell_changes(body)
        if path == JOBS_PATH:
            return await self._take_jobs(body)
        if path == ROWS_PATH:
            return await self._take_rows(body)
        if path == REMAINING_PATH:
            return await self._tell_remaining(body)
        assert path == KNOWN_PATH
        return await self._tell_known(body)

    async def _at_home(self, of: TenantId, meant: Meant) -> Tenant:
        """The tenant, if it is at home here; by what was heard within the last seconds.

        A number that has another name here is another's: nothing crosses to it. What was sent by
        an older word may be of before its home moved away and back: it may have ended elsewhere.

        A home whose store is away says at once that it has nothing: then the jobs are held.
        """
        if self._platform.database.is_away:
            raise Unavailable(code="NOT_HOME")
        is_sure = await self._regions.watch.make_sure()
        tenant = self._platform.directory.tenants.get(of)
        if not is_sure or tenant is None or self._regions.elsewhere(of) is not None:
            raise Unavailable(code="NOT_HOME")
        if meant.name not in ("", tenant.name):
            log.error("a tenant's number is another's here", number=of, theirs=meant.name)
            raise Unavailable(code="NOT_HOME")
        if meant.is_outdated(self._regions.homes.known(of)):
            raise Unavailable(code="NOT_HOME")
        return tenant

    async def _take_jobs(self, body: bytes) -> bytes:
        sent = decode_region_calls(body)
        takes = [self._take(call, sent.tenants.get(call.tenant, NOBODY)) for call in sent.calls]
        return encode(PassedReply(await asyncio.gather(*takes), {}))

    def _in_own_pools(self, call: RegionJobs) -> Sequence[NewJob]:
        named = self._platform.directory.pools.named
        own = {number: named(name, "/pool").number for number, name in call.pools.items()}
        if all(number == ours for number, ours in own.items()):
            return call.jobs
        return [new._replace(pool=own.get(new.pool, new.pool)) for new in call.jobs]

    async def _take(self, call: RegionJobs, meant: Meant) -> Any:
        try:
            tenant = await self._at_home(call.tenant, meant)
            verdicts = await self._passing.submit(
                tenant,
                self._in_own_pools(call),
                is_admitted=call.is_admitted,
                whole=call.whole,
                first=call.first,
                meant=meant,
            )
        except FairwayError as error:
            return refusal(error)
        except Exception as error:
            return refusal(unforeseen(error))
        return told_of(verdicts)

    async def _take_rows(self, body: bytes) -> bytes:
        call = msgspec.msgpack.decode(body, type=MovedCall)
        rows = [msgspec.json.decode(text, type=MovedRow) for text in call.rows]
        lot = MovedLot(call.tenant, HeldKind(call.kind), rows, call.meant)
        try:
            await self._at_home(lot.tenant, call.meant)
            if lot.shard >= self._platform.tenant_shards.count:
                raise Unavailable(code="NOT_HOME")  # it has not heard yet that they became more
            said = await self._regions.moved_rows.take(lot)
            return encode([refusal(one) if isinstance(one, FairwayError) else one for one in said])
        except FairwayError as error:
            return encode([refusal(error)] * len(rows))

    async def _tell_known(self, body: bytes) -> bytes:
        """By what is in this store; nothing that was sent under that home is taken any more: this
        region's store knows of a newer one, which every write of such jobs looks at."""
        asked = msgspec.msgpack.decode(body, type=AskedJobs)
        tenant, homes = asked.tenant, self._regions.homes
        is_sure = await self._regions.watch.make_sure()
        known = version_of(homes.known(tenant))
        if not is_sure or not will_take_none(asked.under, known, is_home=homes.is_here(tenant)):
            raise Unavailable(code="NOT_HOME")
        shard = self._platform.tenant_shards.of(tenant)
        but = in_doubt_here(homes.here, asked.asker)
        found = await self._regions.moved_rows.known(
            tenant, shard, asked.ids[:IDS_MAX], but_offered_to=but
        )
        return encode(sorted(found))

    async def _tell_remaining(self, body: bytes) -> bytes:
        """What of these tenants, at home elsewhere, is still to be handed over by this region."""
        homes = msgspec.msgpack.decode(body, type=dict[TenantId, Home])
        return encode(await self._regions.remaining.of(homes))
