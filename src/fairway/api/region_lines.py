"""Submissions for tenants at home in another region: passed on together, or held here.

The jobs get their ids here, so a call that got no answer is held under the same ids: whoever is
second at the home finds them there. 202 means on disk, in one region or the other. Each region has
one line, bounded as those to owners are (`api/passing.py`); one that is away is not waited for. A
home whose store is away is away: its servers answer, and can take nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from fairway.api.passed_jobs import (
    NOT_TAKEN,
    RegionCalls,
    RegionJobs,
    decode_reply,
    encode,
    outcome_of,
)
from fairway.api.waiting_jobs import WaitingJobs
from fairway.core.errors import FairwayError, LimitReached, Unavailable
from fairway.core.ids import JobId, TenantId, ids_from
from fairway.core.job import is_heavy
from fairway.core.regions.held import HeldCall
from fairway.core.regions.homes import HomeVersion, version_of
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import logger
from fairway.services.group_commit import GroupCommit, Lingering, Sizes
from fairway.services.platform import Platform
from fairway.services.regions.peer_calls import JOBS_PATH, RegionAway
from fairway.services.regions.regions import Regions
from fairway.services.submit.submission_group import (
    Accepted,
    NewJob,
    Verdict,
    WholeKey,
    size_bytes_of,
)
from fairway.services.transient_errors import not_known

log = logger("regions")

CALLS_MAX = 4  # under way to a region, of each weight
GATHER_SECONDS = 0.005
TYPES_KNOWN_MAX = 50_000  # those that jobs were taken of last
MARGIN_SECONDS = 1.5  # for the way there and back, beyond what the home itself takes at most
#: The home has done nothing with it.
NOT_TAKEN_THERE = NOT_TAKEN | {"NOT_HOME"}


class OnItsWay(NamedTuple):
    call: RegionJobs
    told: asyncio.Future[Any]
    size_bytes: int


class NoAnswer(NamedTuple):
    """The home took nothing, as far as is known here."""

    sent_under: HomeVersion | None  # it may have it all the same, by that home; None: it has not


SIZES = Sizes[OnItsWay](lambda one: max(one.call.count, 1), lambda one: one.size_bytes)


class RegionLines:
    """Made only where there are regions."""

    def __init__(self, platform: Platform, regions: Regions) -> None:
        self._platform = platform
        self._regions = regions
        self._lines: dict[tuple[str, bool, bool], GroupCommit[OnItsWay]] = {}
        self._known_types: dict[tuple[TenantId, str], None] = {}  # that a home took jobs of
        self._waiting_max = platform.settings.submit_waiting_max
        self._seconds_max = platform.settings.store_wait_seconds + MARGIN_SECONDS
        self._waiting = WaitingJobs(self._waiting_max, "their home region")

    def elsewhere(self, tenant: Tenant) -> str | None:
        return self._regions.elsewhere(tenant.id)

    async def submit(
        self,
        home: str,
        tenant: Tenant,
        wanted: Sequence[NewJob],
        *,
        is_admitted: bool,
        whole: WholeKey | None,
    ) -> list[Verdict]:
        platform, counter = self._platform, self._regions.metrics.passed_on
        shard = platform.tenant_shards.of(tenant.id)
        first = platform.submissions.ids.make(shard, len(wanted))[0]
        named = platform.directory.pools.by_number
        pools = {number: named[number].name for number in {new.pool for new in wanted}}
        count = len(wanted)
        call = RegionJobs(tenant.id, count, is_admitted, 0, first, whole, wanted, pools)
        told = await self._ask(home, call)
        if isinstance(told, FairwayError) and told.code in NOT_TAKEN_THERE:
            told = NoAnswer(None)
        if isinstance(told, NoAnswer):
            await self._hold(home, tenant, call, told)
            counter.labels(home, "held").inc(call.count)
            return [Accepted(one) for one in ids_from(first, call.count)]
        if isinstance(told, FairwayError):
            counter.labels(home, "refused").inc(call.count)
            raise told
        counter.labels(home, "passed_on").inc(call.count)
        self._learn_types(call)
        verdicts: list[Verdict] = told
        return verdicts

    async def _hold(self, home: str, tenant: Tenant, call: RegionJobs, told: NoAnswer) -> None:
        """What may be on disk at the home is not refused here: its caller would send it anew."""
        under = told.sent_under
        if not call.is_admitted and under is None:
            self._platform.submissions.admit(tenant, call.count)
        body = encode(msgspec.structs.replace(call, is_admitted=True))
        last = JobId(ids_from(call.first, call.count)[-1])
        shard = self._platform.tenant_shards.of(tenant.id)
        offered_to = None if under is None else home
        held = HeldCall(shard, tenant.id, call.first, last, call.count, body, offered_to, under)
        try:
            await self._regions.held.hold(held)
        except Unavailable:
            if under is not None:  # who sends it anew, without a key, may have it twice
                raise not_known() from None
            raise

    async def _ask(self, home: str, call: RegionJobs) -> Any:
        if self._regions.peers.is_away(home):
            return NoAnswer(None)
        if self._waiting.jobs and self._waiting.jobs + call.count > self._waiting_max:
            raise Unavailable(
                "More jobs are on their way to other regions than this server holds; nothing of"
                " this was accepted. Send it again shortly.",
                code="OVERLOADED",
            )
        self._waiting.check_room(call.tenant, call.count)
        told = asyncio.get_running_loop().create_future()
        size_bytes = size_bytes_of(call.jobs)
        self._waiting.add(call.tenant, call.count)
        try:
            is_heavy_call, has_news = is_heavy(call.count, size_bytes), self._has_new_types(call)
            self._line(home, is_heavy_call, has_news).add(OnItsWay(call, told, size_bytes))
            return await told
        finally:
            self._waiting.remove(call.tenant, call.count)

    def _has_new_types(self, call: RegionJobs) -> bool:
        """They go on a line of their own: names cost nothing to make up, and the home looks for a
        new one in its tenant's turn, for which everybody in the same call would wait."""
        known, tenant = self._known_types, call.tenant
        return any((tenant, new.type) not in known for new in call.jobs)

    def _learn_types(self, call: RegionJobs) -> None:
        for type_ in {new.type for new in call.jobs}:
            self._known_types[call.tenant, type_] = None
            if len(self._known_types) > TYPES_KNOWN_MAX:
                del self._known_types[next(iter(self._known_types))]

    def _line(self, home: str, heavy: bool, has_news: bool) -> GroupCommit[OnItsWay]:
        line = self._lines.get((home, heavy, has_news))
        if line is None:
            line = self._lines[home, heavy, has_news] = GroupCommit(
                "to_region",
                lambda group: self._flush(home, group),
                instruments=self._platform.instruments,
                sizes=SIZES,
                writes_max=CALLS_MAX,
                linger=Lingering(GATHER_SECONDS, counts="jobs" if heavy else "items"),
            )
        return line

    async def _flush(self, home: str, group: list[OnItsWay]) -> None:
        """One call for all of them; whatever happens, each is told."""
        group = [one for one in group if not one.told.done()]
        peers, homes, may_have_it = self._regions.peers, self._regions.homes, True
        meant = {tenant: homes.meant(tenant) for tenant in {one.call.tenant for one in group}}
        doubts = [NoAnswer(version_of(meant[one.call.tenant].home)) for one in group]
        try:
            if not group or peers.is_away(home):
                may_have_it = False
                return
            body = encode(RegionCalls([one.call for one in group], meant))
            answer, is_open = await peers.call_in_turn(home, JOBS_PATH, body, self._seconds_max)
            items = decode_reply(answer).items
            for one, doubt, said in zip(group, doubts, items, strict=True):
                outcome = outcome_of(one.call, said)
                if not one.told.done():
                    one.told.set_result(doubt if _is_in_doubt(outcome, is_open) else outcome)
        except RegionAway as error:
            may_have_it = error.is_open
            log.warning("home does not answer, jobs are held here", region=home)
        except (msgspec.DecodeError, LookupError, TypeError, ValueError) as error:
            log.error("home answers what nobody can read", region=home, error=repr(error))
        finally:
            for one, doubt in zip(group, doubts, strict=True):
                if not one.told.done():
                    one.told.set_result(doubt if may_have_it else NoAnswer(None))


def _is_in_doubt(outcome: Any, is_open: bool) -> bool:
    """Whether the home may have it after all: whether it was written is not known to it. `is_open`:
    another of its servers gave no answer before; one that took nothing does not speak for that one,
    nor does one that judged a limit, which the jobs may have come up to by being there."""
    if not isinstance(outcome, LimitReached | Unavailable):
        return False
    return is_open or outcome.code == Unavailable.code
