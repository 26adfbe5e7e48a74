"""`Prefer: wait` and streams of events: a job, once it is final or another than it was.

The owner tells who waits as it records (`watchers.py`); a server that does not own a job asks the
store now and then, in one question for all of its waiters.
"""

from __future__ import annotations

from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.lifecycle import State
from fairway.runtime.clock import Clock
from fairway.runtime.loops import wait
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.lookup import JobLookup, JobSight
from fairway.services.jobs.watchers import Watchers

FAR_POLL_SECONDS = 0.25


class JobWaits:
    def __init__(
        self, lookup: JobLookup, watchers: Watchers, dispatcher: Dispatcher, clock: Clock
    ) -> None:
        self._lookup = lookup
        self._watchers = watchers
        self._dispatcher = dispatcher
        self._clock = clock
        self._terms: dict[ShardId, Term | None] = {}  # of shards open here, at the last look

    async def job_when(
        self, tenant: TenantId, job: JobId, *, wait_seconds: float, unlike: str | None = None
    ) -> JobSight:
        """The job once it is final, or differs from `unlike`, or the wait is over."""
        with self._watchers.watch(tenant, job) as changed:
            deadline_us = self._clock.now_us() + round(wait_seconds * 1e6)
            while True:
                changed.clear()
                sight = await self._lookup.job(tenant, job)
                left_seconds = (deadline_us - self._clock.now_us()) / 1e6
                if _is_answer(sight, unlike) or left_seconds <= 0 or self._watchers.is_closed:
                    return sight
                await wait(changed, left_seconds)

    async def run_once(self, now_us: int) -> float:
        """Ask the store about jobs that are watched here and owned elsewhere; a loop calls this.

        Also once about those of shards that were opened since the last time: what ended at the
        owner before was told to nobody here.
        """
        dispatcher, seen = self._dispatcher, self._terms
        self._terms = {shard: dispatcher.term_of(shard) for shard in dispatcher.open_shards()}
        own = {shard for shard, term in self._terms.items() if seen.get(shard) == term}
        homes, watched = dispatcher.homes(), self._watchers.watched()
        far = [job for tenant, job in watched if homes.of_job(tenant, job) not in own]
        self._watchers.notify(far)
        return FAR_POLL_SECONDS if far else 4 * FAR_POLL_SECONDS


def _is_answer(sight: JobSight, unlike: str | None) -> bool:
    if State(sight.record.state).is_final:
        return True
    return unlike is not None and sight.version != unlike and not _is_behind(sight, unlike)


def _is_behind(sight: JobSight, version: str) -> bool:
    """Whether this is older than the version: a run has ended, and its end is not on disk yet.

    Until it is, the store shows the job as it was before the run, or as running without progress.
    """
    state, epoch, *_, mark = version.split(".") if version.count(".") == 5 else ("", "", "")
    record = sight.record
    if epoch.isdecimal() and len(epoch) < 20 and record.epoch < int(epoch):
        return True
    is_same_run = (state, epoch) == (str(int(record.state)), str(record.epoch))
    return is_same_run and state == _RUNNING and sight.progress is None and mark != "0"


_RUNNING = str(int(State.RUNNING))
