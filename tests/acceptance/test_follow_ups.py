"""Jobs that start jobs: with a worker key, for whichever tenant's run it is, in every run mode; and
killed at every moment, the follow-ups are there exactly if the outcome is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import until
from tests.acceptance.proxy import Proxy

from fairway import App, Conflict, Handle
from fairway.core.ids import JobId, shard_of
from fairway.core.lifecycle import State
from fairway.core.tenant import TenantSettings
from fairway.runtime.random_ids import new_api_key
from fairway.store.registry import tenants

APP = "tests.acceptance.flow_jobs:app"
MODES = {"loop": 5, "inline": 3, "thread": 4, "process": 3, "isolated": 3}
POOLS = {"loop": "short", "inline": "short", "thread": "medium", "process": "medium"}


async def another_tenant(house: House, name: str) -> str:
    """Its key."""
    key = new_api_key("tenant")
    connection = await asyncpg.connect(house.dsn)
    try:
        tenant = await tenants.add_tenant(connection, name, TenantSettings(tier="enterprise"))
        assert tenant is not None
        stored = tenants.StoredKey(key.id, key.scope, tenant.id, key.secret_hash)
        await tenants.add_key(connection, stored)
    finally:
        await connection.close()
    return key.text


def as_(key: str) -> dict[str, Any]:
    return {"headers": {"authorization": f"Bearer {key}"}}


async def test_what_a_run_starts_is_its_own_tenants_in_every_mode(house: House) -> None:
    beta = await another_tenant(house, "beta")
    await house.open(app=APP, pools=("short=20", "medium=8", "long=2"))
    acme, house.api_key = house.api_key, beta
    jobs = {mode: await house.post(mode, POOLS.get(mode, "long")) for mode in MODES}
    for mode, job in jobs.items():
        view = await house.finished(job, 40)
        assert (view["state"], view["children"]) == ("succeeded", MODES[mode]), (mode, view)
        page = (await house.call("GET", f"/v1/jobs/{job}/children")).json()
        assert [one["id"] for one in page["jobs"]] == sorted(view["result"], reverse=True), mode
        for child in view["result"]:
            seen = await house.finished(child)
            assert (seen["parent_id"], seen["result"].split()[0]) == (job, "beta"), mode
            hidden = await house.call("GET", f"/v1/jobs/{child}", **as_(acme))
            assert hidden.status_code == 404
    listed = (await house.call("GET", "/v1/jobs?limit=200", **as_(acme))).json()["jobs"]
    assert listed == []
    await asked_by_the_sdk(App("asker", url=house.urls[0], api_key=beta), jobs["loop"])
    await refusals(house)


async def asked_by_the_sdk(app: App, job: str) -> None:
    handle = Handle.from_id(app, job)
    children = await handle.achildren()
    assert [one.state for one in children] == ["succeeded"] * MODES["loop"]
    assert {one.parent_id for one in children} == {job}
    with pytest.raises(Conflict):
        await handle.acancel()
    assert (await handle.acancel(children=True)).children == MODES["loop"]
    await app.aclose()


async def refusals(house: House) -> None:
    """What is refused is told to the handler, and a run that fails starts nothing."""
    view = await house.finished(await house.post("questions", "short"))
    said = ["NOT_STARTED", "TOO_MANY_FOLLOW_UPS", "leaf: an idempotency_ke"]
    assert (view["result"], view["children"]) == (said, 1)
    view = await house.finished(await house.post("fails", "short"))
    assert (view["state"], view["children"]) == ("dead", 0)
    view = await house.finished(await house.post("late", "short", folder=str(house.room)))
    (house.room / "over").touch()
    await until((house.room / "told").exists, 20, "the word that the run is over")
    assert (house.room / "told").read_text() == "RUN_IS_OVER"


class Family(NamedTuple):
    state: State
    children: int | None
    rows: int


class Witness:
    """Looks all the time: a success without its follow-ups, or they without it, is never seen."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection

    async def look(self, job: str) -> Family:
        row = await self._connection.fetchrow(  # of one shard: one moment, on a cluster, too
            "SELECT state, children,"
            " (SELECT count(*) FROM jobs WHERE shard = $2 AND parent = $1) AS rows"
            " FROM jobs WHERE shard = $2 AND id = $1", job, shard_of(JobId(job)),
        )  # fmt: skip
        seen = Family(State(row["state"]), row["children"], row["rows"])
        if seen.state is State.SUCCEEDED:
            assert seen == (State.SUCCEEDED, 10, 10)
        else:
            assert (seen.children, seen.rows) == (None, 0), seen
        return seen

    async def succeeds(self, job: str, within_seconds: float = 40) -> None:
        async with asyncio.timeout(within_seconds):
            while True:
                if (await self.look(job)).state is State.SUCCEEDED:
                    return
                await asyncio.sleep(0.02)


async def begun(room: Path, job: str) -> None:
    """Whichever delivery: the first may have gone to a call that a killed worker left open."""
    await until(lambda: any(room.glob(f"{job}.[0-9]*")), 40, f"a delivery of {job}")


class Moments:
    """Two victims at a time: one whose outcome goes to the worker's journal, one whose does not."""

    def __init__(self, house: House, witness: Witness) -> None:
        self._house, self._room, self._witness = house, house.room, witness

    async def victims(self, **how: bool) -> list[str]:
        folder, post = str(self._room), self._house.post
        return [await post("victim", pool, folder=folder, **how) for pool in ("medium", "short")]

    async def held(self) -> list[str]:
        """They have enqueued, and end when they are let go."""
        jobs = await self.victims(waits=True)
        await asyncio.gather(*(begun(self._room, job) for job in jobs))
        return jobs

    def let_go(self, jobs: list[str]) -> None:
        for job in jobs:
            (self._room / f"{job}.go").touch()

    async def look(self, jobs: list[str]) -> list[State]:
        return [(await self._witness.look(job)).state for job in jobs]

    async def succeed(self, jobs: list[str]) -> None:
        for job in jobs:
            await self._witness.succeeds(job)


async def test_killed_at_any_moment_they_are_there_exactly_if_the_outcome_is(house: House) -> None:
    server = house.start_server()
    await server.ready()
    proxy = Proxy(server.url, seed=1)
    await proxy.open()
    connection = await asyncpg.connect(house.dsn)
    moments = Moments(house, Witness(connection))
    worker = house.start_worker([proxy.url], app=APP)
    await worker.says("worker ready")
    try:
        # In the handler, after it enqueued.
        await moments.succeed(await moments.victims(dies=True))
        # Before the report is sent: nobody hears what is said from now on.
        jobs = await moments.held()
        proxy.drop_request = 1.0
        before = proxy.fates["request lost"]
        moments.let_go(jobs)
        await until(lambda: proxy.fates["request lost"] > before, 20, "a call that is lost")
        await worker.kill()
        assert State.SUCCEEDED not in await moments.look(jobs)
        proxy.drop_request = 0.0
        worker = house.start_worker([proxy.url], app=APP)
        await moments.succeed(jobs)
        # After the report is sent, before the answer.
        jobs = await moments.held()
        proxy.drop_reply = 1.0
        moments.let_go(jobs)
        await moments.succeed(jobs)
        await worker.kill()
        proxy.drop_reply = 0.0
        worker = house.start_worker([proxy.url], app=APP)
        # What that one inherits is said again meanwhile. The server dies with a report on its way.
        jobs += await moments.held()
        moments.let_go(jobs[2:])
        await server.kill()
        await moments.look(jobs)
        server = house.restart(server)
        await server.ready()
        await moments.succeed(jobs)
    finally:
        proxy.close()
        await connection.close()
