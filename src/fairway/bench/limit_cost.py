"""What limits by key cost a decision: of jobs with limits over ten thousand keys, and without.

The dispatcher alone, in this process: runs end, the next jobs are chosen and become leases, in
batches as exchanges bring them. How jobs come in and what is written down is no part of a decision;
with how they enter the windows and leave the books, it is the whole path of a job (`…_path_ratio`).
To make the jobs is no part of either.

limits_cost_ratio   so many at once of each key, hardly ever full
rates_cost_ratio    so many in a while, likewise
mutex_cost_ratio    one at a time: of the keys one in ten is taken when a job of it is met, which
                    steps aside and is decided on again
…_path_ratio        the same of the whole path
plain_decision_us   of a job without limits, which the others are compared with
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from fairway.core.backlog.key_limits import KeyLimit, pack
from fairway.core.backlog.streams import WindowLimits
from fairway.core.ids import FIRST_SHARD, FIRST_TERM, NO_EPOCH, TenantId, TypeId, make_job_id
from fairway.core.job import QueuedJob
from fairway.core.pools import MEDIUM, PoolTable
from fairway.runtime.clock import ManualClock
from fairway.runtime.random_ids import lease_tokens
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher, DispatchSettings
from fairway.services.dispatch.ports import Ports, Sorted
from fairway.services.failure.failure_policy import FailurePolicy
from fairway.services.sessions.sessions import End, Lease

SLOTS = 1_000
BATCH = 50
ROUNDS = 40
TENANTS = 100
KEYS = 10_000
READY = 20 * TENANTS
PER_MS = 400
TYPE = TypeId(1)
EARLY_US = 1 << 60

LimitsOf = Callable[[str], list[KeyLimit]]  # of a key
KINDS: Mapping[str, LimitsOf] = {
    "plain": lambda key: [],
    "limits": lambda key: [KeyLimit(key, 3)],
    "rates": lambda key: [KeyLimit(key, 3, PER_MS)],
    "mutex": lambda key: [KeyLimit(key, 1)],
}


class PerJob(NamedTuple):
    """Microseconds of processor time a job."""

    decision_us: float
    path_us: float  # the decision, and how the job came and left


def measure(repeats: int = 15) -> dict[str, float]:
    """In turns, so that a noisy moment meets all, and in processor time."""
    houses = {kind: _Dispatching(limits_of) for kind, limits_of in KINDS.items()}
    turns: dict[str, list[PerJob]] = {kind: [] for kind in KINDS}
    for _ in range(repeats):
        for kind, house in houses.items():
            turns[kind].append(house.turn())
    plain = turns.pop("plain")
    figures = dict[str, float]()
    for name, part in (("cost", "decision_us"), ("path", "path_us")):
        for kind, found in turns.items():
            ratios = [
                getattr(a, part) / getattr(b, part) for a, b in zip(found, plain, strict=True)
            ]
            figures[f"{kind}_{name}_ratio"] = statistics.median(ratios)
    return figures | {"plain_decision_us": statistics.median(one.decision_us for one in plain)}


class _Dispatching:
    """A server's dispatcher with one busy worker, and nobody to write for it."""

    def __init__(self, limits_of: LimitsOf) -> None:
        self._limits_of = limits_of
        self._dice = random.Random(1)
        self._clock = ManualClock()
        self._to_write: list[Lease] = []
        self._busy: deque[Lease] = deque()
        self._made = 0
        pools = PoolTable()
        self._dispatcher = self._new_dispatcher(pools)
        self._dispatcher.claim_shard(FIRST_SHARD, FIRST_TERM)
        self._dispatcher.leases_restored(FIRST_SHARD)
        self._dispatcher.open_shard(FIRST_SHARD)
        self._dispatcher.trust_until(EARLY_US)
        self._session = self._dispatcher.session("bench", "bench", None)
        self._session.noted()
        self._session.runs(frozenset({TYPE}), [])
        self._dispatcher.equip(self._session, {MEDIUM.number: SLOTS})
        self._come(READY + SLOTS)
        while len(self._busy) < SLOTS:
            self._start()

    def _new_dispatcher(self, pools: PoolTable) -> Dispatcher:
        settings = DispatchSettings(
            limits=WindowLimits(),
            tokens=lease_tokens("of a bench"),
            inline_bytes_max=sys.maxsize,
        )
        ports = Ports(
            write_leases=self._to_write.extend,
            lazy_lease=lambda: None,
            record_ends=lambda ends: None,
            forget_ends=lambda shards: None,
            want_reads=lambda: None,
            drop_expired=lambda leases: Sorted(leases, []),
        )
        policy = FailurePolicy(self._clock, pools, jitter=lambda: 0.5, on_news=lambda tenants: None)
        return Dispatcher(settings, ports, policy, pools, clock=self._clock, metrics=Metrics())

    def turn(self) -> PerJob:
        decision_seconds, path_seconds, decided = 0.0, 0.0, 0
        for _ in range(ROUNDS):
            self._clock.advance(self._dice.uniform(0.015, 0.025))
            path_seconds += self._come(BATCH)
            began = time.process_time()
            ended = self._end(BATCH)
            decided += self._start()
            chosen = time.process_time()
            self._dispatcher.recorded(ended)
            decision_seconds += chosen - began
            path_seconds += time.process_time() - began
        return PerJob(decision_seconds / decided * 1e6, path_seconds / decided * 1e6)

    def _come(self, count: int) -> float:
        """Answers the processor time it took, in seconds, the jobs being there."""
        jobs = [self._new() for _ in range(count)]
        began = time.process_time()
        self._dispatcher.arrived([FIRST_SHARD], jobs)
        return time.process_time() - began

    def _new(self) -> QueuedJob:
        self._made += 1
        tenant = TenantId(1 + self._made % TENANTS)
        limits = self._limits_of(f"customer-{tenant}-{self._dice.randrange(KEYS // TENANTS)}")
        job_id = make_job_id(FIRST_SHARD, self._clock.unix_ms(), self._made, 0)
        packed = pack(limits) if limits else None
        plain = QueuedJob(job_id, tenant, MEDIUM.number, TYPE, 5, 0, NO_EPOCH, 0, 0, None, b"{}")
        return replace(plain, limits=packed)

    def _end(self, count: int) -> list[str]:
        ends = [End(self._busy.popleft(), None, 1000, b"null") for _ in range(count)]
        self._dispatcher.succeeded(ends)
        self._dispatcher.windows().review()
        return [end.lease.job.id for end in ends]

    def _start(self) -> int:
        self._dispatcher.serve(self._session)
        granted = self._to_write[:]
        self._to_write.clear()
        for lease in granted:
            self._dispatcher.written(lease)
        self._dispatcher.news(self._session)
        self._busy.extend(granted)
        return len(granted)
