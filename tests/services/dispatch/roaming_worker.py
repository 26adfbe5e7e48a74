"""A worker that speaks to every server in turn, and runs what each gives it.

It names all that it holds with every hello, and reports to whoever owns the job's shard then: what
a worker does that knows all owners. It counts what it was given, and how long no shard gave any.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tests.services.platform_room import Hand, Word, holding

from fairway.core.errors import FairwayError
from fairway.core.ids import ShardId
from fairway.runtime.random_ids import session_key
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease

RUN_SECONDS = 0.01
LONG_RUN_SECONDS = 0.7  # of one in LONG_EVERY: it is on its way when its shard moves
LONG_EVERY = 20


class Gap(NamedTuple):
    """A time in which a shard gave nothing, and what servers did with it meanwhile."""

    seconds: float
    shard: ShardId
    steps: list[str]  # each with its milliseconds since the last grant

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s on shard {self.shard}: {', '.join(self.steps) or 'no move'}"


class RoamingWorker:
    def __init__(self, slots: int = 64) -> None:
        self._key = session_key()
        self._slots = slots
        self._number = 0
        self._tasks: dict[Platform, asyncio.Task[None]] = {}
        self._met: list[Platform] = []
        self._held: dict[str, tuple[Lease, float]] = {}  # job → its lease, and when it ends
        self._words: dict[str, Word] = {}  # reports nobody has acknowledged
        self.runs = Counter[str]()  # by job
        self.given = Counter[Platform]()  # leases, by who gave them
        self.done: set[str] = set()
        self.trouble: list[str] = []
        self._last: dict[ShardId, float] = {}
        self.givers: dict[ShardId, set[Platform]] = defaultdict(set)
        self.gaps: dict[ShardId, float] = defaultdict(float)  # the longest time without a grant
        self.longest: list[Gap] = []  # each longer than all before

    def meet(self, *platforms: Platform) -> None:
        self._met += platforms
        for one in platforms:
            self._tasks[one] = asyncio.create_task(self._serve(one))

    async def part(self, *platforms: Platform) -> None:
        for one in platforms:
            task = self._tasks.pop(one)
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled() and task.exception() is not None:
                raise AssertionError("the worker failed") from task.exception()

    async def leave(self) -> None:
        await self.part(*self._tasks)

    def forget_gaps(self) -> None:
        """What comes from now on is measured."""
        self._last.clear()
        self.givers.clear()
        self.gaps.clear()
        self.longest.clear()

    async def _serve(self, platform: Platform) -> None:
        hand, must_greet = Hand(platform, short=self._slots), True
        hand.key = self._key
        while True:
            words = list(self._to_report(platform))
            running = [holding(lease) for lease, _ in self._held.values()] if must_greet else None
            try:
                news = await hand.say(
                    hello=must_greet, running=running, reports=words, wait_seconds=0.02
                )
            except (FairwayError, OSError):
                must_greet = True
                await asyncio.sleep(0.01)
                continue
            must_greet = news is None
            if news is not None:
                self._received(hand, news.leases)
                self._heard(words, set(news.recorded), set(news.refused), news.revoked)
            await asyncio.sleep(0.005)

    def _to_report(self, platform: Platform) -> Iterable[Word]:
        now = time.monotonic()
        for job, (lease, ends) in self._held.items():
            if now >= ends and platform.dispatcher.owns(lease.shard):
                yield self._words.get(job) or self._done(platform, lease)

    def _done(self, platform: Platform, lease: Lease) -> Word:
        self._number += 1
        tenant = platform.directory.name_of(lease.job.tenant)
        word = Word(self._number, lease.job.id, tenant, lease.epoch, lease.token)
        self._words[lease.job.id] = word
        return word

    def _received(self, hand: Hand, leases: Iterable[Lease]) -> None:
        now = time.monotonic()
        for lease in leases:
            job = lease.job.id
            if job in self._held and self._held[job][0].epoch == lease.epoch:
                continue  # sent again
            self.runs[job] += 1
            self.given[hand.platform] += 1
            is_long = sum(self.runs.values()) % LONG_EVERY == 0
            self._held[job] = lease, now + (LONG_RUN_SECONDS if is_long else RUN_SECONDS)
            self.givers[lease.shard].add(hand.platform)
            before = self._last.get(lease.shard, now)
            self.gaps[lease.shard] = max(self.gaps[lease.shard], now - before)
            if not self.longest or now - before > self.longest[-1].seconds:
                self.longest.append(self._gap(lease.shard, before, now))
            self._last[lease.shard] = now

    def _gap(self, shard: ShardId, since: float, until: float) -> Gap:
        since_us, until_us = int(since * 1e6), int(until * 1e6)
        steps = sorted(
            step
            for one in self._met
            for step in one.ownership.moves.between(shard, since_us, until_us)
        )
        told = [f"{step.name} at {(step.at_us - since_us) // 1000} ms" for step in steps]
        return Gap(until - since, shard, told)

    def _heard(
        self, words: Iterable[Word], recorded: set[int], refused: set[int], revoked: list[str]
    ) -> None:
        # What it has reported may be on disk by now, without an acknowledgement.
        running = self._held.keys() - self._words.keys()
        self.trouble += [f"revoked {job}" for job in revoked if job in running]
        for word in words:
            if word.n in refused:
                self.trouble.append(f"refused {word.job}")
            if word.n in recorded | refused:
                self.done.add(word.job)
                self._held.pop(word.job, None)
                self._words.pop(word.job, None)
