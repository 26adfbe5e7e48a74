"""Moves jobs whose time has come to the backlog, under caps; the database's clock decides.

A round finds the *bunches* with due jobs (one tenant in one second), shares the allowance of the
moment out evenly among their tenants, and moves that many. It starts where the last one found the
oldest due job, not at the head of the index, where moved rows leave their traces; from time to
time it looks from the head all the same, for a job that was written late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from fairway.core.ids import FIRST_SHARD, ShardId, TenantId, Term
from fairway.core.scheduling.promotion import Allowances, Bunch, PromotionCaps
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.bad_rows import Aside, each_apart, in_each_shard
from fairway.services.busy_shards import due_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.store import promotion as store
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.error_classes import reason_of

log = logger("promoter")

BUNCHES_PER_ROUND = 200
REST_MAX_SECONDS = 1.0
REST_CAPPED_SECONDS = 0.025  # jobs are due and the allowance is used up
REST_MIN_SECONDS = 0.005
LOOK_BACK_SECONDS = 60  # late commits are found this far back, in every round
FROM_HEAD_EVERY_US = 10_000_000  # and however far back, this often

HEAD = (-1, TenantId(-1))


class Progress:
    """Where the promoter stands in one shard, under one term."""

    def __init__(self, term: Term, now_us: int) -> None:
        self.term = term
        self.cursor: tuple[int, TenantId] | None = None  # in the middle of a pass over many bunches
        self.since = HEAD
        self.from_head_us = now_us
        self.aside: Aside[tuple[int, TenantId]] = Aside()  # by second and tenant

    def start(self, now_us: int) -> tuple[int, TenantId]:
        if self.cursor is not None:
            return self.cursor
        if now_us >= self.from_head_us:
            self.from_head_us = now_us + FROM_HEAD_EVERY_US
            return HEAD
        return self.since


class Round(NamedTuple):
    rest_seconds: float
    oldest_age_ms: int


class Promoter:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        metrics: Metrics,
        clock: Clock,
        caps: PromotionCaps,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._clock = clock
        self._allowances = Allowances(caps, clock.now_us())  # of all shards here together
        self._first = FIRST_SHARD  # of the last round
        self._progress: dict[ShardId, Progress] = {}

    async def run_once(self, now_us: int) -> float:
        soon = await due_shards(self._database, "scheduled", self._dispatcher.open_shards())
        rounds = await in_each_shard(self._in_turn(soon.due), self._round)
        oldest_ms = max((found.oldest_age_ms for found in rounds), default=0)
        self._metrics.oldest_due.set(oldest_ms / 1000)
        rests = [found.rest_seconds for found in rounds]
        if soon.seconds is not None:
            rests.append(max(soon.seconds, REST_MIN_SECONDS))
        return min([REST_MAX_SECONDS, *rests])  # a shard may come, or a hint be lost, meanwhile

    def _in_turn(self, shards: Sequence[ShardId]) -> list[ShardId]:
        """Each is the first once: who comes first may use the allowance up."""
        turn = sorted(shards, key=lambda shard: (shard <= self._first, shard))
        self._first = turn[0] if turn else self._first
        return turn

    async def _round(self, shard: ShardId) -> Round:
        term = self._dispatcher.term_of(shard)
        if term is None:
            return Round(REST_MAX_SECONDS, 0)
        now_us = self._clock.now_us()
        progress = self._progress.get(shard)
        if progress is None or progress.term != term:
            progress = self._progress[shard] = Progress(term, now_us)
        start = progress.start(now_us)
        async with self._database.hot(at=shard) as connection:
            bunches = await store.due_bunches(connection, shard, start, BUNCHES_PER_ROUND)
            moved, is_capped = await self._promote(connection, shard, progress, bunches)
            # What was moved may have hidden what comes next in its bunch: look again at once.
            is_all = len(bunches) < BUNCHES_PER_ROUND and not moved
            last = (bunches[-1].second, bunches[-1].tenant) if bunches else start
            following = await store.seconds_to_next(connection, shard, last) if is_all else 0.0
        _remember(progress, bunches, start)
        return Round(
            _rest_seconds(bunches, following, is_capped=is_capped),
            max((bunch.age_ms for bunch in bunches), default=0) if is_capped else 0,
        )

    async def _promote(
        self, connection: Connection, shard: ShardId, progress: Progress, bunches: list[Bunch]
    ) -> tuple[int, bool]:
        """Move what may be moved; answers how many, and whether more is due than that."""
        now_us, aside = self._clock.now_us(), progress.aside
        due = [
            bunch
            for bunch in bunches
            if bunch.age_ms >= 0 and not aside.holds((bunch.second, bunch.tenant), now_us)
        ]
        shares = self._allowances.allot({bunch.tenant for bunch in due}, now_us)
        if not shares:
            return 0, bool(due)
        promoted = Counter[TenantId]()

        async def move(some: Sequence[Bunch]) -> None:
            tenants = {bunch.tenant for bunch in some}
            left = {one: n for one in tenants if (n := shares.get(one, 0) - promoted[one]) > 0}
            if not left:
                return
            with self._dispatcher.looking() as look:
                jobs = await store.promote_due(connection, shard, progress.term, some, left)
                if jobs:
                    self._dispatcher.promoted(shard, jobs, look)
            promoted.update(job.tenant for job in jobs)

        await each_apart(due, move, partial(self._set_aside, progress))
        self._allowances.spend(promoted, self._clock.now_us())
        self._metrics.promoted.inc(promoted.total())
        tenants = {bunch.tenant for bunch in due}
        is_capped = any(promoted[tenant] >= shares.get(tenant, 0) for tenant in tenants)
        return promoted.total(), is_capped

    def _set_aside(self, progress: Progress, bunch: Bunch, error: Exception) -> None:
        """One of them cannot be moved: others of that tenant and second wait, and nobody else."""
        progress.aside.put((bunch.second, bunch.tenant), self._clock.now_us())
        self._metrics.rows_set_aside.labels("due jobs").inc()
        log.error(
            "due jobs cannot be queued; set aside",
            tenant=bunch.tenant,
            second=bunch.second,
            error=reason_of(error),
        )


def _remember(progress: Progress, bunches: list[Bunch], start: tuple[int, TenantId]) -> None:
    """Where the next round begins: after this one if it was cut short, else at the oldest."""
    if len(bunches) >= BUNCHES_PER_ROUND:
        progress.cursor = (bunches[-1].second, bunches[-1].tenant)
        return
    if progress.cursor is None and bunches:
        newest = max(bunch.second + bunch.age_ms // 1000 for bunch in bunches)
        progress.since = (min(bunches[0].second, newest - LOOK_BACK_SECONDS) - 1, HEAD[1])
    progress.cursor = None


def _rest_seconds(bunches: list[Bunch], following: float | None, *, is_capped: bool) -> float:
    rest = REST_MAX_SECONDS if following is None else following
    soon = [-bunch.age_ms / 1000 for bunch in bunches if bunch.age_ms < 0]
    rest = min([rest, *soon])
    if is_capped:
        return REST_CAPPED_SECONDS
    return min(max(rest, REST_MIN_SECONDS), REST_MAX_SECONDS)
