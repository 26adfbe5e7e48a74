"""One run of real processes: page, commands, `/metrics` and OTLP tell what the ledger counts.

The ledger is written by the jobs themselves, and the rows are counted by a statement of this test.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from typing import Any

import asyncpg
import pytest
from playwright.async_api import Page, async_playwright
from tests.acceptance.conftest import furnished
from tests.acceptance.house import House
from tests.acceptance.processes import until
from tests.browser.conftest import chromium
from tests.otlp_receiver import receiving_otlp
from tests.postgres import Server, open_room
from tests.runtime.test_otlp import shown

from fairway.core.lifecycle import State

pytestmark = pytest.mark.slow

APP = "tests.acceptance.failing_jobs:app"
GOOD, DEAD, LEFT = 120, 9, 31  # the last are of a type that no worker runs
BY_STATE = "SELECT state, count(*) FROM jobs GROUP BY state"


async def test_what_is_shown_is_what_happened(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving_otlp() as otlp, open_room() as room:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "300")
        async with furnished(room, postgres_server) as house:
            house.settings |= {"FAIRWAY_OTEL": "true"}
            await house.open(workers=2, app=APP)
            await run_all(house)
            counted = await count(house)
            assert counted == {
                "accepted": GOOD + DEAD + LEFT,
                "good": GOOD,
                "dead": DEAD,
                "left": LEFT,
            }
            await until(lambda: by_metrics(otlp.figures) == counted, 60, f"OTLP to say {counted}")
            assert by_metrics(await metrics(house)) == counted
            assert await by_commands(house) == counted
            assert await by_pages(house) == counted


async def run_all(house: House) -> None:
    kinds = ["good"] * GOOD + ["doomed"] * DEAD
    jobs = [{"type": kind, "pool": "short"} for kind in kinds]
    jobs += [{"type": "nobody.runs.it", "pool": "long"}] * LEFT
    reply = await house.call("POST", "/v1/jobs/batch", json={"jobs": jobs})
    assert reply.json()["accepted"] == len(jobs), reply.text
    items = reply.json()["items"][: GOOD + DEAD]
    await asyncio.gather(*(house.finished(item["id"], 60) for item in items))


async def count(house: House) -> dict[str, int]:
    """By the jobs' own ledger, and by the rows; each job ran once."""
    runs = Counter(line["job"] for line in house.ledger.lines() if line["event"] == "begin")
    assert (len(runs), set(runs.values())) == (GOOD + DEAD, {1})
    connection = await asyncpg.connect(house.dsn)
    try:
        rows = {State(state): found for state, found in await connection.fetch(BY_STATE)}
    finally:
        await connection.close()
    good, dead, left = (rows.get(one, 0) for one in (State.SUCCEEDED, State.DEAD, State.QUEUED))
    return {"accepted": sum(rows.values()), "good": good, "dead": dead, "left": left}


def by_metrics(figures: dict[str, float]) -> dict[str, int]:
    def total(beginning: str, label: str = "") -> int:
        found = [name for name in figures if name.startswith(beginning) and label in name]
        return round(sum(figures[name] for name in found))

    return {
        "accepted": total("fairway_jobs_accepted_total"),
        "good": total("fairway_outcomes_recorded_total{", 'outcome="succeeded"'),
        "dead": total("fairway_dead_letters_total"),
        "left": total("fairway_jobs_queued{"),
    }


async def metrics(house: House) -> dict[str, float]:
    return shown((await house.call("GET", "/metrics")).content)


async def by_commands(house: House) -> dict[str, int]:
    top = await command(house, house.operator_key, "top", "--once", "--json")
    listed = (await command(house, house.api_key, "jobs", "ls", "--limit", "200", "--json"))["jobs"]
    dead = (await command(house, house.api_key, "dead", "ls", "--limit", "200", "--json"))["jobs"]
    states = Counter(job["state"] for job in listed)
    waiting = sum(pool["queued"] for pool in top["pools"])
    assert waiting == states["queued"]
    good = states["succeeded"]
    return {"accepted": len(listed), "good": good, "dead": len(dead), "left": waiting}


async def command(house: House, key: str, *words: str) -> Any:
    asked = [sys.executable, "-m", "fairway", *words, "--url", house.urls[0], "--key", key]
    process = await asyncio.create_subprocess_exec(*asked, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0, asked
    return json.loads(said)


async def by_pages(house: House) -> dict[str, int]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**chromium())
        context = await browser.new_context(base_url=house.urls[0])
        page = await context.new_page()
        waiting = await on_page(page, house.operator_key, "/ui/", r"Waiting\n(\d+)\n")
        used = await on_page(
            page, house.api_key, "/ui/usage", r"usage\tshort\t(?:good|doomed)\t(\d+)"
        )
        await browser.close()
    dead, good = sorted(used)
    left = sum(waiting)
    return {"accepted": dead + good + left, "good": good, "dead": dead, "left": left}


async def on_page(page: Page, key: str, path: str, figure: str) -> list[int]:
    """Every such figure of a page, once there is one that is not nothing."""
    await sign_in(page, key)
    await page.goto(path)
    async with asyncio.timeout(60):
        while True:
            found = [int(one) for one in re.findall(figure, await page.inner_text("main"))]
            if any(found):
                return found
            await asyncio.sleep(0.2)


async def sign_in(page: Page, key: str) -> None:
    reply = await page.context.request.post("/session", data={"key": key})
    assert reply.status == 200, await reply.text()
