"""Cancelling at every moment of a job's life, thousands of times: one end, and no new grant.

Jobs are cancelled while they wait, between grant and start, while they run, at the very moment of
completion, and between a failed run and the next. The store itself keeps the record.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from tests.services.platform_room import MEDIUM, SHORT, Hand, holding, new, submit, until

from fairway.core.errors import Conflict
from fairway.core.ids import JobId
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease, News

JOBS, JOBS_SOAKED = 900, 6000
BATCH = 60

OTHER_ENDS = (
    Outcome(OutcomeKind.RETURNED, 1),
    Outcome(OutcomeKind.SNOOZED, 1, delay_ms=1),
    Outcome(OutcomeKind.FAILED, 1, failure=FailureClass.APP_ERROR, delay_ms=1),
)

TRACE = """
CREATE TABLE ends (id uuid, state smallint);
CREATE FUNCTION note_end() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
$$ BEGIN INSERT INTO ends VALUES (NEW.id, NEW.state); RETURN NULL; END $$;
CREATE TRIGGER note_end AFTER UPDATE ON jobs FOR EACH ROW
WHEN (NEW.state >= 3 AND NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION note_end();
"""


class Race:
    """Everybody at once: a worker that runs jobs, and somebody who cancels them."""

    def __init__(self, platform: Platform, tenant: Tenant, seed: int) -> None:
        self.platform = platform
        self.tenant = tenant
        self.dice = random.Random(seed)
        self.hand = Hand(platform, short=40, medium=20)
        self.granted: dict[str, int] = {}  # job → when its newest lease was granted
        self.said: dict[str, int] = {}  # job → when a cancellation of it was accepted
        self.answers: Counter[str] = Counter()
        self.open: set[JobId] = set()
        self.running: dict[str, Lease] = {}

    async def cancel(self, job: JobId) -> None:
        await asyncio.sleep(self.dice.choice((0.0, 0.001, 0.01, 0.03)) * self.dice.random())
        try:
            seen = await self.platform.control.cancel(self.tenant.id, job)
        except Conflict:
            self.answers["too late"] += 1
            return
        self.said[job] = self.platform.clock.now_us()
        self.answers[State(seen.record.state).label] += 1

    async def work(self) -> None:
        """Take leases and report, with pauses of a few milliseconds, until nothing is open."""
        self._take(await self.hand.say(hello=True))
        while True:
            due = [one for one in self.running.values() if self.dice.random() < 0.25]
            words = [self.hand.done(lease, self._outcome()) for lease in due]
            for lease in due:
                del self.running[lease.job.id]
            news = await self.hand.say(reports=words, wait_seconds=0.003)
            if news is None:  # the reply to a hello brings what was not named, or not heard
                held = [holding(lease) for lease in self.running.values()]
                news = await self.hand.say(hello=True, running=held)
            self._take(news)

    def _take(self, news: News | None) -> None:
        """Any reply may bring leases, that to a hello too."""
        assert news is not None
        for lease in news.leases:
            self._check_grant(lease)
            self.running[lease.job.id] = lease
        for job in news.revoked:
            self.running.pop(job, None)

    def _check_grant(self, lease: Lease) -> None:
        said_us = self.said.get(lease.job.id)
        assert said_us is None or lease.granted_us <= said_us, "granted after it was cancelled"

    def _outcome(self) -> Outcome | None:
        """Mostly success; else an end after which the job would run again."""
        if self.dice.random() < 0.5:
            return None
        return self.dice.choices(OTHER_ENDS, weights=(10, 10, 1))[0]


@pytest.mark.parametrize(
    "count", [JOBS, pytest.param(JOBS_SOAKED, marks=pytest.mark.slow)], ids=str
)
async def test_cancelling_at_any_moment_leaves_one_final_state(
    platform: Platform, tenant: Tenant, count: int
) -> None:
    async with platform.database.upkeep() as connection:
        await connection.execute(TRACE)
    race = Race(platform, tenant, seed=1)
    worker = asyncio.create_task(race.work())
    jobs: list[JobId] = []
    for _ in range(count // BATCH):
        pools = [race.dice.choice((SHORT, SHORT, MEDIUM)) for _ in range(BATCH)]
        made = await submit(platform, tenant, *(new(pool=pool) for pool in pools))
        jobs += made
        await asyncio.gather(*(race.cancel(job) for job in made), return_exceptions=False)
        assert not worker.done(), worker.result()

    async def all_ended() -> bool:
        assert not worker.done(), worker.result()
        async with platform.database.upkeep() as connection:
            return bool(await connection.fetchval("SELECT count(*) = $1 FROM ends", len(jobs)))

    await until(all_ended, 60)
    worker.cancel()
    async with platform.database.upkeep() as connection:
        ends = await connection.fetch("SELECT id::text AS id, state FROM ends")
    assert Counter(row["id"] for row in ends) == Counter(jobs), "not one end each"
    states = Counter(State(row["state"]).label for row in ends)
    assert race.answers["cancelled"] > count // 100, race.answers
    assert race.answers["running"] > count // 100, race.answers
    assert states["cancelled"] > count // 30, states
    assert states["succeeded"] > count // 30, states
