"""Two regions, each a real server on a database of its own: homes, held jobs, a failover."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.events.socket_client import Rejected, socket_to
from tests.api.house import House, problem
from tests.api.regions.two_houses import SECRET, TwoRegions, two_regions, until
from tests.api.worker import HandWorker
from tests.cli.program import fairway
from tests.postgres import Server, connected, fresh_database

from fairway.api.passed_jobs import RegionCalls, RegionJobs, decode_reply, encode
from fairway.core.ids import PoolId
from fairway.core.regions.homes import HomeTerm, Meant
from fairway.sdk.client.client import Client
from fairway.sdk.http.settings import ClientSettings
from fairway.services.regions.peer_calls import JOBS_PATH, REGION_SECRET
from fairway.services.submit.submission_group import NewJob
from fairway.wire.messages import JobView

NO_JOB = "01a1dce5-f055-7000-8000-007d404105aa"
MB = 1 << 20


async def test_a_key_is_not_refused_before_the_directory_is_known(postgres_server: Server) -> None:
    """A worker whose key is refused ends for good; one that is told to come again does not."""
    async with fresh_database(postgres_server) as eu, fresh_database(postgres_server) as us:
        regions = TwoRegions(eu, us)
        try:
            await regions.start("eu")
            _, key = regions.houses["eu"].new_tenant()
            await regions.stop("eu")
            await regions.start("us")
            answers = list[int]()
            async with regions.caller("us", key) as far:

                async def is_known() -> bool:
                    answers.append((await far.get("/v1/jobs")).status_code)
                    return answers[-1] == 200

                assert not await is_known()
                signed_in = await far.post("/session", json={"key": key})
                assert signed_in.status_code == 503, "nor for who signs in with it"
                await regions.start("eu")
                await until(is_known)
            assert {*answers[:-1]} == {503}, "it was never called wrong"
        finally:
            await regions.stop_all()


async def test_jobs_are_held_while_the_home_is_away_and_run_there_once(
    postgres_server: Server,
) -> None:
    async with two_regions(postgres_server) as regions:
        name, key = regions.houses["eu"].new_tenant()
        async with regions.caller("us", key) as far:

            async def is_known() -> bool:
                return (await far.get("/v1/jobs")).status_code == 200

            await until(is_known)
            await is_served_from_afar(regions, far, key)
            await a_key_of_one_region_says_so(regions, name)
            for region, pools in {"eu": ("video",), "us": ("audio", "video")}.items():
                async with regions.caller(region) as operator:
                    for pool in pools:
                        await operator.put(f"/v1/pools/{pool}", json={})
                    told = (await operator.get(f"/v1/tenants/{name}")).json()
                    assert told["home_region"] == "eu"
                    assert told["is_home_here"] == (region == "eu")
            film = (await far.post("/v1/jobs", json={"type": "film", "pool": "video"})).json()["id"]
            assert (await far.get(f"/v1/jobs/{film}")).json()["pool"] == "video", "by its name"
            await is_found_on_its_way(regions, far, film)
            music = await far.post("/v1/jobs", json={"type": "music", "pool": "audio"})
            assert music.json()["code"] == "UNKNOWN_POOL"
            worker_key = regions.houses["eu"].new_key({"scope": "worker"})
            async with regions.caller("eu", worker_key) as client:
                worker = HandWorker(client)
                await worker.hello()
                passed = (await far.post("/v1/jobs", json={"type": worker.type})).json()["id"]
                assert (await worker.run())["job"] == passed
                ended = (await far.get(f"/v1/jobs/{passed}")).json()
                assert ended["state"] == "succeeded", "read in any region"
            await regions.stop("eu")
            jobs = [{"type": worker.type, "payload": {"n": n}} for n in range(50)]
            many = await far.post("/v1/jobs/batch", json={"jobs": jobs})
            held = [item["id"] for item in many.json()["items"]]
            one = await far.post("/v1/jobs", json={"type": worker.type})
            assert one.status_code == 202, one.text
            held.append(one.json()["id"])
            await is_told_as_one_that_waits(far, held[7])
            assert (await far.get("/v1/schedules")).json()["code"] == "HOME_UNREACHABLE"
            await are_waited_for_while_held(far, held)
            result = asyncio.create_task(as_the_sdk_waits(regions.houses["us"], key, held))
            await regions.start("eu")
            async with regions.caller("eu", worker_key) as client:
                back = HandWorker(client)
                back.type = worker.type
                await back.hello()
                ran = [(await back.run())["job"] for _ in held]
                assert sorted(ran) == sorted(held)
                assert not (await back.say(wait_ms=1000)).get("leases")
            ended = await far.get(f"/v1/jobs/{held[7]}")
            assert ended.json()["state"] == "succeeded"
            assert {view.state for view in await result} == {"succeeded"}


async def waited(client: httpx2.AsyncClient, *ids: str, **how: Any) -> tuple[set[str], set[str]]:
    """Which of these jobs were told, and which were called missing."""
    reply = await client.post("/v1/jobs/wait", json={"ids": ids, **how})
    assert reply.status_code == 200, reply.text
    said = reply.json()
    return {job["id"] for job in said["jobs"]}, set(said["missing"])


async def is_told_as_one_that_waits(far: httpx2.AsyncClient, job: str) -> None:
    seen = await far.get(f"/v1/jobs/{job}")
    assert seen.json()["state"] == "queued"
    why = (await far.get(f"/v1/jobs/{job}/explain")).json()
    assert why["detail"] == "Held in us until eu, its tenant's home, answers."
    assert (why["reason"], why["state"], why["position"]) == ("held", "queued", None)
    unknown = await far.get(f"/v1/jobs/{NO_JOB}/explain")
    assert problem(unknown, 503, "HOME_UNREACHABLE"), "the home may have it"
    began = asyncio.get_running_loop().time()
    again = {"prefer": "wait=1", "if-none-match": seen.headers["etag"]}
    same = await far.get(f"/v1/jobs/{job}", headers=again)
    assert same.status_code == 304
    assert asyncio.get_running_loop().time() - began > 0.9, "who asks to wait waits"


async def are_waited_for_while_held(far: httpx2.AsyncClient, held: list[str]) -> None:
    """The home does not know them yet: nobody is told that there are no such jobs."""
    began = asyncio.get_running_loop().time()
    assert await waited(far, *held, wait_seconds=30) == (set(), set())
    assert 0.9 < asyncio.get_running_loop().time() - began < 5
    assert await waited(far, *held) == (set(), set())
    assert await waited(far, *held, all=True) == ({*held}, set())
    unknown = await far.post("/v1/jobs/wait", json={"ids": [held[0], NO_JOB]})
    assert problem(unknown, 503, "HOME_UNREACHABLE"), "the home may have it"


async def as_the_sdk_waits(house: House, key: str, jobs: list[str]) -> list[JobView]:
    client = Client(ClientSettings(url=house.url, api_key=key))
    try:
        return await asyncio.gather(*(client.view(job, 60) for job in jobs))
    finally:
        await client.aclose()


async def are_told_where_they_ended(near: httpx2.AsyncClient, ended: str) -> None:
    """In a region that the tenant has left: the home never knew of them."""
    assert await waited(near, ended, NO_JOB, wait_seconds=30) == ({ended}, {NO_JOB})
    assert await waited(near, ended, all=True) == ({ended}, set())


async def is_found_on_its_way(regions: TwoRegions, far: httpx2.AsyncClient, job: str) -> None:
    """The home is asked before the job comes there, and we look when it has gone from here."""
    us, eu = regions.houses["us"].platform.regions, regions.houses["eu"]
    assert us is not None
    async with connected(eu.dsn) as home:
        await home.execute("CREATE TABLE on_its_way AS SELECT * FROM jobs WHERE id = $1::uuid", job)
        await home.execute("DELETE FROM jobs WHERE id = $1::uuid", job)

    async def find(*asked: Any) -> None:
        async with connected(eu.dsn) as home:
            await home.execute("INSERT INTO jobs SELECT * FROM on_its_way")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(us.held, "find", find)
        assert (await far.get(f"/v1/jobs/{job}")).status_code == 200


async def a_key_of_one_region_says_so(regions: TwoRegions, tenant: str) -> None:
    """The operator's key that was made with a region is good there: it is not called invalid."""
    async with regions.caller("us") as operator:
        moved = await operator.put(f"/v1/tenants/{tenant}/home", json={"region": "us"})
    told = problem(moved, 401, "UNAUTHENTICATED")["detail"]
    assert told.startswith("This API key opens the region us and is not known in eu")


async def may_be_in_the_lost_region(far: httpx2.AsyncClient, job: str) -> None:
    """Nobody can say that it is not there; and that region is not the tenant's home any more."""
    lost = problem(await far.get(f"/v1/jobs/{job}"), 503, "UNAVAILABLE")
    assert lost["detail"].startswith("The region eu has to be asked")
    waited_for = await far.post("/v1/jobs/wait", json={"ids": [job]})
    assert problem(waited_for, 503, "UNAVAILABLE")["detail"] == lost["detail"]
    there = {"type": "later", "delay_seconds": 3600}
    other = (await far.post("/v1/jobs", json=there)).json()["id"]
    asked = asyncio.create_task(waited(far, job, other, wait_seconds=30))
    assert (await far.delete(f"/v1/jobs/{other}")).status_code == 200
    assert await asked == ({other}, set()), "one that nobody knows keeps no news of others"


async def streams_name_the_home(regions: TwoRegions, far: httpx2.AsyncClient, key: str) -> None:
    """What stays open is not passed on: whoever asks hears where it is to be had."""
    house = regions.houses["us"]
    known = house.platform.regions
    assert known is not None
    near = known.map.regions["eu"].urls[0]

    async def by_socket() -> str:
        with pytest.raises(Rejected) as refused:
            async with socket_to(int(house.url.rpartition(":")[2]), key):
                pass
        assert (refused.value.status, refused.value.problem["code"]) == (409, "HOME_ELSEWHERE")
        return str(refused.value.problem["detail"])

    async def by_stream() -> str:
        reply = await far.get("/v1/events/stream")
        assert (reply.status_code, reply.json()["code"]) == (409, "HOME_ELSEWHERE")
        return str(reply.json()["detail"])

    async def by_lines() -> str:
        lines = f"/v1/jobs/{NO_JOB}/logs"
        reply = await far.get(lines, headers={"accept": "text/event-stream"})
        assert (reply.status_code, reply.json()["code"]) == (409, "HOME_ELSEWHERE")
        return str(reply.json()["detail"])

    for ask in (by_socket, by_stream, by_lines):
        assert f"the region eu, and this is not passed on to it: ask at {near}." in await ask()
    listed = known.map.regions.pop("eu")  # as of a server that was not told of it yet
    try:
        assert "ask there (its address is not known here)" in await by_stream()
    finally:
        known.map.regions["eu"] = listed


async def is_served_from_afar(regions: TwoRegions, far: httpx2.AsyncClient, key: str) -> None:
    await streams_name_the_home(regions, far, key)
    await bodies_on_their_way_are_counted(regions, key)


async def bodies_on_their_way_are_counted(regions: TwoRegions, key: str) -> None:
    """What one tenant makes this region hold for another is bounded, as what it holds for itself:
    a few hundred connections with 16 MB each were more than its memory."""
    house = regions.houses["us"]
    room = house.platform.bodies.requests
    head = f"POST /v1/flows HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
    text = f"{head}content-length: {MB}\r\n\r\n".encode()
    _, sender = await asyncio.open_connection("127.0.0.1", house.port)
    sender.write(text + b" " * (MB // 2))

    async def is_held() -> bool:
        return room.bytes_held == MB

    async def is_given_back() -> bool:
        return not room.bytes_held

    await until(is_held)
    sender.close()
    await until(is_given_back)


async def test_a_region_that_comes_back_after_a_failover_hands_over_and_starts_nothing(
    postgres_server: Server,
) -> None:
    async with two_regions(postgres_server) as regions:
        eu = regions.houses["eu"]
        name, key = eu.new_tenant()
        stuck = await tenant_with_a_pool_of_its_own(regions)
        worker_key = eu.new_key({"scope": "worker"})
        async with regions.caller("eu", key) as near, regions.caller("us") as operator:

            async def is_known() -> bool:
                return (await operator.get(f"/v1/tenants/{name}/home")).status_code == 200

            await until(is_known)
            old = []
            for n in range(5):
                keyed = {"idempotency-key": f"k{n}"}
                one = await near.post("/v1/jobs", json={"type": "old"}, headers=keyed)
                old.append(one.json()["id"])
            later = {"type": "old", "delay_seconds": 2}
            old.append((await near.post("/v1/jobs", json=later)).json()["id"])
            hourly = {"type": "tick", "cron": "0 * * * *"}
            assert (await near.put("/v1/schedules/hourly", json=hourly)).status_code == 201
            there = await operator.post("/v1/regions/eu/failover", json={"to": "us"})
            told = problem(there, 409, "CONFLICT")["detail"]
            assert told.startswith("The region eu answers: it is not lost. Nothing was changed.")
            await regions.stop("eu")
            moved = await operator.post("/v1/regions/eu/failover", json={"to": "us"})
            assert moved.status_code == 200, moved.text
            assert moved.json()["directory"] == "us"
        async with (
            regions.caller("us", key) as far,
            regions.caller("us", worker_key) as client,
            regions.caller("us") as operator,
        ):
            worker = HandWorker(client)
            worker.type = "old"
            await worker.hello()
            again = await far.post(
                "/v1/jobs", json={"type": "old"}, headers={"idempotency-key": "k0"}
            )
            new = again.json()["id"]
            assert (await worker.run())["job"] == new, "the new home dispatches"
            await may_be_in_the_lost_region(far, old[1])
            await regions.start("eu")
            async with regions.caller("eu", worker_key) as stale:
                zombie = HandWorker(stale)
                zombie.type = "old"
                await zombie.hello()
                expected = sorted(old[1:])  # the key of the first has run here meanwhile
                assert sorted([(await worker.run())["job"] for _ in expected]) == expected
                assert not (await zombie.say(wait_ms=500)).get("leases")
            assert not (await worker.say(wait_ms=500)).get("leases")
            assert (await far.get("/v1/schedules/hourly")).json()["cron"] == "0 * * * *"
            await goes_back_when_all_is_handed_over(regions, operator, name, stuck)
            async with regions.caller("eu", key) as near:
                await are_told_where_they_ended(near, new)
            await is_moved_by_force(operator, name)
            await is_taken_by_the_present_word_alone(regions, name)
            seen = (await operator.get("/v1/regions")).json()
            assert (seen["directory"], seen["held_in_doubt"]) == ("us", 0)
            assert (await far.get(f"/v1/jobs/{new}")).json()["state"] == "succeeded"


async def is_moved_by_force(operator: httpx2.AsyncClient, name: str) -> None:
    forced = {"region": "us", "force": True}  # `us` has yet to hand its schedule over
    away = await operator.put(f"/v1/tenants/{name}/home", json=forced)
    assert away.status_code == 200, away.text
    audit = (await operator.get("/v1/audit", params={"limit": 20})).json()["entries"]
    acts = {"fail_over_region", "fail_back_region", "set_home"}
    assert acts <= {line["action"] for line in audit}
    moved = next(line for line in audit if line["action"] == "set_home")
    assert moved["after"]["force"] is True


async def is_taken_by_the_present_word_alone(regions: TwoRegions, name: str) -> None:
    """The tenant has been here before, and elsewhere since: what was sent to it then, and stood
    still on its way, may have ended there. And one number may be another tenant's elsewhere."""
    platform = regions.houses["us"].platform
    assert platform.regions is not None
    tenant = platform.directory.id_of(name)
    home = platform.regions.homes.known(tenant)
    assert home is not None
    shard = platform.tenant_shards.of(tenant)
    job, pools = NewJob("late", PoolId(1), 5, None, b"{}"), {PoolId(1): "short"}

    async def said(meant: Meant) -> Any:
        (first,) = platform.submissions.ids.make(shard, 1)
        call = RegionJobs(tenant, 1, True, 0, first, None, [job], pools)
        async with regions.caller("us") as other:
            body = encode(RegionCalls([call], {tenant: meant}))
            secret = {REGION_SECRET.decode(): SECRET}
            reply = await other.post(JOBS_PATH, content=body, headers=secret)
        (item,) = decode_reply(reply.content).items
        return item

    earlier = home._replace(term=HomeTerm(home.term - 2))
    for meant in (Meant(name, earlier), Meant(name, None), Meant("another", home)):
        assert (await said(meant))["code"] == "NOT_HOME"
    assert await said(Meant(name, home)) is None


async def tenant_with_a_pool_of_its_own(regions: TwoRegions) -> str:
    """What waits in it can be handed over to no other region."""
    name, key = regions.houses["eu"].new_tenant()
    async with regions.caller("eu") as operator, regions.caller("eu", key) as near:
        await operator.put("/v1/pools/film", json={})
        assert (await near.post("/v1/jobs", json={"type": "film", "pool": "film"})).is_success
    return name


async def goes_back_when_all_is_handed_over(
    regions: TwoRegions, operator: httpx2.AsyncClient, name: str, stuck: str
) -> None:
    """A job of a pool that the other region lacks keeps its own tenant, until the pool is there."""

    async def homes() -> list[str]:
        asked = [await operator.get(f"/v1/tenants/{one}/home") for one in (name, stuck)]
        return [one.json()["region"] for one in asked]

    async def is_one_back() -> bool:
        return await homes() == ["eu", "us"]

    url, key = regions.houses["us"].url, regions.houses["us"].operator_key
    known = {"FAIRWAY_URL": url, "FAIRWAY_OPERATOR_KEY": key}
    words = ("region", "failback", "eu", "--yes")
    command = asyncio.create_task(asyncio.to_thread(fairway, Path("/"), *words, **known))
    await until(is_one_back)
    one = await operator.put(f"/v1/tenants/{stuck}/home", json={"region": "eu"})
    assert one.status_code == 409, one.text
    assert f"to us what it has of {stuck}" in one.json()["detail"]
    back = (await operator.post("/v1/regions/eu/failback")).json()
    assert (back["tenants"], back["tenants_waiting"], back["jobs_waiting"]) == (0, 1, 1), back
    await operator.put("/v1/pools/film", json={})
    ended = await command
    assert await homes() == ["eu", "eu"], ended
    assert "eu has still to hand over what it has of 1 tenant" in ended.err
    assert "2 tenants were moved to eu" in ended.out
