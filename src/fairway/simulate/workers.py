"""Workers in virtual time: sessions with slots that run what they are given, die and are replaced.

A worker that has a free slot stands in its pools' lines; who has stood there the longest is served
first, as servers do with held calls. A worker that dies falls silent: its leases are lost when its
pool's time for that is over, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from fairway.core.ids import PoolId, TypeId
from fairway.core.run.outcome import Outcome
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.sessions import End, Lease, Session
from fairway.simulate.virtual_time import SECOND_US, VirtualTime
from fairway.simulate.work import Overheads


class SimulatedWorker:
    """One life of one worker."""

    def __init__(self, session: Session, slots: Mapping[PoolId, int], now_us: int) -> None:
        self.session = session
        self.slots = dict(slots)
        self.is_alive = True
        self.idle_since_us = now_us

    @property
    def name(self) -> str:
        return self.session.key

    @property
    def busy(self) -> int:
        return len(self.session.leases)

    def has_room(self, pool: PoolId) -> bool:
        return self.session.free(pool) > 0

    def dies(self) -> None:
        self.is_alive = False

    def is_idle(self, now_us: int) -> None:
        """Its last run ended now."""
        self.idle_since_us = now_us


#: What a run comes to that starts now: how long it takes, and how it fails, if it does.
RunPlan: TypeAlias = Callable[[Lease], tuple[int, Outcome | None]]


class Workers:
    def __init__(
        self,
        time: VirtualTime,
        dispatcher: Dispatcher,
        overheads: Overheads,
        *,
        types: frozenset[TypeId],
        plan: RunPlan,
        lease_seconds: Mapping[PoolId, float],
    ) -> None:
        self._time = time
        self._dispatcher = dispatcher
        self._overheads = overheads
        self._types = types
        self._plan = plan
        self._lease_seconds = lease_seconds
        self._made = 0
        self._by_key: dict[str, SimulatedWorker] = {}
        self._lines: dict[PoolId, dict[str, SimulatedWorker]] = {pool: {} for pool in lease_seconds}
        self._shares = dict(dispatcher.all_shares())

    # -- they come and go ------------------------------------------------------------------------

    def start(self, slots: Mapping[PoolId, int]) -> SimulatedWorker:
        """Ready at once; who waits for it to start asks `start_later`."""
        self._made += 1
        key = f"worker-{self._made}"
        session = self._dispatcher.session(key, key, None)
        session.noted()  # as with a hello
        session.runs(self._types, [])
        self._dispatcher.equip(session, dict(slots))
        worker = SimulatedWorker(session, slots, self._time.now_us())
        self._by_key[key] = worker
        self._offer(worker)
        return worker

    def start_later(self, slots: Mapping[PoolId, int]) -> None:
        self._time.after(self._overheads.worker_start_us, partial(self._start, slots))

    def _start(self, slots: Mapping[PoolId, int]) -> None:
        self.start(slots)

    def kill(self, worker: SimulatedWorker) -> None:
        """Without a word: nobody knows until its leases are over."""
        worker.dies()
        del self._by_key[worker.name]
        self._leave_lines(worker)
        longest = max(self._lease_seconds[pool] for pool in worker.slots)
        for pool in worker.slots:
            lost_us = round(self._lease_seconds[pool] * SECOND_US)
            self._time.after(lost_us, partial(self._lose, worker, pool))
        self._time.after(round(longest * SECOND_US) + 1, partial(self._forget, worker))

    def _lose(self, worker: SimulatedWorker, pool: PoolId) -> None:
        held = [one for one in worker.session.leases.values() if one.job.pool == pool]
        self._dispatcher.lost(held)

    def _forget(self, worker: SimulatedWorker) -> None:
        self._dispatcher.end_session(worker.session)
        self.serve_all()

    def close(self, worker: SimulatedWorker) -> None:
        """It gets no more jobs."""
        worker.session.drain()
        self._leave_lines(worker)

    def open(self, worker: SimulatedWorker) -> None:
        """It gets jobs again."""
        worker.session.drain(is_draining=False)
        self._offer(worker)

    def end(self, worker: SimulatedWorker) -> None:
        """It is idle, and goes."""
        worker.dies()
        del self._by_key[worker.name]
        self._leave_lines(worker)
        self._dispatcher.end_session(worker.session)

    def alive(self, pool: PoolId) -> list[SimulatedWorker]:
        return [one for one in self._by_key.values() if pool in one.slots]

    def named(self, name: str) -> SimulatedWorker | None:
        return self._by_key.get(name)

    # -- they are given jobs ----------------------------------------------------------------------

    def serve_all(self) -> None:
        """Jobs may wait: whoever stands in line is served."""
        for pool, line in self._lines.items():
            share = self._shares[pool]
            while line and share.has_work:
                worker = next(iter(line.values()))
                if not self._offer(worker):
                    break  # nothing of it is for anybody

    def _offer(self, worker: SimulatedWorker) -> bool:
        """Answers whether it was given anything."""
        before = len(worker.session.leases)
        self._dispatcher.serve(worker.session)
        is_given = len(worker.session.leases) > before
        if worker.session.outbox:
            self._deliver(worker)
        for pool in worker.slots:
            line = self._lines[pool]
            if not worker.has_room(pool):
                line.pop(worker.name, None)
            elif is_given or worker.name not in line:
                line.pop(worker.name, None)
                line[worker.name] = worker  # it calls again, behind the others
        return is_given

    def written(self, leases: Sequence[Lease]) -> None:
        """Leases are on disk: their workers hear of them."""
        for key in dict.fromkeys(lease.session.key for lease in leases):
            worker = self._by_key.get(key)
            if worker is not None:
                self._deliver(worker)

    def _deliver(self, worker: SimulatedWorker) -> None:
        more = True
        while more:
            news = self._dispatcher.news(worker.session)
            for lease in news.leases:
                self._run(worker, lease)
            more = bool(worker.session.outbox)

    def _leave_lines(self, worker: SimulatedWorker) -> None:
        for pool in worker.slots:
            self._lines[pool].pop(worker.name, None)

    # -- they run jobs -----------------------------------------------------------------------------

    def _run(self, worker: SimulatedWorker, lease: Lease) -> None:
        run_us, end = self._plan(lease)
        ways_us = self._overheads.reply_us + self._overheads.report_us
        self._time.after(ways_us + run_us, partial(self._ended, worker, lease, run_us, end))

    def _ended(
        self, worker: SimulatedWorker, lease: Lease, run_us: int, outcome: Outcome | None
    ) -> None:
        if not worker.is_alive or not self._dispatcher.stands(lease):
            return
        if outcome is None:
            self._dispatcher.succeeded([End(lease, None, run_us, b"null")])
        else:
            self._dispatcher.ended(lease, 0, outcome)
        if not worker.busy:
            worker.is_idle(self._time.now_us())
        if not worker.session.draining:
            self._offer(worker)
