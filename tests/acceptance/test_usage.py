"""What is billed is what real workers said of their runs, to the microsecond."""

from __future__ import annotations

import json
import random
import signal
from typing import Any

import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import until
from tests.acceptance.proxy import Proxy

APP = "tests.acceptance.billed_jobs:app"
KINDS = [
    ("billed.well", "short"),
    ("billed.second", "short"),
    ("billed.never", "short"),
    ("billed.late", "medium"),
    ("billed.exit", "long"),
    ("billed.back", "medium"),
]
JOBS = 60


def recorded(proxy: Proxy) -> dict[tuple[str, int], dict[str, Any]]:
    """What workers said and the server did not refuse, by job and epoch; also what a worker said
    that was killed before it heard the answer."""
    said: dict[tuple[str, int], dict[str, Any]] = {}
    refused: set[tuple[str, int]] = set()
    for request, reply in proxy.answered:
        asked, answered = _body(request), _body(reply)
        session = asked.get("session", "")
        for report in asked.get("reports", []):
            said[session, report["n"]] = report
        refused |= {(session, n) for n in answered.get("refused", [])}
    return {(one["job"], one["epoch"]): one for key, one in said.items() if key not in refused}


def _body(message: bytes) -> dict[str, Any]:
    text = message.partition(b"\r\n\r\n")[2]
    found: dict[str, Any] = json.loads(text) if text.startswith(b"{") else {}
    return found


def billed_of(proxy: Proxy) -> dict[tuple[str, int], int]:
    return {key: one["ran_us"] for key, one in recorded(proxy).items() if is_billed(one)}


def is_billed(report: dict[str, Any]) -> bool:
    """A process that died by nobody knows whose doing ran for no time, says its keeper."""
    is_measured = report.get("failure") != "worker_crash" or report["ran_us"] > 0
    return report["kind"] != "returned" and is_measured


@pytest.mark.slow
async def test_slot_time_is_the_sum_of_what_workers_measured(
    house: House, figures: dict[str, str]
) -> None:
    """Successes, retries, deaths, timeouts, hand-backs, crashes; replies lost, so that batches are
    sent twice; a worker killed, and one drained, in the middle."""
    server, dice = house.start_server(), random.Random()
    await server.ready()
    proxy = Proxy(server.url, seed=dice.getrandbits(32))
    await proxy.open()
    try:
        workers = [house.start_worker([proxy.url], app=APP) for _ in range(2)]
        for worker in workers:
            await worker.says("worker ready")
        proxy.drop_reply = 0.1
        jobs = []
        for number in range(JOBS):
            kind, pool = dice.choice(KINDS)
            takes = kind in ("billed.well", "billed.second", "billed.never")
            payload = {"seconds": dice.random() / 10} if takes else {}
            jobs.append(await house.post(kind, pool, **payload))
            if number == JOBS // 3:
                await workers[0].kill()
                workers[0] = house.start_worker([proxy.url], app=APP)
            if number == JOBS // 2:
                workers[1].send(signal.SIGTERM)
                workers[1] = house.start_worker([proxy.url], app=APP)
        proxy.drop_reply = 0.0
        for job in jobs:
            await house.finished(job, within_seconds=60)
        usage = (await house.call("GET", "/v1/usage?group=pool,type")).json()
        attempts_told = usage["total"]["attempts"]
        await until(
            lambda: len(billed_of(proxy)) >= attempts_told, 30, "the answers to the last reports"
        )
        runs = await attempts(house)
    finally:
        proxy.close()
    billed = billed_of(proxy)
    assert usage["total"]["billed_us"] == sum(billed.values())
    assert usage["total"]["attempts"] == len(billed)
    assert usage["total"]["jobs"] == JOBS
    assert sorted(run["ran_us"] for run in runs if run["billed"]) == sorted(billed.values())
    crashed = [one for one in recorded(proxy).values() if one.get("failure") == "worker_crash"]
    assert all(one["ran_us"] >= 50_000 for one in crashed), "who kills its process pays for that"
    assert usage["total"]["unbilled_us"] > 0, "no run was cut short: the test proved nothing"
    figures["billed"] = f"{len(billed)} runs of {JOBS} jobs, {sum(billed.values())} us"


async def attempts(house: House) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        path = "/v1/usage/attempts" + (f"?cursor={cursor}" if cursor else "")
        page = (await house.call("GET", path)).json()
        found, cursor = found + page["attempts"], page["next_cursor"]
    return found
