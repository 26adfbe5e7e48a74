"""A whole server in a test: its services on a fresh database, short times, and a worker's hand.

Loops run as they do in production unless a test stops them; nothing of ours is replaced.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairway.core.events.event import Event
from fairway.core.events.event_filter import EventFilter, parse_kinds
from fairway.core.ids import Epoch, JobId, PoolId, TenantId
from fairway.core.job_type import TypeFacts
from fairway.core.lifecycle import State
from fairway.core.pools import PoolTable
from fairway.core.run.follow_ups import WantedFollowUps
from fairway.core.run.outcome import Outcome
from fairway.core.tenant import Tenant, TenantSettings
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import session_key
from fairway.runtime.settings import Settings
from fairway.services.jobs.far_runs import no_peers
from fairway.services.jobs.lookup import JobSight
from fairway.services.platform import Platform
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_names import TypeNames
from fairway.services.sessions.calls import Call
from fairway.services.sessions.hello import Hello
from fairway.services.sessions.sessions import Holding, Lease, News
from fairway.services.submit.submission_group import Accepted, NewJob
from fairway.store.connections.database import Database

TERM_SECONDS = 0.6
HANG_SECONDS = 30.0  # no measure of speed: a machine that is busy with others may take its time
FOLDER = tempfile.TemporaryDirectory()  # gone at exit; tests that store objects bring their own
QUICK = Settings(
    shard_count=1,  # tests of many say so
    data_dir=Path(FOLDER.name),
    term_seconds=TERM_SECONDS,
    adoption_seconds=0.2,
    lazy_running_ms=40,
    store_wait_seconds=10.0,  # a busy machine may stand still for long
    lease_seconds={"short": 0.8, "medium": 0.8, "long": 0.8},
)
SHORT, MEDIUM, LONG = PoolId(1), PoolId(2), PoolId(3)


@asynccontextmanager
async def platform_on(dsn: str, settings: Settings = QUICK) -> AsyncIterator[Platform]:
    """A running server that owns whatever is free, from start to a clean stop."""
    platform = await Platform.prepare(dsn, settings, SystemClock(), no_peers)
    await platform.start()
    try:
        yield platform
    finally:
        await stopped(platform)


async def stopped(platform: Platform, seconds: float = 15.0) -> None:
    """A clean stop, and soon; `wait_for` would wait for one that does not heed its end."""
    stopping = asyncio.create_task(platform.stop())
    await asyncio.wait({stopping}, timeout=seconds)
    assert stopping.done(), "the platform does not stop"
    await stopping


@asynccontextmanager
async def owner_on(dsn: str, settings: Settings = QUICK) -> AsyncIterator[Platform]:
    """As `platform_on`, and every shard is open."""
    async with platform_on(dsn, settings) as platform:
        await until(lambda: owns_all(platform))
        yield platform


def owns_all(platform: Platform) -> bool:
    return len(platform.dispatcher.shards.open) == platform.cluster.shard_count


def another_directory(
    database: Database, on_tenant: Callable[[Tenant], None] = lambda tenant: None
) -> Directory:
    """As another server has it, which runs nothing."""

    async def nothing_goes_on(*told: Any) -> None:
        return None

    return Directory(
        database,
        PoolTable(),
        TypeNames(database),
        on_tenant=on_tenant,
        on_revoked=nothing_goes_on,
        on_states=nothing_goes_on,
    )


async def freeze(platform: Platform) -> None:
    """Stop every loop, as if the process were suspended: nothing is handed over."""
    for loop in platform.loops.values():
        await loop.stop()


async def kill(platform: Platform) -> None:
    """End a server without a word to anybody."""
    await freeze(platform)
    platform.database.terminate()


async def until(
    holds: Callable[[], bool] | Callable[[], Awaitable[bool]], seconds: float = HANG_SECONDS
) -> None:
    """Wait for a fact, looking often; fail when it does not come."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.005)


async def add_tenant(platform: Platform, name: str = "acme", depth_limit: int = 10_000) -> Tenant:
    settings = TenantSettings(tier="enterprise", weight=10, depth_limit=depth_limit)
    tenant = await platform.directory.add_tenant(name, settings)
    assert tenant is not None
    return tenant


def new(job_type: str = "work", pool: int = SHORT, **changes: Any) -> NewJob:
    return NewJob(job_type, PoolId(pool), 5, None, b"{}")._replace(**changes)


async def submit(platform: Platform, tenant: Tenant, *jobs: NewJob) -> list[JobId]:
    verdicts = await platform.submissions.submit(tenant, jobs or [new()])
    return [verdict.id for verdict in verdicts if isinstance(verdict, Accepted)]


async def sight(platform: Platform, tenant: Tenant, job: JobId) -> JobSight:
    return await platform.job_lookup.job(tenant.id, job)


async def stored(platform: Platform, job: str) -> tuple[State, int]:
    """The state and epoch in the job's row, whatever its owner knows beyond that."""
    async with platform.database.background() as connection:
        row = await connection.fetchrow("SELECT state, epoch FROM jobs WHERE id = $1", job)
    return State(row["state"]), row["epoch"]


@dataclass
class Word:
    """A report of the hand's: a success when it names no outcome."""

    n: int
    job: str
    tenant: str
    epoch: Epoch
    token: str
    outcome: Outcome | None = None
    ran_us: int = 1000
    result: bytes = b"null"
    wants: WantedFollowUps | None = None
    kind: str = field(init=False)

    @property
    def number(self) -> int:
        return self.n

    def __post_init__(self) -> None:
        self.kind = "succeeded" if self.outcome is None else self.outcome.kind.value


class Hand:
    """A worker, reduced to what it says."""

    def __init__(self, platform: Platform, types: Sequence[str] = ("work",), **slots: int) -> None:
        self.platform = platform
        self.key = session_key()
        self.types = types
        self.slots = slots or {"short": 4}
        self.tenant: TenantId | None = None
        self.only_tenants: frozenset[TenantId] | None = None
        self.api_key = ""  # the id of the key that it shows
        self.build = ""
        self.retry_bounds: dict[str, int] = {}  # what it asks for each of its types
        self.names_all = False  # `running` is all that runs, also without a hello
        self.number = 0
        self.call = 0  # of the next call, for tests that count them

    async def say(
        self,
        *,
        hello: bool = False,
        running: list[Holding] | None = None,
        reports: Sequence[Word] = (),
        wait_seconds: float = 0,
        draining: bool = False,
        goodbye: bool = False,
    ) -> News | None:
        types = dict.fromkeys(self.types, TypeFacts())
        bounds = dict.fromkeys(self.types, self.retry_bounds)
        greeting = None
        if hello:
            greeting = Hello(types, self.slots, self.build, retry_bounds=bounds)
        return await self.platform.exchange.call(
            Call(
                self.key, self.call, "hand", self.tenant, greeting, running,
                [word for word in reports if word.outcome is None],
                [(word, word.outcome) for word in reports if word.outcome is not None],
                wait_seconds, draining, goodbye, self.names_all, api_key=self.api_key,
                only_tenants=self.only_tenants,
                follow_ups={one.n: one.wants for one in reports if one.wants is not None},
            )
        )  # fmt: skip

    async def take(self, count: int = 1, seconds: float = HANG_SECONDS) -> list[Lease]:
        """Say hello and wait until so many leases came."""
        news = await self.say(hello=True)
        assert news is not None
        leases = list(news.leases)
        async with asyncio.timeout(seconds):
            while len(leases) < count:
                news = await self.say(wait_seconds=0.2)
                assert news is not None
                leases += news.leases
        return leases

    def done(self, lease: Lease, outcome: Outcome | None = None, **changes: Any) -> Word:
        self.number += 1
        tenant = self.platform.directory.name_of(lease.job.tenant)
        word = Word(self.number, lease.job.id, tenant, lease.epoch, lease.token, outcome)
        return replace(word, **changes)

    async def report(
        self, *reports: Word, seconds: float = HANG_SECONDS
    ) -> tuple[set[int], set[int]]:
        """Report until every number was answered: those recorded, and those refused."""
        recorded: set[int] = set()
        refused: set[int] = set()
        waiting = list(reports)
        async with asyncio.timeout(seconds):
            while waiting:
                news = await self.say(reports=waiting, wait_seconds=0.2, draining=True)
                assert news is not None
                recorded.update(news.recorded)
                refused.update(news.refused)
                waiting = [r for r in waiting if r.number not in recorded | refused]
        return recorded, refused


async def open_pair(dsn: str, settings: Settings = QUICK) -> tuple[Platform, Platform]:
    """An owner, and a standby that waits for it to go."""
    pair = []
    for _ in range(2):
        platform = await Platform.prepare(dsn, settings, SystemClock(), no_peers)
        await platform.start()
        pair.append(platform)
        await until(lambda: owns_all(pair[0]))
    return pair[0], pair[1]


async def told_events(platform: Platform, tenant: Tenant, kinds: str = "") -> list[Event]:
    """A tenant's log, with all that was written to it by now, the oldest first."""

    async def is_all_moved() -> bool:
        for shard in platform.dispatcher.terms():
            platform.events.sequencer.written(shard)
        await platform.events.sequencer.run_once(platform.clock.now_us())
        async with platform.database.background() as connection:
            return not await connection.fetchval("SELECT EXISTS (SELECT FROM event_inbox)")

    await until(is_all_moved)
    wanted = EventFilter(parse_kinds(kinds))
    return (await platform.events.reader.following(tenant.id, wanted, 0, 1000)).events


def holding(lease: Lease) -> Holding:
    return Holding(lease.job.id, lease.job.tenant, lease.epoch, lease.token)
