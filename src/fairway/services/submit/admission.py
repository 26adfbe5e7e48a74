"""Lets a tenant's submissions in, or says why not, before anything is written.

Each server keeps its own buckets: a tenant that talks to several gets its rate from each. Refusals
are counted by code, for the tenant itself to see; nothing is ever refused silently.
"""

from __future__ import annotations

from collections import Counter

from fairway.core.backpressure.rate_limit import Bucket, Quota
from fairway.core.errors import LimitReached, Unavailable
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Instruments
from fairway.services.backpressure.disk_reserve import DiskReserve
from fairway.services.dispatch.dispatcher import Dispatcher

REFUSED_BYTES_PER_TOKEN = 16 << 10
DEPTH_RETRY_SECONDS = 5  # a full queue empties by running jobs; how soon nobody knows


class Admission:
    def __init__(
        self,
        dispatcher: Dispatcher,
        instruments: Instruments,
        settings: Settings,
        disk_reserve: DiskReserve,
    ) -> None:
        self.disk_reserve = disk_reserve
        self._waiting_max = settings.submit_waiting_max
        self._dispatcher = dispatcher
        self._clock = instruments.clock
        self._metrics = instruments.metrics
        self._buckets: dict[TenantId, Bucket] = {}
        self._refused: dict[TenantId, Counter[str]] = {}
        self._is_closed = False

    def close(self) -> None:
        """Nobody hands anything in from now on; what runs may still start its follow-ups."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise Unavailable(
                "This server stops and takes no new jobs; nothing of this was accepted. Send it"
                " again shortly.",
                code="STOPPING",
            )

    def admit(self, tenant: Tenant, count: int, waiting: int) -> None:
        """Take the tokens for so many jobs, or refuse; only what is let in costs tokens.

        `waiting` jobs are on their way to disk here: bounded, so that memory does not grow.
        """
        self._check_open()
        self.disk_reserve.check()
        self._check_room(tenant, count, waiting)
        now_us = self._clock.now_us()
        early_us = self._bucket(tenant).take(count, tenant.rate_per_second, tenant.burst, now_us)
        if early_us:
            raise self._too_early(tenant, early_us)

    def admit_follow_ups(self, tenant: Tenant, count: int) -> None:
        """As `admit`, of what a run starts: it has run, and cannot come again with fewer."""
        self.disk_reserve.check()
        self._check_room(tenant, count, 0)
        now_us = self._clock.now_us()
        bucket = self._bucket(tenant)
        early_us = bucket.overdraw(count, tenant.rate_per_second, tenant.burst, now_us)
        if early_us:
            raise self._too_early(tenant, early_us)

    def look(self, tenant: Tenant, count: int, waiting: int) -> None:
        """Refuse what `admit` would refuse now; nothing is taken."""
        self._check_open()
        self.disk_reserve.check()
        self._check_room(tenant, count, waiting)
        now_us = self._clock.now_us()
        bucket = self._bucket(tenant)
        early_us = bucket.early_us(count, tenant.rate_per_second, tenant.burst, now_us)
        if early_us:
            raise self._too_early(tenant, early_us)

    def _check_room(self, tenant: Tenant, count: int, waiting: int) -> None:
        if waiting and waiting + count > self._waiting_max:
            raise Unavailable(
                "More jobs are on their way to disk than this server holds; nothing of this was"
                " accepted. Send it again shortly.",
                code="OVERLOADED",
            )
        depth = self.depth(tenant)
        if depth + count > tenant.depth_limit:
            raise LimitReached(
                _no_room(depth, count, tenant.depth_limit),
                code="QUEUE_DEPTH_EXCEEDED",
                retry_after_seconds=DEPTH_RETRY_SECONDS,
            )

    def _too_early(self, tenant: Tenant, early_us: int) -> LimitReached:
        return self._later(
            tenant,
            early_us,
            f"Your limit is {tenant.rate_per_second} a second and {tenant.burst} at once;"
            f" there is room for this in {early_us / 1e6:.3f} s.",
        )

    def _later(self, tenant: Tenant, early_us: int, sentence: str) -> LimitReached:
        return LimitReached(
            sentence,
            code="TENANT_RATE_LIMIT_EXCEEDED",
            retry_after_seconds=early_us / 1e6,
            quota=self.quota(tenant),
        )

    def refuse_debtors(self, tenant: Tenant) -> None:
        """Before a large body is read: whoever owes for the last one comes back later."""
        early_us = self._bucket(tenant).debt_us(
            tenant.rate_per_second, tenant.burst, self._clock.now_us()
        )
        if early_us:
            raise self._later(
                tenant,
                early_us,
                f"What was refused before counts towards your rate: come back in"
                f" {early_us / 1e6:.3f} s.",
            )

    def charge(self, tenant: Tenant, refused_bytes: int) -> None:
        """Work that was refused after it was looked at is not free."""
        count = refused_bytes // REFUSED_BYTES_PER_TOKEN
        if count:
            self._bucket(tenant).charge(
                count, tenant.rate_per_second, tenant.burst, self._clock.now_us()
            )

    def quota(self, tenant: Tenant) -> Quota:
        return self._bucket(tenant).quota(
            tenant.rate_per_second, tenant.burst, self._clock.now_us()
        )

    def depth(self, tenant: Tenant) -> int:
        return self._dispatcher.depth_of(tenant.id)

    def count_refusal(self, tenant: Tenant, code: str) -> None:
        """A submission was refused, here or by somebody else."""
        self._metrics.refused.labels(code).inc()
        self._refused.setdefault(tenant.id, Counter())[code] += 1

    def refusals(self, tenant: Tenant) -> dict[str, int]:
        """Submissions refused by this server since it started, by code."""
        return dict(self._refused.get(tenant.id, {}))

    def _bucket(self, tenant: Tenant) -> Bucket:
        bucket = self._buckets.get(tenant.id)
        if bucket is None:
            bucket = self._buckets[tenant.id] = Bucket(tenant.burst, self._clock.now_us())
        return bucket


def _no_room(depth: int, count: int, limit: int) -> str:
    """Waiting makes room for one more, and for a batch; not for one that is above the limit."""
    if count > limit:
        return f"These are {count} jobs, and at most {limit} of yours may wait: send fewer at once."
    more = "one more" if count == 1 else f"{count} more"
    return f"{depth} jobs wait and the limit is {limit}; come back with {more} when some have run."
