"""Lets a tenant's submissions in, or says why not, before anything is written.

The owner of a tenant's shard judges: its bucket is the one that counts, wherever a job came in.
Other servers remember how full the owner said it is, and refuse by that what it would refuse, too;
one that cannot ask it judges by a share of the limits. Refusals are counted by code, for the tenant
itself to see; nothing is ever refused silently.
"""

from __future__ import annotations

from collections import Counter

from fairway.core.backpressure.rate_limit import Bucket, Quota, share_of
from fairway.core.errors import LimitReached, Unavailable
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import Instruments
from fairway.services.backpressure.disk_reserve import DiskReserve
from fairway.services.dispatch.dispatcher import Dispatcher

REFUSED_BYTES_PER_TOKEN = 16 << 10
LEARNED_US = 10_000_000  # an owner that was not heard of for longer may be another, or we
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
        self._learned: dict[TenantId, int] = {}  # whose bucket is another's, and as of when
        self._owed: dict[TenantId, int] = {}  # tokens of theirs that the owner has not heard of
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

    def admit(self, tenant: Tenant, count: int, waiting: int, servers: int = 1) -> None:
        """Take the tokens for so many jobs, or refuse; only what is let in costs tokens.

        `waiting` jobs are on their way to disk here: bounded, so that memory does not grow. Of so
        many `servers` each judges by a share, while nobody can ask the owner.
        """
        self._check_open()
        self.disk_reserve.check()
        self._check_room(tenant, count, waiting)
        now_us = self._clock.now_us()
        rate, burst = tenant.rate_per_second, tenant.burst
        if servers > 1:
            rate, burst = share_of(rate, servers), share_of(burst, servers)
        early_us = self._bucket(tenant).take(count, rate, burst, now_us)
        if early_us:
            raise self._too_early(tenant, early_us, now_us)
        if tenant.id in self._learned:
            self._owe(tenant, count)

    def admit_follow_ups(self, tenant: Tenant, count: int) -> None:
        """As `admit`, of what a run starts: it has run, and cannot come again with fewer."""
        self.disk_reserve.check()
        self._check_room(tenant, count, 0)
        now_us = self._clock.now_us()
        bucket = self._bucket(tenant)
        early_us = bucket.overdraw(count, tenant.rate_per_second, tenant.burst, now_us)
        if early_us:
            raise self._too_early(tenant, early_us, now_us)

    def look(self, tenant: Tenant, count: int, waiting: int) -> None:
        """Refuse what `admit` would refuse now; nothing is taken."""
        self._check_open()
        self.disk_reserve.check()
        self._check_room(tenant, count, waiting)
        now_us = self._clock.now_us()
        bucket = self._bucket(tenant)
        early_us = bucket.early_us(count, tenant.rate_per_second, tenant.burst, now_us)
        if early_us:
            raise self._too_early(tenant, early_us, now_us)

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

    def _too_early(self, tenant: Tenant, early_us: int, now_us: int) -> LimitReached:
        return self._later(
            tenant,
            early_us,
            now_us,
            f"Your limit is {tenant.rate_per_second} a second and {tenant.burst} at once;"
            f" there is room for this in {early_us / 1e6:.3f} s.",
        )

    def _later(self, tenant: Tenant, early_us: int, now_us: int, sentence: str) -> LimitReached:
        """What is left is told of the moment that was judged: a token later it would be room."""
        return LimitReached(
            sentence,
            code="TENANT_RATE_LIMIT_EXCEEDED",
            retry_after_seconds=early_us / 1e6,
            quota=self._bucket(tenant).quota(tenant.rate_per_second, tenant.burst, now_us),
        )

    def refuse_debtors(self, tenant: Tenant) -> None:
        """Before a large body is read: whoever owes for the last one comes back later."""
        now_us = self._clock.now_us()
        early_us = self._bucket(tenant).debt_us(tenant.rate_per_second, tenant.burst, now_us)
        if early_us:
            raise self._later(
                tenant,
                early_us,
                now_us,
                f"What was refused before counts towards your rate: come back in"
                f" {early_us / 1e6:.3f} s.",
            )

    def charge(self, tenant: Tenant, refused_bytes: int, refused: int = 0) -> None:
        """Work that was refused after it was looked at is not free: so many jobs cost at least what
        they would have cost had they been good."""
        count = max(refused, refused_bytes // REFUSED_BYTES_PER_TOKEN)
        if count:
            self.charge_refused(tenant, count)

    def charge_refused(self, tenant: Tenant, count: int) -> None:
        """So many jobs were let in as far as this server knows, and refused before the owner heard
        of them."""
        self.charge_tokens(tenant, count)
        self._owe(tenant, count)

    def charge_tokens(self, tenant: Tenant, count: int) -> None:
        self._bucket(tenant).charge(
            count, tenant.rate_per_second, tenant.burst, self._clock.now_us()
        )

    # -- between servers ---------------------------------------------------------------------

    def _owe(self, tenant: Tenant, count: int) -> None:
        """Tokens taken here from a bucket that is another's: it hears of them."""
        if self._clock.now_us() - self._learned.get(tenant.id, 0) < LEARNED_US:
            owed = self._owed.get(tenant.id, 0) + count
            self._owed[tenant.id] = min(owed, tenant.burst)  # a bucket owes no more

    def take_owed(self, tenant: TenantId) -> int:
        """The owner is told with the next jobs."""
        return self._owed.pop(tenant, 0) if self._owed else 0

    def level(self, tenant: Tenant) -> int:
        """What another server is to `learn` of the bucket here."""
        rate, burst = tenant.rate_per_second, tenant.burst
        return self._bucket(tenant).level(rate, burst, self._clock.now_us())

    def learn(self, tenant: TenantId, level: int, as_of_us: int) -> None:
        """The owner's bucket stood at this level, at that moment or later.

        So it is never fuller than what is remembered: nothing is refused here that has room there.
        """
        if as_of_us >= self._learned.get(tenant, as_of_us):
            self._learned[tenant] = as_of_us
            self._buckets[tenant] = Bucket(0, as_of_us, level)

    def quota(self, tenant: Tenant) -> Quota:
        return self._bucket(tenant).quota(
            tenant.rate_per_second, tenant.burst, self._clock.now_us()
        )

    def depth(self, tenant: Tenant) -> int:
        return self._dispatcher.depth_of(tenant.id)

    def count_refusal(self, tenant: Tenant, code: str, count: int = 1) -> None:
        """So many submissions were refused, here or by somebody else."""
        self._metrics.refused.labels(code).inc(count)
        self._refused.setdefault(tenant.id, Counter())[code] += count

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
