"""What becomes of a job after a run, given how its type, its tenant and what it leans on fare.

The decision for one job is `core/failure/retry.py`; here it meets the facts that many jobs share:
circuits of dependencies, quarantines of types, retry budgets of tenants, and workers that died. All
of it is memory of the last minutes, kept only for tenants that had a failure lately: a success of
anybody else costs one look-up. Nothing here does I/O; what changed waits in `news` for the keeper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeVar

from fairway.core.failure.circuit_book import OTHER, CircuitBook
from fairway.core.failure.circuits import Circuit, CircuitSettings
from fairway.core.failure.crash_throttle import CrashThrottle, CrashThrottleSettings, blame_of
from fairway.core.failure.fault import Fault, error_document, fault_of
from fairway.core.failure.fingerprint import fingerprint
from fairway.core.failure.quarantine import OWN_FAILURES, Quarantine, QuarantineSettings
from fairway.core.failure.retry import (
    NO_FAILURES,
    Counters,
    Decision,
    RetryPolicy,
    Tally,
    after_cancel,
    decide,
    in_quarantine,
    is_retry,
    over_budget,
    parked,
)
from fairway.core.failure.retry_budget import BudgetSettings, RetryBudget
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.pools import PoolTable
from fairway.core.run.billing import LOST
from fairway.core.run.lease import believable_us
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.runtime.clock import Clock
from fairway.services.failure.retry_policies import Policies
from fairway.services.sessions.sessions import End, Lease

RESTRAINTS = ("circuit", "quarantine", "throttle")


class TypeKey(NamedTuple):
    tenant: TenantId
    type: TypeId


class RestraintChange(NamedTuple):
    """Something that restrains jobs began or ended."""

    kind: str  # circuit, quarantine, recycling
    tenant: TenantId
    subject: int  # the type, or the pool when workers died
    dependency: str = ""
    is_on: bool = True
    is_news: bool = True  # False: it goes on, with other times


class FailurePolicy:
    def __init__(
        self,
        clock: Clock,
        pools: PoolTable,
        *,
        jitter: Callable[[], float],
        on_news: Callable[[set[TenantId]], None],
    ) -> None:
        self._clock = clock
        self._pools = pools
        self._jitter = jitter  # from 0 to 1: retries of many must not come together
        self._on_news = on_news  # something restrains these tenants' jobs, or does so no more
        self.circuit_settings = CircuitSettings()
        self.quarantine_settings = QuarantineSettings()
        self.policies = Policies()
        self.watched: set[TenantId] = set()  # tenants that had a failure lately
        self.circuits = CircuitBook()
        self.quarantines: dict[TypeKey, Quarantine] = {}
        self.budgets: dict[TenantId, RetryBudget] = {}
        # by tenant and pool
        self.crash_throttles: dict[tuple[TenantId, PoolId], CrashThrottle] = {}
        self.news: list[RestraintChange] = []
        self._is_gathering = False

    def policy_of(self, job: QueuedJob) -> RetryPolicy:
        asked = self.policies.of(job.tenant, job.type)
        pool = self._pools.by_number[job.pool]
        return replace(RetryPolicy(attempts_max=pool.attempts_max), **asked)

    # -- runs end ----------------------------------------------------------------------------

    def end_of(self, lease: Lease, number: int | None, outcome: Outcome) -> End:
        """The end of a run that was no success, with what was decided."""
        job = lease.job
        fault = fault_of(outcome.error)
        ran_us = believable_us(outcome.ran_us, lease.granted_us, self._clock.now_us())
        decision = self._judge(job, outcome, fault)
        if lease.cancelling:
            decision = after_cancel(decision)
        error, cause = None, None
        if outcome.failure is not None:
            error = error_document(outcome.failure, decision.reason, fault)
        elif outcome.error is not None:  # whatever it is, it is kept within the same bounds
            error = error_document(None, "", fault)
        if decision.state is State.DEAD:
            cause = fingerprint(job.type, fault)
        is_lost = number is None and outcome.failure is FailureClass.WORKER_CRASH
        said = LOST if is_lost else outcome.kind.value
        return End(lease, number, ran_us, None, decision, error, cause, said, outcome.failure)

    def _judge(self, job: QueuedJob, outcome: Outcome, fault: Fault) -> Decision:
        tally = tally_of(job)
        if outcome.kind is not OutcomeKind.FAILED or outcome.failure is None:
            return decide(self.policy_of(job), tally, outcome, self._jitter())
        now_us = self._clock.now_us()
        self.watched.add(job.tenant)
        if self._is_parked(job, outcome, fault, now_us):
            return parked(tally)
        policy = self.policy_of(job)
        if self._is_quarantined(job, outcome.failure, now_us):
            policy = in_quarantine(policy)
        decision = decide(policy, tally, outcome, self._jitter())
        return decision if self._is_affordable(job, decision, now_us) else over_budget(decision)

    def _is_parked(self, job: QueuedJob, outcome: Outcome, fault: Fault, now_us: int) -> bool:
        """Whether the job failed for a dependency that is known to be away, by this or before."""
        if outcome.failure is not FailureClass.DEPENDENCY:
            return False
        key = TypeKey(job.tenant, job.type)
        name = self.circuits.name_of(*key, fault.dependency or OTHER)
        if name is None:
            return False  # so many are away that it is tried again like any other
        circuit = self.circuits.of_type(*key).get(name)
        if circuit is None:
            circuit = Circuit(self.circuit_settings)
            self.circuits.put(*key, name, circuit)
        before = circuit.state
        opened = circuit.failed(now_us, outcome.delay_ms * 1000)
        if circuit.state is not before:
            self._tell(RestraintChange("circuit", *key, name, is_news=opened))
        return circuit.is_open

    def _is_quarantined(self, job: QueuedJob, failure: FailureClass, now_us: int) -> bool:
        key = TypeKey(job.tenant, job.type)
        quarantine = self.quarantines.get(key)
        if failure in OWN_FAILURES:
            if quarantine is None:
                quarantine = self.quarantines[key] = Quarantine(self.quarantine_settings)
            if quarantine.failed(now_us, is_first=_is_first(job)):
                self._tell(RestraintChange("quarantine", *key))
        return quarantine is not None and quarantine.is_on

    def _is_affordable(self, job: QueuedJob, decision: Decision, now_us: int) -> bool:
        budget = self.budgets.get(job.tenant)
        if budget is None:
            budget = self.budgets[job.tenant] = RetryBudget(BudgetSettings())
        if _is_first(job):
            budget.dispatched(now_us)
        return not is_retry(decision) or budget.take(now_us)

    def succeeded(self, jobs: Iterable[QueuedJob]) -> None:
        """Runs that ended well; asked only while some tenant is watched."""
        watched, now_us = self.watched, self._clock.now_us()
        counts: dict[tuple[TenantId, TypeId], int] = defaultdict(int)
        first: dict[TenantId, int] = defaultdict(int)
        for job in jobs:
            if job.tenant in watched:
                counts[job.tenant, job.type] += 1
                first[job.tenant] += _is_first(job)
        for tenant, count in first.items():
            if tenant in self.budgets:
                self.budgets[tenant].dispatched(now_us, count)
        with self.together():
            for key, count in counts.items():
                self._type_succeeded(TypeKey(*key), count, now_us)

    def _type_succeeded(self, key: TypeKey, count: int, now_us: int) -> None:
        for name, circuit in self.circuits.of_type(*key).items():
            if circuit.succeeded(now_us, count):
                self._tell(RestraintChange("circuit", *key, name, is_on=False))
        quarantine = self.quarantines.get(key)
        if quarantine is not None and quarantine.succeeded(now_us, count):
            self._tell(RestraintChange("quarantine", *key, is_on=False))

    def worker_died(self, jobs: list[QueuedJob]) -> None:
        """A runner died under these jobs. A worker that fell silent or was stopped is not this."""
        now_us = self._clock.now_us()
        tenant_pools = {(job.tenant, job.pool) for job in jobs}
        with self.together():
            for tenant_pool in tenant_pools:
                throttle = self.crash_throttles.get(tenant_pool)
                if throttle is None:
                    throttle = self.crash_throttles[tenant_pool] = CrashThrottle(
                        CrashThrottleSettings()
                    )
                if throttle.died(now_us, blame_of(len(tenant_pools))):
                    self._tell(RestraintChange("recycling", *tenant_pool))

    # -- restraints --------------------------------------------------------------------------

    @contextmanager
    def together(self) -> Iterator[None]:
        """What many ends lead to is told once, after the last: each looks at all of a tenant's.

        Whoever uses it does not await inside. So nothing is granted between a circuit that opens
        and its hold, and whoever asks afterwards finds every hold in force.
        """
        if self._is_gathering:
            yield
            return
        told, self._is_gathering = len(self.news), True
        try:
            yield
        finally:
            self._is_gathering = False
            if len(self.news) > told:
                self._on_news({change.tenant for change in self.news[told:]})

    def take_news(self) -> list[RestraintChange]:
        """What changed since; told once."""
        news, self.news = self.news, []
        return news

    def put_news_back(self, news: list[RestraintChange]) -> None:
        """It could not be written: it comes first the next time."""
        self.news = news + self.news

    def _tell(self, change: RestraintChange) -> None:
        self.news.append(change)
        if not self._is_gathering:
            self._on_news({change.tenant})

    # -- all of them: each yields often, for whoever goes through them lets others go on ----------

    def restrained(self) -> set[TenantId]:
        """Tenants whose jobs may be held back."""
        return {*self.circuits.tenants(), *(tenant for tenant, _ in self.crash_throttles)}

    def crash_throttle_of(self, tenant: TenantId) -> Iterator[tuple[PoolId, CrashThrottle]]:
        """By pool."""
        for pool in self._pools.by_number:
            if (one := self.crash_throttles.get((tenant, pool))) is not None:
                yield pool, one

    def counting(self, found: dict[str, int]) -> Iterator[None]:
        """Add how many of each kind of restraint are in force."""
        for tenant in self.circuits.tenants():
            for _, by_name in self.circuits.of_tenant(tenant):
                found["circuit"] += sum(one.is_open for one in by_name.values())
            yield
        for quarantine in list(self.quarantines.values()):
            found["quarantine"] += quarantine.is_on
            yield
        found["throttle"] += sum(one.is_throttled for one in self.crash_throttles.values())

    def forgetting(self, now_us: int) -> Iterator[None]:
        """Keep no memory of those who have had no failure for as long as their windows are."""
        before, kept = set(self.watched), set[TenantId]()
        for tenant in self.circuits.tenants():
            self.circuits.forget_idle(tenant, now_us)
            yield
        yield from _drop_idle(self.quarantines, now_us)
        yield from _drop_idle(self.budgets, now_us)
        yield from _drop_idle(self.crash_throttles, now_us)
        for key in list(self.quarantines):
            kept.add(key.tenant)
            yield
        # Who failed since has a budget or a circuit by now.
        gone = [one for one in before - kept if one not in self.circuits]
        self.watched.difference_update(one for one in gone if one not in self.budgets)


class Forgetful(Protocol):
    def is_idle(self, now_us: int) -> bool: ...


Key = TypeVar("Key")
Memory = TypeVar("Memory", bound=Forgetful)


def tally_of(job: QueuedJob) -> Tally:
    failures = Counters(*job.failures) if job.failures else NO_FAILURES
    return Tally(job.attempts, job.deliveries, failures)


def _is_first(job: QueuedJob) -> bool:
    """Whether this run is the job's first that counts; a delivery that was lost is no run."""
    return not job.attempts and (not job.failures or not any(job.failures[:4]))


def _drop_idle(memory: dict[Key, Memory], now_us: int) -> Iterator[None]:
    for key, value in list(memory.items()):
        if value.is_idle(now_us) and memory.get(key) is value:
            del memory[key]
        yield
