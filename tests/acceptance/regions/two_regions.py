"""Two regions of real processes on one machine, and one checker that judges both together.

Each has a database, servers and workers of its own; runs of both sign one ledger. The first is the
directory and the home of the only tenant.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.acceptance import checker
from tests.acceptance.checker import FINAL, QUEUED, SCHEDULED, SUCCEEDED, Change, Row, Verdict
from tests.acceptance.cluster import Store, house_database
from tests.acceptance.house import House, free_port
from tests.acceptance.load import Load
from tests.acceptance.processes import Program
from tests.postgres import connected

SECRET = "a-secret-of-all-regions"
POOLS = ("short=20", "medium=8")
WAITING = {SCHEDULED, QUEUED}


class Region(House):
    """A house that knows its ports before it opens: every region is told all addresses."""

    def __init__(self, name: str, room: Path, dsn: str, servers: int) -> None:
        super().__init__(room, dsn)
        self.name = name
        self.ports = [free_port() for _ in range(servers)]
        self.workers: list[Program] = []

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    async def begin(self, workers: int = 1) -> None:
        """Start all of it, or start it again after `die`."""
        for port in self.ports:
            self.start_server(port)
        self.workers = [self.start_worker(self.addresses, POOLS) for _ in range(workers)]
        await asyncio.gather(*(server.ready() for server in self.servers))

    async def die(self) -> None:
        """kill -9 of all its servers and workers at once."""
        await asyncio.gather(*(one.kill() for one in (*self.servers, *self.workers)))
        self.servers.clear()
        self.workers.clear()


class TwoRegions:
    def __init__(self, home: Region, other: Region) -> None:
        self.home, self.other = home, other
        named = ";".join(f"{one.name}={','.join(one.addresses)}" for one in (home, other))
        other.ledger = home.ledger
        for region in (home, other):
            region.settings |= {
                "FAIRWAY_REGION": region.name,
                "FAIRWAY_REGIONS": named,
                "FAIRWAY_REGION_SECRET": SECRET,
            }

    async def furnish(self) -> None:
        """The tenant and the keys are made in the directory; the other region hears of them."""
        home, other = self.home, self.other
        await home.furnish()
        other.api_key, other.worker_key = home.api_key, home.worker_key
        other.operator_key = home.operator_key
        await other.book.trace()

    async def open(self, workers: int = 1) -> None:
        await self.home.begin(workers)
        await self.other.begin(workers)
        await self.known()

    async def known(self, within_seconds: float = 20.0) -> None:
        """Wait until the other region knows the tenant's key, and every worker has said hello."""
        began = time.monotonic()
        while (
            await self.other.call("GET", "/v1/jobs", self.other.addresses[0])
        ).status_code != 200:
            assert time.monotonic() - began < within_seconds, "the directory is not known"
            await asyncio.sleep(0.1)
        for worker in (*self.home.workers, *self.other.workers):
            await worker.says("worker ready")

    async def close(self) -> None:
        await asyncio.gather(self.home.close(), self.other.close())

    def load(self, urls: Sequence[str] | None = None, **options: Any) -> Load:
        both = [*self.home.addresses, *self.other.addresses]
        return Load(urls or both, self.home.api_key, **options)

    async def operate(
        self, region: Region, method: str, path: str, may: Sequence[int] = (200,), **options: Any
    ) -> Any:
        """As an operator, at a server of this region; `may`: answers that are as good as any."""
        headers = {"authorization": f"Bearer {self.home.operator_key}"}
        async with httpx2.AsyncClient(timeout=20, trust_env=False) as http:
            url = region.addresses[0] + path
            reply = await http.request(method, url, headers=headers, **options)
        assert reply.status_code in may, reply.text
        return reply.json()

    async def held(self, region: Region, *, but_in_doubt: str = "") -> int:
        """Jobs that wait there; `but_in_doubt`: not those that were sent to this region."""
        async with connected(region.dsn) as connection:
            held = """SELECT coalesce(sum(job_count), 0) FROM held_jobs
                      WHERE told IS NULL AND coalesce(offered_to, '') <> $1"""
            return int(await connection.fetchval(held, but_in_doubt or "none"))

    async def drained(self, within_seconds: float = 60.0) -> None:
        """Nothing is held anywhere, and every job is final where it is.

        Seen twice: one that was on its way may have been missed by the first look.
        """
        began, looks = time.monotonic(), 0
        while looks < 2:
            left = await self._left()
            looks = 0 if left else looks + 1
            assert time.monotonic() - began < within_seconds, left
            await asyncio.sleep(0.1)

    async def _left(self) -> dict[str, tuple[int, int]]:
        found = {
            one.name: (await self.held(one), await one.book.unfinished())
            for one in (self.home, self.other)
        }
        return {name: left for name, left in found.items() if any(left)}

    async def check(
        self, accepted: Iterable[str], drain_seconds: float = 60.0, lost_at: float = 0.0
    ) -> Verdict:
        """Every accepted job succeeded once, in one region, whichever took it in.

        `lost_at`: when the home was lost, if its tenants were moved: what it had begun by then for
        a caller who never heard of it may have been asked for again elsewhere.
        """
        await self.drained(drain_seconds)
        books = (self.home.book, self.other.book)
        names = {await self._name_of(job) for job in accepted}
        assert len(names) == len(set(accepted)), "two calls were answered with one job"
        rows = [await book.rows() for book in books]
        assert rows[0].keys() & rows[1].keys() == set(), "one job in two regions"
        changes = [await book.changes() for book in books]
        for history in changes:
            checker.check_legality(_lives_apart(_granted_here(history)))
        check_ends(changes)
        extra = rows[0].keys() - names
        unheard = extra & await self._unheard(extra, changes[0], lost_at) if lost_at else set()
        return _judged({**rows[0], **rows[1]}, names | unheard, self.home.ledger)

    async def _unheard(
        self, extra: Iterable[str], changes: Iterable[Change], lost_at: float
    ) -> set[str]:
        """Jobs that were on their way in the home's store when it was lost, and are a second one of
        a key there: the caller got no answer, and asked the other region."""
        early = {one.job for one in changes if one.before is None and one.at < lost_at}
        begun = {one.job for one in changes if one.after not in WAITING}
        twice = "SELECT job::text, key FROM idempotency"
        async with connected(self.home.dsn) as connection:
            here = {row["job"]: row["key"] for row in await connection.fetch(twice)}
        async with connected(self.other.dsn) as connection:
            there = {row["key"] for row in await connection.fetch(twice)}
        return {one for one in early & begun if here.get(one) in there}

    async def _name_of(self, job: str) -> str:
        """A job that was held under a key which the home knew already has the home's id."""
        reply = await self.other.call("GET", f"/v1/jobs/{job}", self.other.addresses[0])
        if reply.status_code != 200:
            raise AssertionError(f"accepted and lost: {reply.text} {await self._traces(job)}")
        return str(reply.json()["id"])

    async def _traces(self, job: str) -> str:
        """All that both stores know of a job, for whoever wonders where it is."""
        found = []
        for region in (self.home, self.other):
            async with connected(region.dsn) as connection:
                for table in ("jobs", "held_jobs"):
                    rows = await connection.fetch(f"SELECT * FROM {table} WHERE id = $1", job)
                    found += [f"{region.name} {table}: {dict(row)}" for row in rows]
                sql = "SELECT key FROM idempotency WHERE job = $1"
                found += [f"{region.name} {row}" for row in await connection.fetch(sql, job)]
            changes = await region.book.changes()
            found += [f"{region.name} {one}" for one in changes if one.job == job]
        return "\n".join(found)


def _judged(rows: dict[str, Row], accepted: set[str], ledger: checker.Ledger) -> Verdict:
    assert accepted - rows.keys() == set(), "accepted and lost"
    assert rows.keys() - accepted == set(), "made without being asked for"
    return checker.check_rows(rows, ledger)


def _granted_here(changes: Iterable[Change]) -> list[Change]:
    """An epoch that a job brought along from another region says nothing of terms here."""
    found, brought = [], {}
    for change in changes:
        if change.before is None:
            brought[change.job] = change.epoch
        is_brought = change.epoch == brought.get(change.job)
        found.append(change._replace(term=1 << 40) if is_brought else change)
    return found


def _lives_apart(changes: Iterable[Change]) -> list[Change]:
    """A job that left for another region and came back, each time as it waited, begins anew here.

    That its epochs go on is judged over all regions together.
    """
    found, lives, last = [], Counter[str](), dict[str, int]()
    for change in changes:
        if change.before is None:
            assert last.get(change.job, QUEUED) in WAITING, f"it came back while it ran: {change}"
            lives[change.job] += 1
        last[change.job] = change.after
        found.append(change._replace(job=f"{change.job}, life {lives[change.job]}"))
    return found


def check_ends(regions: Iterable[Iterable[Change]]) -> None:
    """Over all regions together: each job ended once, and what came later had a later epoch."""
    by_job: dict[str, list[Change]] = defaultdict(list)
    for change in sorted((one for changes in regions for one in changes), key=lambda one: one.at):
        by_job[change.job].append(change)
    for history in by_job.values():
        ends = [change for change in history if change.after in FINAL]
        assert len(ends) <= 1, f"ended more than once: {history}"
        epochs = [change.epoch for change in history]
        assert epochs == sorted(epochs), f"an older owner's word came later: {history}"
        assert not ends or history[-1].after == SUCCEEDED, history


@asynccontextmanager
async def two_regions(room: Path, store: Store, servers: int = 1) -> AsyncIterator[TwoRegions]:
    async with house_database(store) as one, house_database(store) as two:
        (room / "eu").mkdir()
        (room / "us").mkdir()
        home, other = (
            Region("eu", room / "eu", one, servers),
            Region("us", room / "us", two, servers),
        )
        regions = TwoRegions(home, other)
        await regions.furnish()
        try:
            yield regions
        finally:
            await regions.close()
