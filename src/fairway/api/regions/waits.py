"""`POST /v1/jobs/wait` where there are regions: what is not at the tenant's home may be elsewhere.

The home is asked first, and waits. Jobs that it does not know are looked for in the other regions:
held there on their way to it, or ended there before the tenant moved. While there are such, the
call ends after a second at most, and whoever asks again has them looked for again. A job that any
region has is not called missing, nor is one that a region may have which does not answer. Who is
asked by another region tells what its own store has, and asks nobody.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Raw
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.http.asgi import read_body
from fairway.api.jobs.wait_many import BODY_BYTES_MAX, FEW_IDS, TOLD_MAX, job_ids
from fairway.api.partial_waits import ToldJobs, asking, decode_told, reply_of, wait_of
from fairway.api.regions.held_views import held_views
from fairway.api.tenant_parts.replies import in_one_piece
from fairway.core.errors import FairwayError, Unavailable
from fairway.core.ids import JobId, TenantId
from fairway.runtime.loops import SLICE_REST_SECONDS, pause
from fairway.services.platform import Platform
from fairway.services.regions.peer_calls import home_away, region_away
from fairway.services.regions.regions import Regions
from fairway.wire.bulk import WaitForJobs

CALL = "POST /v1/jobs/wait"
IDS_AT_ONCE = FEW_IDS  # looked for in one call: its endpoint takes no turn for so many
FEW_OF_OTHERS = 10  # so many are looked for without a turn
FEW_BYTES = 40 * FEW_IDS  # of a body: it names no more
LOOK_SECONDS = 1.0
NO_SLOT_SECONDS = 0.25  # for whom there is no room to wait, and who asks again at once
Here: TypeAlias = Callable[[Request], Awaitable[Response]]
Ask: TypeAlias = Callable[[Request, str, bytes], Awaitable[Response]]


class WaitCall(NamedTuple):
    """Whose call it is, and who answers it in this region."""

    request: Request
    tenant: TenantId
    here: Here


class _Refused(Exception):  # an answer for whoever asked
    def __init__(self, reply: Response) -> None:
        super().__init__()
        self.reply = reply


class _Id(msgspec.Struct):
    id: JobId


class _Look(NamedTuple):
    """What became of jobs that the home did not know; those that are not named were found."""

    told: list[Raw]
    missing: list[JobId]
    trouble: Exception | None  # why a region that may have some of the missing ones tells nothing

    def check(self) -> None:
        if self.missing and self.trouble is not None:
            raise self.trouble


class RegionWaits:
    def __init__(self, platform: Platform, regions: Regions, ask: Ask) -> None:
        """`ask` passes a body on to another region, as the same caller's."""
        self._platform = platform
        self._regions = regions
        self._ask = ask

    async def reply(self, call: WaitCall, *, is_passed_on: bool) -> Response:
        request = call.request
        body = await read_body(request.scope, request.receive, BODY_BYTES_MAX)
        try:
            if is_passed_on:
                return reply_of(await self._for_another_region(call, wait_of(body)))
            async with self._turn(call, is_long=len(body) > FEW_BYTES):
                wanted = _shuffled(wait_of(body))
            answer = self._as_they_stand if wanted.all else self._ended
            return reply_of(await answer(call, wanted))
        except _Refused as refused:
            return refused.reply

    @asynccontextmanager
    async def _turn(self, call: WaitCall, *, is_long: bool = True) -> AsyncIterator[None]:
        """One at a time of a tenant, and others get more than what each takes. Never around what
        asks for a long list here, which takes the same turn."""
        if not is_long:
            yield
            return
        async with self._platform.long_looks.held(call.tenant, is_small=True):
            await pause(SLICE_REST_SECONDS)
            yield

    async def _for_another_region(self, call: WaitCall, wanted: WaitForJobs) -> ToldJobs:
        """It waits if this is the home, and else asks for a few jobs at a time."""
        is_long = not wanted.wait_seconds and FEW_OF_OTHERS < len(wanted.ids) <= FEW_IDS
        async with self._turn(call, is_long=is_long):
            return await self._from_here(call, wanted)

    async def _as_they_stand(self, call: WaitCall, wanted: WaitForJobs) -> ToldJobs:
        told = await self._of_home(call, wanted)
        seen = _ids(told.jobs).union(told.missing)
        look = await self._look(call, wanted, [job for job in wanted.ids if job not in seen])
        if not told.jobs and not look.told:
            look.check()
        return ToldJobs(told.jobs + look.told, told.missing)

    async def _ended(self, call: WaitCall, wanted: WaitForJobs) -> ToldJobs:
        told = await self._of_home(call, wanted)
        if not told.missing:
            return told
        look = await self._look(call, wanted, told.missing)
        missing = [] if look.trouble else look.missing
        if not (told.jobs or look.told or missing):
            gone = set(told.missing)
            at_home = [job for job in wanted.ids if job not in gone]
            # Of more missing ones than are told nobody knows which they are.
            may_wait = len(told.missing) < TOLD_MAX
            told = await self._for_a_moment(call, wanted, at_home if may_wait else [])
            if not (told.jobs or at_home):  # the others' ends are not kept from their callers
                look.check()
        return ToldJobs(told.jobs + look.told, list(missing))

    async def _for_a_moment(
        self, call: WaitCall, wanted: WaitForJobs, at_home: list[str]
    ) -> ToldJobs:
        """What ends meanwhile; what became missing is for the next call to look for."""
        seconds = min(wanted.wait_seconds, LOOK_SECONDS)
        if at_home:
            asked = replace(wanted, ids=at_home, wait_seconds=seconds, caller="")
            return ToldJobs((await self._of_home(call, asked)).jobs, [])
        waiting = self._platform.waiting
        if waiting.has_slot("many_waits", call.tenant):
            with waiting.slot("many_waits", call.tenant):
                await pause(seconds)
        else:
            await pause(min(seconds, NO_SLOT_SECONDS))
        return ToldJobs([], [])

    # -- asking ------------------------------------------------------------------------------

    async def _of_home(self, call: WaitCall, wanted: WaitForJobs) -> ToldJobs:
        """Of a home that does not answer nothing is known."""
        home = self._regions.homes.home_of(call.tenant)
        if home == self._regions.map.here:
            return await self._from_here(call, wanted)
        try:
            return await self._of(home, call, wanted)
        except Unavailable:
            return ToldJobs([], [] if wanted.all else list(wanted.ids))

    async def _look(self, call: WaitCall, wanted: WaitForJobs, jobs: Collection[str]) -> _Look:
        """In every region: the home, which was asked before, and the others once more, for a job
        may have been on its way between two of them."""
        home = self._regions.homes.home_of(call.tenant)
        others = [region for region in self._regions.map.regions if region != home]
        missing, told, trouble = list(jobs)[:IDS_AT_ONCE], list[Raw](), None
        for region in (*others, home, *others):
            if not missing:
                break
            asked = WaitForJobs(ids=missing, all=wanted.all)
            is_long = region == self._regions.map.here and len(missing) > FEW_OF_OTHERS
            try:
                async with self._turn(call, is_long=is_long):
                    answer = await self._of(region, call, asked)
            except (FairwayError, _Refused) as error:
                trouble = error
                continue
            told += answer.jobs
            seen = _ids(answer.jobs)
            left = missing if wanted.all else answer.missing
            missing = [job for job in left if job not in seen]
        return _Look(told, [JobId(job) for job in missing], trouble)

    async def _of(self, region: str, call: WaitCall, wanted: WaitForJobs) -> ToldJobs:
        if region == self._regions.map.here:
            return await self._from_here(call, wanted)
        if self._regions.peers.is_away(region):
            is_home = region == self._regions.homes.home_of(call.tenant)
            raise home_away(region) if is_home else region_away(region)
        return _good(await self._ask(call.request, region, msgspec.json.encode(wanted)))

    async def _from_here(self, call: WaitCall, wanted: WaitForJobs) -> ToldJobs:
        """What this region's store has. Jobs that are held are not missing, but nobody who waits
        hears of their ends here: they are told as missing then, and looked for."""
        told = await self._among_jobs(call, wanted)
        if wanted.all:
            seen = _ids(told.jobs)
            left = [JobId(job) for job in wanted.ids if job not in seen]
            views = await self._held_here(call.tenant, left[:IDS_AT_ONCE])
            return ToldJobs(told.jobs + views, told.missing)
        if not told.missing or wanted.wait_seconds:
            return told
        missing = [JobId(job) for job in told.missing]
        held = await self._regions.held.among(call.tenant, missing)
        rest: list[str] = [job for job in missing if job not in held]
        if not rest:
            return ToldJobs(told.jobs, [])
        again = await self._among_jobs(call, replace(wanted, ids=rest))  # held a moment ago
        return ToldJobs(told.jobs + again.jobs, again.missing)

    async def _among_jobs(self, call: WaitCall, wanted: WaitForJobs) -> ToldJobs:
        reply = await call.here(asking(call.request, wanted))
        return _good(await in_one_piece(call.request, reply))

    async def _held_here(self, tenant: TenantId, jobs: list[JobId]) -> list[Raw]:
        if not jobs:
            return []
        sights, directory = await self._regions.held.sights(tenant, jobs), self._platform.directory
        regions = self._regions.map.here, self._regions.homes.home_of(tenant)
        views = [view for one in sights for view in held_views(one, directory, *regions)]
        return [Raw(msgspec.json.encode(view)) for view in views]


def _shuffled(wanted: WaitForJobs) -> WaitForJobs:
    """Only the first are looked for elsewhere: all have their turn."""
    ids = job_ids(wanted.ids)
    random.shuffle(ids)
    return replace(wanted, ids=ids)


def _good(reply: Response) -> ToldJobs:
    if reply.status_code != HTTPStatus.OK:
        raise _Refused(reply)
    return decode_told(bytes(reply.body))


def _ids(told: Iterable[Raw]) -> set[str]:
    return {msgspec.json.decode(one, type=_Id).id for one in told}
