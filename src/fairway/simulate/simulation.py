"""One simulation: work is fed to a platform and its workers in virtual time, and lives are kept.

Everything random is in the work that comes in (`Arrival`), so that two simulations of the same work
under other terms or another fleet can be compared job by job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fairway.core.ids import PoolId, TypeId
from fairway.core.pools import PoolTable
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.sessions.sessions import End, Lease
from fairway.simulate.platform import SimulatedPlatform
from fairway.simulate.virtual_time import SECOND_US, VirtualTime
from fairway.simulate.work import Arrival, Kind, Overheads
from fairway.simulate.workers import Workers

REFUSED_US = 50_000  # a call to what is down fails after this
NEVER_US = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What stays the same from beginning to end."""

    tenants: Sequence[Tenant]
    kinds: Sequence[Kind]
    seed: int = 1
    overheads: Overheads = field(default_factory=Overheads)
    lease_seconds: Mapping[PoolId, float] = field(default_factory=dict)  # beside the pools' own


class Life:
    """What became of one job."""

    __slots__ = ("accepted_us", "arrival", "attempts", "finished_us", "pool", "started_us", "state")

    def __init__(self, arrival: Arrival, now_us: int) -> None:
        self.arrival = arrival
        self.accepted_us = now_us
        self.pool: PoolId = arrival.kind.pool
        self.started_us = NEVER_US  # the first time
        self.finished_us = NEVER_US
        self.state = ""
        self.attempts = 0

    @property
    def wait_us(self) -> int:
        """From acceptance, or from its own time, to its first start."""
        return self.started_us - max(self.accepted_us, self.arrival.due_us)

    def starts(self, pool: PoolId, now_us: int) -> None:
        if self.started_us == NEVER_US:
            self.pool, self.started_us = pool, now_us

    def ends(self, state: str, attempts: int, now_us: int) -> None:
        self.state, self.attempts, self.finished_us = state, attempts, now_us


class Simulation:
    def __init__(self, setup: Setup, on_end: Callable[[Life], None]) -> None:
        """`on_end` is told of each job that is over, once."""
        self.time = VirtualTime()
        self._on_end = on_end
        self.overheads = setup.overheads
        self.kinds = setup.kinds
        self._down: set[str] = set()
        self._broken = False
        self._lives: dict[str, Life] = {}
        self.accepted = 0
        self.runs = 0
        self.deliveries_lost = 0
        self._calls: Counter[str] = Counter()  # dependency → runs that asked it
        self._needed: Counter[str] = Counter()  # dependency → jobs that lean on it
        pools = PoolTable()
        self.platform = SimulatedPlatform(
            self.time,
            pools,
            setup.overheads,
            seed=setup.seed,
            on_work=self._serve,
            on_ends=self._ended,
            on_leases=self._written,
        )
        self.platform.set_entitlements(setup.tenants)
        usual = {pool.number: pool.lease_seconds for pool in pools.by_name.values()}
        self.workers = Workers(
            self.time,
            self.platform.dispatcher,
            setup.overheads,
            types=frozenset(kind.type for kind in setup.kinds),
            plan=self._plan,
            lease_seconds={**usual, **setup.lease_seconds},
        )

    # -- ports: the platform is made before its workers -----------------------------------------

    def _serve(self) -> None:
        self.workers.serve_all()

    def _written(self, leases: Sequence[Lease]) -> None:
        self.workers.written(leases)

    # -- work --------------------------------------------------------------------------------

    def feed(self, arrivals: Iterable[Arrival]) -> None:
        """In order of time; read as time goes on."""
        self._feed_next(iter(arrivals))

    def _feed_next(self, rest: Iterator[Arrival]) -> None:
        first = next(rest, None)
        if first is not None:
            self.time.at(first.at_us, partial(self._arrive, first, rest))

    def _arrive(self, arrival: Arrival, rest: Iterator[Arrival]) -> None:
        kind = arrival.kind
        job = self.platform.submit(arrival.tenant, kind.type, kind.pool, arrival.due_us)
        self._lives[job] = Life(arrival, self.time.now_us())
        self.accepted += 1
        if kind.dependency:
            self._needed[kind.dependency] += 1
        self._feed_next(rest)

    # -- what goes wrong -----------------------------------------------------------------------

    def breaks_down(self, dependency: str, from_us: int, until_us: int) -> None:
        self.time.at(from_us, partial(self._down.add, dependency))
        self.time.at(until_us, partial(self._down.discard, dependency))

    def release_breaks(self, from_us: int, until_us: int) -> None:
        """Kinds that `breaks` fail in between."""
        self.time.at(from_us, partial(self._set_broken, True))
        self.time.at(until_us, partial(self._set_broken, False))

    def _set_broken(self, is_broken: bool) -> None:
        self._broken = is_broken

    # -- runs ----------------------------------------------------------------------------------

    def _plan(self, lease: Lease) -> tuple[int, Outcome | None]:
        life = self._lives[lease.job.id]
        life.starts(lease.job.pool, self.time.now_us() + self.overheads.reply_us)
        self.runs += 1
        arrival, kind = life.arrival, life.arrival.kind
        if kind.dependency:
            self._calls[kind.dependency] += 1
            if kind.dependency in self._down:
                return REFUSED_US, _failed(FailureClass.DEPENDENCY, REFUSED_US, kind.dependency)
        is_first_failure = arrival.fails and not lease.job.attempts
        if (kind.breaks and self._broken) or is_first_failure:
            return arrival.run_us, _failed(FailureClass.APP_ERROR, arrival.run_us)
        return arrival.run_us, None

    def _ended(self, ends: Sequence[End]) -> None:
        now_us = self.time.now_us()
        for end in ends:
            job, decision = end.lease.job, end.decision
            if decision is not None and not decision.state.is_final:
                self.deliveries_lost += end.failure is FailureClass.WORKER_CRASH
                continue
            state = "succeeded" if decision is None else decision.state.label
            attempts = job.attempts + 1 if decision is None else decision.tally.attempts
            life = self._lives.pop(job.id)
            life.ends(state, attempts, now_us)
            self._on_end(life)

    # -- to the end ----------------------------------------------------------------------------

    def run(self, seconds: float) -> int:
        """So far in all; answers how many events that took."""
        return self.time.run_until(round(seconds * SECOND_US))

    def unfinished(self) -> list[Life]:
        """Jobs that are not over."""
        return list(self._lives.values())

    def amplification(self, dependency: str) -> float:
        """How often it was asked for each job that leans on it."""
        return self._calls[dependency] / max(self._needed[dependency], 1)

    def types_moved(self) -> list[tuple[float, TypeId, PoolId]]:
        return [(at, type_id, move.after) for at, type_id, move in self.platform.moves]


def _failed(failure: FailureClass, ran_us: int, dependency: str = "") -> Outcome:
    error = f'{{"type":"Simulated","dependency":"{dependency}"}}'.encode()
    return Outcome(OutcomeKind.FAILED, ran_us, failure=failure, error=error)
