"""Two regions, one of which goes away and comes back: nothing lost, nothing run or recorded twice.

The home of the only tenant is killed, frozen, failed over from and given back, under load; one
checker judges the histories of both regions together. The long ones: `-m slow`.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cluster import Store
from tests.acceptance.load import Load
from tests.acceptance.regions.two_regions import Region, TwoRegions, two_regions
from tests.api.cable import cable_to

from fairway import App, Handle

AWAY_SECONDS = 10.0
MOMENT_SECONDS = 2.0  # in which a worker that was frozen begins what it had been granted before


@pytest.fixture
async def regions(room: Path, store: Store) -> AsyncIterator[TwoRegions]:
    async with two_regions(room, store) as regions:
        yield regions


@pytest.fixture
async def large_regions(room: Path, store: Store) -> AsyncIterator[TwoRegions]:
    """Two servers and two workers each."""
    async with two_regions(room, store, servers=2) as regions:
        await regions.open(workers=2)
        yield regions


def producer(key: str, *regions: Region) -> App:
    """A program that is told the addresses of these."""
    url = ";".join(",".join(region.addresses) for region in regions)
    app = App("producer", url=url, api_key=key, patience="20s")

    @app.job(name="nap", pool="short")
    async def nap(seconds: float = 0.0) -> dict[str, Any]:
        return {}  # it runs elsewhere

    return app


async def test_the_other_region_holds_jobs_until_their_home_is_back(regions: TwoRegions) -> None:
    home, other = regions.home, regions.other
    await regions.open()
    app, elsewhere = (producer(home.api_key, home, other), producer(home.api_key, other))
    passed_on = await elsewhere.jobs["nap"].aenqueue()
    assert await passed_on.aresult(timeout=20)
    known = await _post(home, "one")
    # on disk as well: of a run whose end is not yet there when its server dies, nothing is promised
    assert await Handle.from_id(app, known).aresult(timeout=20)
    await home.die()
    again = await _post(other, "one")
    assert again != known, "nobody there could know the key"
    handles = [await app.jobs["nap"].aenqueue() for _ in range(3)]
    handles += await elsewhere.jobs["nap"].aenqueue_many([app.jobs["nap"].call()] * 3)
    assert await regions.held(other) == 7
    assert (await handles[0].astatus()).state == "queued"
    assert await other.book.changes() == [], "dispatched in a region that is not the home"
    await home.begin()
    for handle in handles:
        assert await Handle.from_id(elsewhere, handle.id).aresult(timeout=20)
    last = Handle.from_id(elsewhere, handles[-1].id)
    events = [event async for event in last.aevents()]
    assert events[-1].data["state"] == "succeeded", events
    assert (await Handle.from_id(app, handles[0].id).astatus()).state == "succeeded"
    for program in (app, elsewhere):
        assert (await Handle.from_id(program, again).astatus()).id == known, "one key, one job"
    verdict = await regions.check([passed_on.id, again, *(handle.id for handle in handles)])
    assert (verdict.jobs, verdict.runs) == (8, 8)
    await asyncio.gather(app.aclose(), elsewhere.aclose())


async def _post(region: Region, key: str) -> str:
    body = {"type": "nap", "pool": "short"}
    head = {"idempotency-key": key}
    reply = await region.call("POST", "/v1/jobs", region.addresses[0], json=body, headers=head)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["cut", "silent"])
async def test_the_store_of_the_home_is_away_under_load(
    room: Path, store: Store, figures: dict[str, str], way: str
) -> None:
    """Its servers answer, and can take nothing."""
    async with two_regions(room, store) as regions:
        home, other = regions.home, regions.other
        with cable_to(home.dsn) as line:
            home.dsn = line.dsn  # its book goes around
            home.settings.pop("FAIRWAY_STORE_WAIT_SECONDS")
            await regions.open()
            async with regions.load(other.addresses, rate=40) as load:
                await load.has_accepted(100, within_seconds=60)
                (line.cut if way == "cut" else line.silence)()
                gone_at = time.time()
                await asyncio.sleep(AWAY_SECONDS)
                held, back_at = await regions.held(other), time.time()
                assert await other.book.changes() == [], "dispatched where it was held"
                line.mend()
                await load.has_accepted(100, within_seconds=60)
            home.dsn = home.book.dsn
            verdict = await regions.check(load.accepted)
    assert held >= 100, load.answers
    figures[f"the home's store {way} under load"] = (
        f"{held} held in {AWAY_SECONDS:.0f} s, {_longest(load, gone_at, back_at):.2f} s the longest"
        f" call; {verdict.jobs} jobs, 0 lost, {verdict.ran_twice} began twice;"
        f" {dict(load.answers)}"
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_home_is_killed_under_load(
    large_regions: TwoRegions, figures: dict[str, str]
) -> None:
    regions, home, other = large_regions, large_regions.home, large_regions.other
    async with regions.load(other.addresses, rate=60) as load:
        await load.has_accepted(150, within_seconds=60)
        await home.die()
        died_at = time.time()
        await asyncio.sleep(AWAY_SECONDS)
        held = await regions.held(other)
        assert await other.book.changes() == [], "dispatched where it was held"
        back_at = time.time()
        await home.begin(workers=2)
        await load.has_accepted(150, within_seconds=60)
    verdict = await regions.check(load.accepted)
    assert held >= 100, load.answers
    figures["the home killed under load"] = (
        f"{held} held in {AWAY_SECONDS:.0f} s, {_longest(load, died_at, back_at):.2f} s the longest"
        f" call; {verdict.jobs} jobs, 0 lost, {verdict.runs - verdict.jobs} runs more than jobs;"
        f" {dict(load.answers)}"
    )


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("way", ["killed", "frozen"])
async def test_failover_under_load_and_the_old_home_returns(
    large_regions: TwoRegions, figures: dict[str, str], way: str
) -> None:
    regions, home, other = large_regions, large_regions.home, large_regions.other
    async with regions.load(rate=60) as load:
        await load.has_accepted(150, within_seconds=60)
        await _away(home, way)
        failed_at = time.time()
        await asyncio.sleep(3)
        moved = await regions.operate(other, "POST", "/v1/regions/eu/failover", json={"to": "us"})
        over_at = time.time()
        assert (moved["tenants"], moved["directory"]) == (1, "us"), moved
        await load.has_accepted(150, within_seconds=90)
        first = await _first_end(other, over_at)
        assert await regions.held(other, but_in_doubt="eu") == 0, "kept behind what is in doubt"
        back_at = time.time()
        await _back(home, way)
        pids = _runners(home)
        given_back_at = await _give_back(regions)
        await load.has_accepted(150, within_seconds=60)
    verdict = await regions.check(load.accepted, drain_seconds=90, lost_at=failed_at)
    figures[f"failover, the old home {way} and back"] = (
        f"first end in the new home {first:.1f} s after the failover;"
        f" {over_at - failed_at:.1f} s from the end of the old one to it;"
        f" given back after {given_back_at - back_at:.1f} s;"
        f" {verdict.jobs} jobs, 0 lost, 0 doubled, {verdict.ran_twice} began twice,"
        f" {verdict.jobs - len(set(load.accepted))} of calls that heard nothing;"
        f" {dict(load.answers)}"
    )
    when = dict(zip(load.accepted, load.accepted_at, strict=True))
    begun = _begun_at(home, pids, back_at, given_back_at)
    late = [
        job for job, at in begun.items() if when[job] > over_at or at > back_at + MOMENT_SECONDS
    ]
    assert late == [], "the old home granted jobs of a tenant that is at home elsewhere"


async def _give_back(regions: TwoRegions) -> float:
    """Until the old home has handed over what it had; when it was asked for the last time."""
    began, where = time.time(), "/v1/regions/eu/failback"
    while True:
        asked_at = time.time()
        done = await regions.operate(regions.other, "POST", where, may=(200, 409), json={})
        if done.get("tenants"):
            return asked_at
        assert asked_at - began < 60, done
        await asyncio.sleep(0.2)


async def _away(region: Region, way: str) -> None:
    if way == "killed":
        await region.die()
        return
    for program in (*region.servers, *region.workers):
        program.send_tree(signal.SIGSTOP)


async def _back(region: Region, way: str) -> None:
    if way == "killed":
        await region.begin(workers=2)
        return
    for program in (*region.workers, *region.servers):
        program.send_tree(signal.SIGCONT)


def _longest(load: Load, since: float, until: float) -> float:
    return max(call.seconds for call in load.calls if since <= call.at <= until)


async def _first_end(region: Region, since: float) -> float:
    ends = [one.at for one in await region.book.changes() if one.after == 3 and one.at > since]
    return min(ends) - since if ends else float("inf")


def _begun_at(region: Region, pids: set[int], since: float, until: float) -> dict[str, float]:
    """Jobs that workers of this region began in that time, and when."""
    return {
        line["job"]: line["at"]
        for line in region.ledger.lines()
        if line["event"] == "begin" and line["pid"] in pids and since < line["at"] < until
    }


def _runners(region: Region) -> set[int]:
    return {pid for worker in region.workers for pid in worker.runners()}
