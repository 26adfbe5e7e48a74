"""Limits by key with two real servers: they hold while owners, shards and workers come and go."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import time
from collections.abc import Iterable, Sequence
from typing import Any

import httpx2
import pytest
from tests.acceptance.house import House, Server, free_port
from tests.acceptance.limits_checker import Limit, check_limits, runs_of
from tests.acceptance.processes import Program, until

BATCH = 250
LOOK_BACK = 1000  # lines of the ledger
DRAIN_SECONDS = 240
LONG_SECONDS = 1.0
FRESH_SECONDS = 0.4  # of runs that take as long
SIGN_SECONDS = 120  # until something is seen: on a machine that stands still at times


class LimitedLoad:
    """Jobs with limits, handed in through all servers in turn; each batch until it is accepted."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._numbers = itertools.count()
        self.limits: dict[str, Limit] = {}  # by job
        self.long: set[str] = set()  # jobs that run for a second or more

    async def hand_in(self, jobs: Iterable[tuple[Limit, float]]) -> None:
        """Each with the seconds that it runs."""
        jobs = list(jobs)
        parts = [jobs[start : start + BATCH] for start in range(0, len(jobs), BATCH)]
        for start in range(0, len(parts), 8):
            await asyncio.gather(*map(self._batch, parts[start : start + 8]))

    async def _batch(self, jobs: Sequence[tuple[Limit, float]]) -> None:
        number = next(self._numbers)
        items = [
            {"type": "nap", "pool": "short", "payload": {"seconds": run}, "limits": [limit.wire()]}
            for limit, run in jobs
        ]
        made: list[str] = []
        for turn in itertools.count(number):
            made = await self._post(turn, number, items)
            if made:
                break
            await asyncio.sleep(0.1)
        self.limits |= {job: limit for job, (limit, _) in zip(made, jobs, strict=True)}
        self.long |= {job for job, (_, run) in zip(made, jobs, strict=True) if run >= LONG_SECONDS}

    async def _post(self, turn: int, number: int, items: list[dict[str, Any]]) -> list[str]:
        """The ids, or nothing: a server that is about to go may answer so."""
        url = self._house.urls[turn % len(self._house.urls)]
        headers = {"idempotency-key": f"limited-{number}"}
        try:
            reply = await self._house.call(
                "POST", "/v1/jobs/batch", url, json={"jobs": items}, headers=headers
            )
        except httpx2.HTTPError:
            return []
        found = [item.get("id") for item in reply.json().get("items", [])]
        assert reply.status_code >= 500 or all(found), reply.text[:500]
        return found if all(found) else []


class Fleet:
    """Two servers and two workers, one of which dies now and then and has a successor."""

    def __init__(self, load: LimitedLoad, house: House, lives: int, **options: Any) -> None:
        self._load = load
        self._house = house
        self._ports = [free_port() for _ in range(lives)]  # of all servers that will be
        self._urls = [f"http://127.0.0.1:{port}" for port in self._ports]
        self._options = options
        self._workers: list[Program] = []

    async def open(self) -> None:
        servers = [self._next_server() for _ in range(2)]
        self._workers = [self._next_worker() for _ in range(2)]
        await asyncio.gather(*(server.ready() for server in servers))
        await asyncio.gather(*(worker.says("worker ready") for worker in self._workers))

    def _next_server(self) -> Server:
        return self._house.start_server(self._ports.pop(0))

    def _next_worker(self) -> Program:
        return self._house.start_worker(self._urls, **self._options)

    async def _owner(self) -> Server:
        _, url = await self._house.book.owner()
        (owner,) = [one for one in self._house.servers if one.url == url]
        return owner

    async def hand_over(self) -> None:
        """The owner stops cleanly: its shard moves at once, under jobs that run on."""
        owner = await self._owner()
        (other,) = [one for one in self._house.servers if one is not owner]
        self._house.servers.remove(owner)
        successor = self._next_server()
        owner.send(signal.SIGTERM)
        await self._owned_by(other)
        await successor.ready()

    async def kill_owner_and_worker(self) -> None:
        """At one moment: its leases are the next owner's to give up."""
        owner = await self._owner()
        (other,) = [one for one in self._house.servers if one is not owner]
        await until(lambda: any(map(self._is_busy, self._workers)), SIGN_SECONDS, "a fresh run")
        worker = next(filter(self._is_busy, self._workers), self._workers[0])
        self._workers.remove(worker)
        self._house.servers.remove(owner)
        await asyncio.gather(owner.kill(), worker.kill())
        self._workers.append(self._next_worker())
        if self._ports:
            await self._next_server().ready()
        await self._owned_by(other)

    def _is_busy(self, worker: Program) -> bool:
        """With a long run that began a moment ago: it will not be over when its worker dies."""
        runners, open_runs = set(worker.runners()), set[str]()
        for text in self._house.ledger.path.read_text().splitlines()[-LOOK_BACK:]:
            if (line := json.loads(text))["pid"] in runners and line["job"] in self._load.long:
                is_fresh = line["event"] == "begin" and time.time() - line["at"] < FRESH_SECONDS
                (open_runs.add if is_fresh else open_runs.discard)(line["run"])
        return bool(open_runs)

    async def _owned_by(self, server: Server) -> None:
        for _ in range(20 * SIGN_SECONDS):
            if (await self._house.book.owner())[1] == server.url:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{server.name} does not take over: {server.said[-2000:]}")


async def judged(house: House, load: LimitedLoad) -> str:
    """All is over: hold what runs signed against the limits."""
    verdict = await house.check(list(load.limits), drain_seconds=DRAIN_SECONDS)
    changes = await house.book.changes()
    runs = runs_of(house.ledger.lines(), changes)
    check_limits(runs, load.limits)
    given_up, terms = sum(run.was_given_up for run in runs), {change.term for change in changes}
    doors = {change.writer for change in changes if change.before is None}
    assert given_up, "no lease was given up: the test proved nothing"
    assert len(terms) >= 3, "no change of owner"
    assert len(doors) >= 2, "all came through one door"
    return (
        f"{len(set(load.limits.values()))} keys, {verdict.jobs} jobs, {len(terms)} terms,"
        f" {given_up} leases given up, {verdict.runs} runs, none beyond its limit"
    )


@pytest.mark.timeout(600)
async def test_limits_hold_while_owners_and_workers_die(
    house: House, figures: dict[str, str]
) -> None:
    load = LimitedLoad(house)
    fleet = Fleet(load, house, lives=3)
    await fleet.open()
    rate = Limit("mail", 2, 2.5)
    mutexes = [Limit(f"customer-{number}", 1) for number in range(6)]
    for limit in [rate, *mutexes]:  # of each through both doors
        await asyncio.gather(*(load.hand_in([(limit, 0.1)] * 2) for _ in range(2)))
    await until(lambda: len(house.ledger.lines()) > 8, SIGN_SECONDS, "runs")
    await fleet.hand_over()
    striking = asyncio.create_task(fleet.kill_owner_and_worker())
    while not striking.done():  # so that there is a run to strike, however slow the machine is
        await load.hand_in([(limit, 1.0) for limit in mutexes])
        await asyncio.wait({striking}, timeout=2)
    await striking
    figures["limits by key, two servers"] = await judged(house, load)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_ten_thousand_keys_under_faults(house: House, figures: dict[str, str]) -> None:
    load, dice = LimitedLoad(house), random.Random(1)
    # On a busy machine runs take longer, and their type moves to the next pool: slots there, too.
    fleet = Fleet(load, house, lives=6, pools=("short=100", "medium=100", "long=100"))
    await fleet.open()
    keys = int(os.environ.get("FAIRWAY_SOAK_KEYS", "10000"))  # fewer for a look on a busy machine
    mutexes = [Limit(f"customer-{number}", 1) for number in range(keys * 19 // 20)]
    rates = [Limit(f"host-{number}", 1 + number % 2, 6.0) for number in range(keys // 20)]
    for strike in (fleet.hand_over, fleet.kill_owner_and_worker) * 2:
        jobs = [(limit, dice.choice((0.0, 0.02, 0.1, 1.5))) for limit in mutexes]
        jobs += [(limit, 0.0) for limit in rates]
        dice.shuffle(jobs)
        handing_in = asyncio.create_task(load.hand_in(jobs))
        await until(lambda: house.ledger.path.exists(), 60, "runs")
        await asyncio.sleep(2)  # under way: what is struck is a moment like any other
        await strike()
        await handing_in
    figures["limits by key, 10 000 keys"] = await judged(house, load)
