"""The backlog in memory: a bounded window on the head of every stream.

The store keeps all queued jobs; this keeps the next few of each stream. New jobs go straight into
the window when nothing older is left in the store; otherwise the stream is marked `more` and read
later from its cursor. Memory is bounded by the limits. Losing a window loses nothing.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from itertools import chain, groupby

from fairway.core.backlog.circuit_probes import CircuitProbes
from fairway.core.backlog.counts import BacklogCounts
from fairway.core.backlog.firsts import Firsts
from fairway.core.backlog.limited import LimitedJobs
from fairway.core.backlog.parked import Entry, ParkedJobs
from fairway.core.backlog.reading import Reading
from fairway.core.backlog.runnable import RunnableStreams
from fairway.core.backlog.streams import KEY_FIELDS, Stream, StreamKey, WindowLimits, key_of
from fairway.core.backlog.tenant_backlog import TenantBacklog, TenantBacklogs
from fairway.core.backlog.underway import JobsUnderway
from fairway.core.backlog.window_reads import WindowReads
from fairway.core.backlog.windows import Windows
from fairway.core.ids import PoolId, ShardId, TenantId, TypeId
from fairway.core.job import NO_PAYLOAD, QueuedJob
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.time_slices import in_steps

STREAMS_KEPT = 64  # of a tenant that has jobs to run, though some of them are empty
JOBS_LIKE_A_STREAM = 20  # take as long to give up as one stream takes to look at
SETTLED_PER_TAKE = 4  # streams whose holds changed
ASIDE_PER_TAKE = 128  # jobs whose key is full: a fraction of a millisecond


class Backlog:
    """All streams of the shards that one owner holds."""

    def __init__(
        self,
        limits: WindowLimits,
        is_crowded: Callable[[PoolId], bool],
        tenant_shards: TenantShards | None = None,
    ) -> None:
        self._tenant_shards = tenant_shards or TenantShards(1)
        tenants = self._tenants = TenantBacklogs()
        windows = self.windows = Windows(tenants, limits)
        reading = self.reading = Reading(windows, is_crowded)
        parked = ParkedJobs()
        underway = self.underway = JobsUnderway(reading, parked.names, self._tenant_shards)
        runnable = self.runnable = RunnableStreams(tenants, windows, reading)
        self.limited = LimitedJobs(tenants, windows, reading, runnable, parked)
        self.counts = BacklogCounts(tenants)
        self.reads = WindowReads(tenants, windows, reading, runnable, underway)
        self.probes = CircuitProbes(self.counts, windows, reading, runnable, underway)
        self.has_lanes = False  # whether any tenant gave jobs a fair_key
        self._unsure: dict[str, StreamKey] = {}  # promoted, while an end was on its way to disk

    # -- jobs come ---------------------------------------------------------------------------

    def arrived(self, jobs: Iterable[QueuedJob], now_us: int) -> set[tuple[PoolId, TenantId]]:
        """New jobs are on disk; answers which (pool, tenant) may have work now."""
        woken: set[tuple[PoolId, TenantId]] = set()
        in_lanes: list[Stream] = []
        for fields, group in groupby(jobs, key=KEY_FIELDS):  # they come in runs of one stream
            key, run = StreamKey(*fields), list(group)
            stream = self._stream(key, run[0].id)
            tenant = self._tenants[key.pool, key.tenant]
            tenant.depth += len(run)
            if stream is None:
                continue  # they stay in the store until their stream has a place
            if not stream.blocked:
                woken.add((key.pool, key.tenant))
            if tenant.lanes is not None:
                in_lanes.append(stream)
            if stream.more or not self.windows.put_behind(stream, tenant, run):
                self._leave_run(stream, tenant, run)
        self.windows.filled(in_lanes, now_us)
        return woken

    def _leave_run(self, stream: Stream, tenant: TenantBacklog, run: list[QueuedJob]) -> None:
        """Jobs of one stream whose window has no room for all of them, or that was read in part."""
        first = min([job.id for job in run])
        if stream.blocked or (stream.more and first > stream.cursor):  # all of them, then
            self._leave_in_store(stream)
            if stream.reading or first <= stream.cursor:
                for job in run:
                    stream.left_out(job.id)
            return
        for job in run:
            is_behind = stream.more and job.id > stream.cursor
            if is_behind or not self.windows.put_behind(stream, tenant, [job]):
                self._leave_in_store(stream)
                stream.left_out(job.id)

    def promoted(
        self, jobs: Iterable[QueuedJob], held: Container[str], look: int, now_us: int
    ) -> set[tuple[PoolId, TenantId]]:
        """Jobs came due. Others may have seen their rows first, so each is looked for here.

        `look` is of `reading.looking()`, open since before the rows were written: what was read
        meanwhile, ran and ended is known by that.
        """
        fresh: list[QueuedJob] = []
        for key, group in groupby(jobs, key=key_of):
            found = list(group)
            fresh += self.underway.news(found, self.windows.known(key), held, look)
            self._doubt({job.id for job in found}, key, look)
        return self.arrived(fresh, now_us)

    def _doubt(self, ids: set[str], key: StreamKey, look: int) -> None:
        """Of jobs whose run ended as they came due: which of the two was last, a read can tell."""
        for job_id in ids & self.underway.unrecorded_ids:
            self._unsure[job_id] = key  # once that end is on disk
        if ended := self.reading.ended_since(look, ids):
            self._read_again(key, min(ended))

    def _read_again(self, key: StreamKey, job_id: str) -> None:
        if (stream := self._stream(key, job_id)) is not None:
            stream.rewind()
            self._leave_in_store(stream)

    def put_back(self, job: QueuedJob, now_us: int) -> None:
        """A job that was taken is free again: it keeps its place at the head."""
        stream = self._stream(key_of(job), job.id)
        self._tenants[job.pool, job.tenant].depth += 1
        if stream is not None:
            self._to_head(stream, job, now_us)

    def _to_head(self, stream: Stream, job: QueuedJob, now_us: int) -> None:
        if job.payload == NO_PAYLOAD:
            self._read_again(stream.key, job.id)  # which brings it whole
        elif stream.blocked and not self.runnable.may_run(stream.key):
            self.windows.evict(stream)
        else:  # also where the rest of the stream has to wait in the store
            self.windows.put_at_head(stream, job, now_us)

    def let_out(self, freed: Iterable[Entry], now_us: int) -> set[tuple[PoolId, TenantId]]:
        """Of runs that `limited.ended`; answers who may have work by that."""
        self.limited.woken |= (woken := self._let_out(freed, now_us))
        return woken

    def recheck_limits(self, now_us: int) -> set[tuple[PoolId, TenantId]]:
        """Who may have work since limits were last looked at, and was perhaps not served."""
        return self._let_out(self.limited.recheck(now_us), now_us) | self.limited.take_woken()

    def _let_out(self, freed: Iterable[Entry], now_us: int) -> set[tuple[PoolId, TenantId]]:
        """Jobs that stepped aside go back to the heads of their streams."""
        woken: set[tuple[PoolId, TenantId]] = set()
        for _, _, job, stream, _ in freed:
            if stream is None or not self.windows.is_ours(stream):  # it was empty, and pruned
                stream = self._stream(key_of(job), job.id)
            if stream is not None:
                self._to_head(stream, job, now_us)
                woken.add((job.pool, job.tenant))
        return woken

    def noticed(self, key: StreamKey, first: str, shard: ShardId | None = None) -> None:
        """The store has a queued job `first` at the head of this stream that nobody here knows.

        What came too late to a `shard` that its tenant left is not given out: another owns it.
        """
        if shard is not None and self._tenant_shards.of_job(key.tenant, first) != shard:
            return
        stream = self.windows.known(key)
        if stream is None:
            if not self._tenant(key).lets_in(key, may_run=self.runnable.may_run(key)):
                return
            stream = self._new_stream(key, self._tenant_shards.of_job(key.tenant, first))
        if first <= stream.cursor:
            stream.rewind()
        self._leave_in_store(stream)

    def hinted(self, key: StreamKey, first: str) -> None:
        """Another server wrote jobs to this stream, `first` the oldest of them."""
        if (stream := self._stream(key, first)) is not None:
            stream.look_back(first)
            self._leave_in_store(stream)

    def _stream(self, key: StreamKey, job_id: str) -> Stream | None:
        """None when its tenant has too many: the sweep meets it in the store."""
        stream = self.windows.known(key)
        if stream is None and self._tenant(key).has_place():
            return self._new_stream(key, self._tenant_shards.of_job(key.tenant, job_id))
        return stream

    def _tenant(self, key: StreamKey) -> TenantBacklog:
        return self._tenants.setdefault((key.pool, key.tenant), TenantBacklog())

    def _new_stream(self, key: StreamKey, shard: ShardId) -> Stream:
        tenant = self._tenant(key)
        self.has_lanes = self.has_lanes or key.lane > 0
        stream = tenant.new_stream(key, shard)
        self.runnable.made(stream)
        return stream

    def _leave_in_store(self, stream: Stream) -> None:
        stream.more = True
        stream.missed = stream.reading
        self.reading.want_more(stream)

    # -- jobs go -----------------------------------------------------------------------------

    def taker(
        self,
        pool: PoolId,
        types: Set[TypeId],
        held: Container[str],
        emptied: Callable[[TenantId], None],
        now_us: int,
        fits: Callable[[QueuedJob], bool] | None = None,
    ) -> Callable[[TenantId], QueuedJob | None]:
        """A function from a tenant to its next job that a worker with these types can run.

        It skips what is leased already, and tells when a tenant's windows are empty. A next job
        that does not fit stays where it is.
        """
        tenants, windows, low, firsts = self._tenants, self.windows, self.reading.low, Firsts(types)

        def take(tenant: TenantId) -> QueuedJob | None:
            backlog, aside = tenants.get((pool, tenant)), 0
            while backlog is not None and backlog.ready and aside < ASIDE_PER_TAKE:
                stream = (
                    backlog.only or backlog.next_stream(firsts, now_us)
                    if backlog.unsettled is None
                    else self._next_settled(backlog, firsts, now_us)
                )
                if (
                    stream is None
                    or not stream.window
                    or stream.type not in types
                    or (fits is not None and not fits(stream.window[0]))
                ):
                    return None
                job = stream.window.popleft()
                windows.jobs_held -= 1
                windows.bytes_held -= len(job.payload) + len(job.limits or b"")  # its weight
                backlog.ready = ready = backlog.ready - 1
                if stream.more and len(stream.window) <= low:
                    self.reading.want(stream)
                starts = job.id not in held and (
                    job.limits is None or self.limited.may_start(job, stream, now_us)
                )
                if backlog.lanes is not None:
                    backlog.lanes.taken(stream, job.id if starts else None, now_us)
                if starts:
                    if not ready:
                        self._left(backlog)
                        emptied(tenant)
                    elif backlog.depth > ready:
                        backlog.depth -= 1
                    return job
                aside += 1
            if backlog is not None and backlog.ready:  # others wait: it goes on in a moment
                self.limited.woken.add((pool, tenant))
            else:
                emptied(tenant)
            return None

        return take

    def _next_settled(self, backlog: TenantBacklog, firsts: Firsts, now_us: int) -> Stream | None:
        """The stream to take from, while holds changed: never one that was not looked at since.

        A few are looked at here: of a tenant with few streams nobody waits for `review`.
        """
        for _ in range(SETTLED_PER_TAKE):
            stream, unsettled = (
                backlog.only or backlog.next_stream(firsts, now_us),
                backlog.unsettled,
            )
            if stream is None or unsettled is None or stream not in unsettled.left:
                return stream
            self.runnable.settle(stream, unsettled)
        return None

    def take(
        self, pool: PoolId, tenant: TenantId, types: Set[TypeId], held: Container[str], now_us: int
    ) -> QueuedJob | None:
        """One job of one tenant; a grant of many uses `taker`."""
        return self.taker(pool, types, held, lambda tenant: None, now_us)(tenant)

    def _left(self, backlog: TenantBacklog, count: int = 1) -> None:
        """So many jobs less; an empty backlog is known to be empty, whatever was counted before."""
        if backlog.ready:
            backlog.depth = max(backlog.depth - count, backlog.ready)
        elif backlog.is_all_here:
            backlog.depth = backlog.parked
        else:
            backlog.depth = max(backlog.depth - count, 0)

    def run_ended(self, job: QueuedJob, now_us: int) -> None:
        """A job that was taken runs no more: its lane is charged for the time."""
        backlog = self._tenants.get((job.pool, job.tenant))
        if backlog is not None and backlog.lanes is not None:
            backlog.lanes.ended(job.lane, job.id, now_us)

    def ended(self, ids: Iterable[str]) -> None:
        """The ends of these jobs' runs are on disk."""
        self.underway.recorded(ids)
        self.reading.ended(ids)
        if self._unsure:
            for job_id in ids:
                if (key := self._unsure.pop(job_id, None)) is not None:
                    self._read_again(key, job_id)

    def remove(self, job_id: str, key: StreamKey) -> None:
        """A waiting job was cancelled: take it out of its window, if it is there."""
        self.remove_all([(job_id, key)])

    def remove_all(self, jobs: Sequence[tuple[str, StreamKey]]) -> None:
        """Waiting jobs were cancelled. A window is gone through once, however many go."""
        self.ended([job_id for job_id, _ in jobs])
        self.limited.gone([job_id for job_id, _ in jobs])
        of_stream: dict[StreamKey, set[str]] = defaultdict(set)
        for job_id, key in jobs:
            of_stream[key].add(job_id)
        for key, ids in of_stream.items():
            stream = self.windows.known(key)
            gone = [job for job in stream.window if job.id in ids] if stream else []
            if stream is not None and gone:
                stream.window = deque(job for job in stream.window if job.id not in ids)
                if not stream.window:
                    self.windows.drained(stream)
            for job in gone:
                self.windows.count(job, -1)
            if stream is not None:
                self.reading.want_more(stream)  # nothing is taken from it any more that would
            if (backlog := self._tenants.get((key.pool, key.tenant))) is not None:
                self._left(backlog, len(ids))

    def forget_shard(self, *shards: ShardId) -> None:
        """They have other owners now. Everybody's streams are gone through, once for all."""
        gone = set(shards)
        kept = self.underway.forget_shards(gone)
        self._unsure = {job: key for job, key in self._unsure.items() if job in kept}
        self.limited.forget_shard(gone, self._tenant_shards)
        self.runnable.drop(lambda stream: stream.shard in gone)

    def forget_tenant(self, tenant: TenantId) -> None:
        """Its rows are in another shard by now."""
        self.limited.forget_tenant(tenant)
        self.runnable.drop(lambda stream: stream.key.tenant == tenant)

    def pruning(self) -> Iterator[None]:
        """Forget streams with nothing in them, a step at a time; the next job makes them anew.

        The sweep has met all that have work in the store. In a crowd, those that had their turn
        give their places up, too: their jobs are in the store.
        """
        return in_steps(chain.from_iterable(map(self._prune, self.counts.pool_tenants())))

    def _prune(self, pool_tenant: tuple[PoolId, TenantId]) -> Iterator[int]:
        """Yields how much was looked at since; others may go on then."""
        if (backlog := self._tenants.get(pool_tenant)) is None:
            return
        is_full = not backlog.has_room
        backlog.round_over()
        is_crowded = backlog.crowd is not None
        yield 1
        if backlog.ready and len(backlog.streams) <= STREAMS_KEPT and not is_crowded:
            return  # they are in use, or will be in a moment
        for stream in list(backlog.streams.values()):
            yield 1 + len(stream.window) // JOBS_LIKE_A_STREAM
            if (
                stream.reading
                or not self.windows.is_ours(stream)
                or self.runnable.is_unsettled(stream)
            ):
                continue
            if is_crowded and (stream.blocked or (is_full and self._had_its_turn(stream))):
                self.windows.evict(stream)
            elif stream.window or stream.more:
                continue
            backlog.drop(stream)
            self.runnable.dropped(stream)
        if self._tenants.get(pool_tenant) is backlog:
            self._left(backlog, 0)
            if backlog.is_over:
                del self._tenants[pool_tenant]

    def _had_its_turn(self, stream: Stream) -> bool:
        """Where there is no place for all, a stream that was read has its own for a round."""
        has_stayed, stream.stayed = stream.stayed, True
        return has_stayed and bool(stream.window)

    def knows(self, key: StreamKey, job_id: str) -> bool:
        """Whether a head found in the store is no news: it is here, was here, or will be."""
        if job_id in self.underway:
            return True
        stream = self.windows.known(key)
        if stream is None:
            return False
        if stream.reading or (stream.more and job_id > stream.cursor):
            return True
        window = stream.window
        if window and window[0].id == job_id:
            return True  # as a rule
        return any(job.id == job_id for job in window)
