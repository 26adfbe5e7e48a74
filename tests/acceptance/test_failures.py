"""Failures with a bounded blast radius, on real processes: `pytest -m slow` runs these."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import asyncpg
import pytest
from tests.acceptance.house import House

from fairway.core.ids import unix_ms_of

APP = "tests.acceptance.failing_jobs:app"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("spare_runners"),
]


async def batch(house: House, kind: str, count: int, **payload: Any) -> list[str]:
    jobs = [{"type": kind, "payload": payload}] * count
    reply = await house.call("POST", "/v1/jobs/batch", json={"jobs": jobs})
    assert reply.status_code == 200, reply.text
    return [item["id"] for item in reply.json()["items"]]


def p99_pickup_seconds(house: House, jobs: list[str]) -> float:
    """From acceptance to the first line of the handler."""
    first: dict[str, float] = {}
    for line in house.ledger.lines():
        if line["event"] == "begin":
            first.setdefault(line["job"], line["at"])
    waits = sorted(first[job] - unix_ms_of(job) / 1000 for job in jobs)
    return waits[len(waits) * 99 // 100]


async def trickle(house: House, count: int, seconds: float) -> list[str]:
    """Good jobs, spread over so long."""
    jobs: list[str] = []
    for _ in range(count // 10):
        jobs += await batch(house, "good", 10)
        await asyncio.sleep(seconds * 10 / count)
    return jobs


@pytest.mark.parametrize("poison", ["kills", "segfaults", "exhausts"])
async def test_a_job_that_kills_its_worker_each_time_among_1000_good_ones(
    house: House, poison: str, figures: dict[str, str]
) -> None:
    await house.open(app=APP, pools=("short=20",))
    alone = await trickle(house, 1000, 20)
    await house.book.drained(30)
    good, bad = await asyncio.gather(trickle(house, 1000, 20), batch(house, poison, 1))
    view = await house.finished(bad[0], within_seconds=60)
    assert (view["state"], view["attempts"], view["deliveries"]) == ("dead", 0, 10), view
    assert view["error"]["reason"] == "poison"
    assert [run["reason"] for run in view["history"]] == ["worker_crash"] * 9 + ["poison"]
    await house.book.drained(30)
    rows = await house.book.rows()
    assert {rows[job].state for job in good} == {3}
    p99_alone, p99_beside = p99_pickup_seconds(house, alone), p99_pickup_seconds(house, good)
    figures[f"a job that {poison}, among 1000"] = (
        f"dead after 10 deliveries; p99 pick-up of the others {p99_beside * 1000:.0f} ms,"
        f" alone {p99_alone * 1000:.0f} ms"
    )
    assert p99_beside < max(1.5 * p99_alone, p99_alone + 0.1)


async def test_a_dependency_that_is_away_under_10_000_jobs(
    house: House, figures: dict[str, str]
) -> None:
    (house.room / "away").touch()
    await house.open(app=APP, pools=("short=50",))
    jobs: list[str] = []
    for _ in range(10):
        jobs += await batch(house, "leaning", 1000)
    await asyncio.sleep(12)
    others = await batch(house, "good", 200)
    await _until(house, lambda rows: all(rows[job].state == 3 for job in others))
    rows = await house.book.rows()
    parked = [rows[job] for job in jobs]
    assert {row.attempts for row in parked} == {0}, "parked jobs use no attempts"
    (house.room / "away").unlink()
    await _until(house, lambda rows: all(rows[job].state == 3 for job in jobs), seconds=120)
    calls = Counter(line["job"] for line in house.ledger.lines() if line["event"] == "begin")
    made = sum(calls[job] for job in jobs)
    rows = await house.book.rows()
    assert {rows[job].attempts for job in jobs} == {1}
    kinds = await _events(house, "circuit.closed")
    assert kinds.count("circuit.opened") == 1
    assert kinds.count("circuit.closed") == 1
    figures["a dependency away under 10 000 jobs"] = (
        f"{made} calls, amplification {made / len(jobs):.4f}"
    )
    assert made / len(jobs) <= 1.2


async def test_a_type_that_always_fails(
    house: House, next_door: House, figures: dict[str, str]
) -> None:
    """The good type's rate beside a type that fails, against its rate beside one that does not.

    Slots are what is scarce here, not the processor: a good job takes 50 ms of one. Both rates are
    taken at the same time, in two houses that then change sides: what else the machine does, and
    which house it does it to, is no part of the comparison.
    """
    for one in (house, next_door):
        await one.open(app=APP, pools=("short=10",))
    seconds = {"broken": 0.0, "leaning": 0.0}
    for broken_at, leaning_at in ((house, next_door), (next_door, house)):
        (bad, broken_seconds), (_, leaning_seconds) = await asyncio.gather(
            _good_beside(broken_at, "broken"),
            _good_beside(leaning_at, "leaning"),  # the dependency is there: all goes well
        )
        seconds["broken"] += broken_seconds
        seconds["leaning"] += leaning_seconds
        await _assert_bounded(broken_at, bad)
    ratio = seconds["leaning"] / seconds["broken"]
    figures["a type that always fails"] = f"the other type at {ratio:.2f} of its rate"
    assert ratio >= 0.95


async def _good_beside(house: House, beside: str) -> tuple[list[str], float]:
    """Jobs of that type, and how long as many good ones as ever took to end, by the store."""
    bad: list[str] = []
    good: list[str] = []
    for _ in range(5):
        good += await batch(house, "good", 400, seconds=0.05)
        bad += await batch(house, beside, 40)
    await _until(house, lambda rows: all(rows[job].state == 3 for job in good), seconds=120)
    connection = await asyncpg.connect(house.dsn)
    try:
        ended = await connection.fetchval(
            "SELECT max(finished_at) FROM jobs WHERE id = ANY($1::uuid[])", good
        )
    finally:
        await connection.close()
    return bad, ended.timestamp() - unix_ms_of(good[0]) / 1000


async def _assert_bounded(house: House, bad: list[str]) -> None:
    """Two tries at most for each, a quarantine, and one cause."""
    await _until(house, lambda rows: all(rows[job].state == 4 for job in bad), seconds=120)
    rows = await house.book.rows()
    tries = Counter(line["job"] for line in house.ledger.lines() if line["event"] == "begin")
    assert max(tries[job] for job in bad) <= 2
    assert all(rows[job].attempts <= 2 for job in bad)
    await _events(house, "quarantine.imposed")
    groups = (await house.call("GET", "/v1/dead-letters/groups")).json()["groups"]
    assert [(group["type"], group["count"]) for group in groups] == [("broken", len(bad))]


async def _events(house: House, awaited: str) -> list[str]:
    """The kinds of all events, once there is one of this kind: they come a moment later."""
    async with asyncio.timeout(60):
        while True:
            reply = await house.call("GET", "/v1/events?limit=1000")
            kinds = [event["kind"] for event in reply.json()["events"]]
            if awaited in kinds:
                return kinds
            await asyncio.sleep(0.2)


async def _until(house: House, holds: Any, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not holds(await house.book.rows()):  # noqa: ASYNC110  # looks at the store
            await asyncio.sleep(0.4)
