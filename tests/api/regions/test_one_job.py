"""Calls on one job by its id reach the region that has it, whatever they do with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from tests.api.dashboard.test_sign_ins import signed_in
from tests.api.house import problem
from tests.api.regions.two_houses import TwoRegions, two_regions, until
from tests.api.worker import HandWorker
from tests.postgres import Server

NO_JOB = "01a1dce5-f055-7000-8000-007d404105aa"


async def is_known_in(regions: TwoRegions, region: str, key: str) -> None:
    async with regions.caller(region, key) as client:

        async def is_known() -> bool:
            return (await client.get("/v1/jobs")).status_code == 200

        await until(is_known)


async def at_home_in(regions: TwoRegions, tenant: str, region: str) -> None:
    """In both regions' books."""
    async with regions.caller("eu") as eu, regions.caller("us") as us:
        moved = await eu.put(f"/v1/tenants/{tenant}/home", json={"region": region})
        assert moved.status_code == 200, moved.text

        async def is_heard() -> bool:
            told = (await us.get(f"/v1/tenants/{tenant}")).json()
            return bool(told["home_region"] == region)

        await until(is_heard)


async def test_what_still_runs_where_its_tenant_was_is_stopped_from_anywhere(
    postgres_server: Server,
) -> None:
    """Nothing could stop it, or say why: the new home did not know it, and the old one asked it."""
    async with two_regions(postgres_server) as regions:
        name, key = regions.houses["eu"].new_tenant()
        await is_known_in(regions, "us", key)
        await at_home_in(regions, name, "us")
        worker_key = regions.houses["eu"].new_key({"scope": "worker"})
        await is_known_in_for_workers(regions, worker_key)
        async with (
            regions.caller("eu", key) as home,
            regions.caller("us", key) as old,
            regions.caller("us", worker_key) as client,
        ):
            worker = HandWorker(client)
            await worker.hello(slots=3)
            jobs = [await submitted(old, worker.type) for _ in range(2)]
            flow = await old.post("/v1/flows", json={"kind": "group", "jobs": [{"type": "never"}]})
            flow_path = f"/v1/flows/{flow.json()['id']}"
            leases = {(one := await worker.lease())["job"]: one for _ in jobs}
            assert sorted(leases) == sorted(jobs)
            await at_home_in(regions, name, "eu")
            for asked, job in ((home, jobs[0]), (old, jobs[1])):
                await is_looked_at(asked, job)
                asked_to_stop = await asked.delete(f"/v1/jobs/{job}")
                assert asked_to_stop.status_code == 202, asked_to_stop.text
                assert asked_to_stop.json()["state"] == "running"
            for job, lease in leases.items():
                await worker.tell(worker.report(lease, kind="cancelled"))
                assert (await home.get(f"/v1/jobs/{job}")).json()["state"] == "cancelled"
                assert problem(await home.delete(f"/v1/jobs/{job}"), 409, "CONFLICT")
            await streams_name_who_has_it(regions, home, old, jobs[0])
            assert (await home.get(flow_path)).status_code == 200
            assert (await home.get(f"{flow_path}/jobs")).status_code == 200
            assert (await home.delete(flow_path)).status_code == 200
            assert (await home.get(flow_path)).json()["cancelled"] == 1
            await is_nowhere(home)
            await is_nowhere(old)
            await is_not_passed_on_by_a_session(regions, key, jobs[0])


async def is_known_in_for_workers(regions: TwoRegions, key: str) -> None:
    async with regions.caller("us", key) as client:

        async def is_known() -> bool:
            reply = await client.post("/v1/workers/hand-0/exchange", json={"session": "0" * 32})
            return reply.status_code not in (401, 503)

        await until(is_known)


async def submitted(client: httpx2.AsyncClient, type_: str, **more: Any) -> str:
    reply = await client.post("/v1/jobs", json={"type": type_, **more})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


async def is_looked_at(client: httpx2.AsyncClient, job: str) -> None:
    assert (await client.get(f"/v1/jobs/{job}")).json()["state"] == "running"
    why = await client.get(f"/v1/jobs/{job}/explain")
    assert (why.status_code, why.json().get("reason")) == (200, "running"), why.text
    logs = await client.get(f"/v1/jobs/{job}/logs")
    assert (logs.status_code, logs.json()) == (200, {"lines": [], "next_cursor": None})
    children = await client.get(f"/v1/jobs/{job}/children")
    assert (children.status_code, children.json()["jobs"]) == (200, [])
    later = await client.patch(f"/v1/jobs/{job}", json={"delay_seconds": 60})
    assert "it is running" in problem(later, 409, "CONFLICT")["detail"]
    dead = problem(await client.get(f"/v1/dead-letters/{job}"), 404, "NOT_FOUND")
    assert dead["detail"] == f"The job {job} is no dead letter."
    assert problem(await client.post(f"/v1/dead-letters/{job}/replay"), 404, "NOT_FOUND")


async def streams_name_who_has_it(
    regions: TwoRegions, home: httpx2.AsyncClient, old: httpx2.AsyncClient, job: str
) -> None:
    there = regions.houses["us"].url
    for path in ("events", "payload"):
        told = problem(await home.get(f"/v1/jobs/{job}/{path}"), 409, "HOME_ELSEWHERE")
        assert (
            f"is in the region us, and this is not passed on to it: ask at {there}."
            in (told["detail"])
        )
        assert (await old.get(f"/v1/jobs/{job}/{path}")).status_code == 200
    assert problem(await home.get(f"/v1/jobs/{NO_JOB}/events"), 404, "NOT_FOUND")


async def is_nowhere(client: httpx2.AsyncClient) -> None:
    """Each region was asked for itself, and none asked another."""
    path, plain = f"/v1/jobs/{NO_JOB}", f"There is no job {NO_JOB}."
    assert problem(await client.get(path), 404, "NOT_FOUND")["detail"] == plain
    assert problem(await client.get(f"{path}/explain"), 404, "NOT_FOUND")["detail"] == plain
    assert problem(await client.delete(path), 404, "NOT_FOUND")["detail"] == plain
    moved = await client.patch(path, json={"delay_seconds": 1})
    assert problem(moved, 404, "NOT_FOUND")["detail"] == plain
    assert problem(await client.get(f"/v1/flows/{NO_JOB}"), 404, "NOT_FOUND")["detail"] == (
        f"There is no flow {NO_JOB}."
    )


async def is_not_passed_on_by_a_session(regions: TwoRegions, key: str, job: str) -> None:
    """At the home, of a job that another region has: a 401 from there ended the session."""
    there = regions.houses["us"].url
    async with signed_in(regions.houses["eu"], key) as browser:
        told = problem(await browser.get(f"/v1/jobs/{job}"), 404, "NOT_FOUND")
        assert (
            f"It was accepted in the region us, which may have it: ask at {there}."
            in (told["detail"])
        )
        assert problem(await browser.get(f"/v1/jobs/{NO_JOB}"), 404, "NOT_FOUND")
        several = {"ids": [job], "all": True}
        assert (await browser.post("/v1/jobs/wait", json=several)).status_code == 200
        assert (await browser.get("/session")).status_code == 200
    async with signed_in(regions.houses["us"], key) as browser:
        assert (await browser.get(f"/v1/jobs/{job}")).json()["state"] == "cancelled"
        assert (await browser.get(f"/v1/jobs/{job}/logs")).status_code == 200


async def test_a_change_goes_no_further_than_a_region_that_may_have_done_it(
    postgres_server: Server,
) -> None:
    """The home hears it and gives no answer; whoever only reads asks the next."""
    async with two_regions(postgres_server) as regions:
        name, key = regions.houses["eu"].new_tenant()
        await is_known_in(regions, "us", key)
        await at_home_in(regions, name, "us")
        worker_key = regions.houses["eu"].new_key({"scope": "worker"})
        await is_known_in_for_workers(regions, worker_key)
        async with (
            regions.caller("us", key) as old,
            regions.caller("us", worker_key) as client,
        ):
            worker = HandWorker(client)
            await worker.hello()
            path = f"/v1/jobs/{await submitted(old, worker.type)}"
            lease = await worker.lease()
            await at_home_in(regions, name, "eu")
            await regions.stop("eu")
            known = regions.houses["us"].platform.regions
            assert known is not None
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(known.peers, "is_away", lambda region: False)
                async with hangs_up(regions.houses["eu"].port) as heard:
                    assert problem(await old.delete(path), 503, "HOME_UNREACHABLE")
                    assert [line for line in heard if "/v1/" in line] == [f"DELETE {path}"]
                    assert (await old.get(path)).json()["state"] == "running"
            assert not (await worker.say(wait_ms=200)).get("cancel")
            assert (await old.delete(path)).status_code == 202, "it surely hears nothing now"
            await worker.tell(worker.report(lease, kind="cancelled"))
            assert (await old.get(path)).json()["state"] == "cancelled"


@asynccontextmanager
async def hangs_up(port: int) -> AsyncIterator[list[str]]:
    """Where a region was: what it is asked, method and path."""
    heard = list[str]()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode()
        heard.append(line.rpartition(" ")[0])
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", port)
    async with server:
        yield heard


async def test_a_job_that_a_region_may_have_is_not_called_missing_while_that_one_is_away(
    postgres_server: Server,
) -> None:
    async with two_regions(postgres_server) as regions:
        name, key = regions.houses["eu"].new_tenant()
        await is_known_in(regions, "us", key)
        async with regions.caller("eu", key) as near:
            lost = await submitted(near, "old", delay_seconds=3600)
        await regions.stop("eu")
        async with regions.caller("us") as operator, regions.caller("us", key) as far:
            unreachable = problem(await far.delete(f"/v1/jobs/{lost}"), 503, "HOME_UNREACHABLE")
            assert unreachable["detail"].startswith("The tenant's home is the region eu")
            moved = await operator.post("/v1/regions/eu/failover", json={"to": "us"})
            assert moved.status_code == 200, moved.text
            path = f"/v1/jobs/{lost}"
            away = problem(await far.get(path), 503, "UNAVAILABLE")["detail"]
            assert away.startswith("The region eu has to be asked for this, too")
            for asked in (
                far.get(f"{path}/explain"),
                far.delete(path),
                far.patch(path, json={"delay_seconds": 60}),
                far.get(f"{path}/logs"),
                far.get(f"{path}/children"),
                far.get(f"{path}/events"),
                far.get(f"/v1/dead-letters/{lost}"),
                far.post(f"/v1/dead-letters/{lost}/replay"),
            ):
                assert problem(await asked, 503, "UNAVAILABLE")["detail"] == away
            mine = await submitted(far, "new", delay_seconds=3600)
            assert (await far.delete(f"/v1/jobs/{mine}")).status_code == 200
            assert name


async def test_a_session_is_good_for_what_its_region_has_and_is_not_lost_over_the_rest(
    postgres_server: Server,
) -> None:
    async with two_regions(postgres_server) as regions:
        name, key = regions.houses["eu"].new_tenant()
        await is_known_in(regions, "us", key)
        near = regions.houses["eu"].url
        async with regions.caller("us", key) as far:
            there = await submitted(far, "work", delay_seconds=3600)
            async with signed_in(regions.houses["us"], key) as browser:
                path = f"/v1/jobs/{there}"
                for asked in (path, f"{path}/explain", f"{path}/logs", "/v1/schedules"):
                    told = problem(await browser.get(asked), 409, "HOME_ELSEWHERE")["detail"]
                    assert told == (
                        "The tenant's home is the region eu, and this is not passed on to it: ask"
                        f" at {near}."
                    )
                assert problem(await browser.delete(path), 409, "HOME_ELSEWHERE")
                for several in ({"ids": [there]}, {"ids": [there], "all": True}):
                    waits = await browser.post("/v1/jobs/wait", json=several)
                    assert problem(waits, 409, "HOME_ELSEWHERE")
                assert (await browser.get("/session")).status_code == 200
                far.headers["cookie"] = "; ".join(f"{n}={v}" for n, v in browser.cookies.items())
                assert (await far.get(path)).status_code == 200, "beside a key it says nothing"
        async with signed_in(regions.houses["us"], regions.houses["us"].operator_key) as staff:
            acting = await staff.get(path, headers={"fairway-tenant": name})
            assert problem(acting, 409, "HOME_ELSEWHERE")
        await regions.stop("eu")
        await what_is_held_is_seen(regions, key)


async def what_is_held_is_seen(regions: TwoRegions, key: str) -> None:
    """In the region that holds it, by key and by session; it is changed at its home alone."""
    until_then = "Held in us until eu, its tenant's home, answers."
    async with regions.caller("us", key) as far, signed_in(regions.houses["us"], key) as browser:
        held = await submitted(far, "work")
        path = f"/v1/jobs/{held}"
        for client in (far, browser):
            seen = (await client.get(path)).json()
            told = seen["state"], seen.get("held_in"), seen.get("held_for")
            assert told == ("queued", "us", "eu")
            why = await client.get(f"{path}/explain")
            assert (why.status_code, why.json().get("detail")) == (200, until_then), why.text
            assert (await client.get(f"{path}/logs")).json()["lines"] == []
            assert (await client.get(f"{path}/children")).json()["jobs"] == []
            for change in (client.delete(path), client.patch(path, json={"delay_seconds": 9})):
                assert until_then in problem(await change, 409, "CONFLICT")["detail"]
        told = problem(await browser.get("/v1/schedules"), 409, "HOME_ELSEWHERE")["detail"]
        assert told.endswith("when it is back; just now none of its servers answers.")
        await regions.start("eu")

        async def is_cancelled() -> bool:
            reply = await far.delete(path)
            assert reply.status_code in (200, 409, 503), reply.text
            return reply.status_code == 200

        await until(is_cancelled)
        seen = (await far.get(path)).json()
        assert (seen["state"], "held_in" in seen) == ("cancelled", False)
        async with regions.caller("eu", key) as near:
            assert (await near.get(path)).json()["state"] == "cancelled"
