"""What waits is counted: event streams, held requests; and who guesses keys is slowed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack

import httpx2
import pytest
from tests.api.house import House, own_house, problem
from tests.api.test_auth import questions  # noqa: F401  # a fixture
from tests.postgres import Server

from fairway.core.backpressure.connections import STAFF
from fairway.core.ids import TenantId
from fairway.core.keys import ApiKey
from fairway.services.backpressure.key_guesses import GUESSES_AT_ONCE, GUESSES_PER_SECOND

JOB = {"type": "nobody.runs.this"}


@pytest.fixture(scope="module")
def strict(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server with few places for what waits."""
    with own_house(
        postgres_server,
        "waiting_tests",
        storage_url=f"file://{tmp_path_factory.mktemp('objects')}",
        streams_per_tenant=3,
        streams_max=4,
        waits_per_tenant=2,
    ) as house:
        yield house


async def test_event_streams_are_counted_by_tenant_and_in_all(strict: House) -> None:
    (_, ours), (_, theirs) = strict.new_tenant(), strict.new_tenant()
    async with strict.caller(ours) as us, strict.caller(theirs) as them:
        paths = []
        for caller in (us, them):
            made = await caller.post("/v1/jobs", json=JOB)
            paths.append(f"{made.headers['location']}/events")
        async with AsyncExitStack() as streams:
            for _ in range(3):
                reply = await streams.enter_async_context(us.stream("GET", paths[0]))
                assert reply.status_code == 200
            mine = problem(await us.get(paths[0]), 429, "TOO_MANY_STREAMS")
            assert mine["detail"].startswith("You have 3")
            reply = await streams.enter_async_context(them.stream("GET", paths[1]))
            assert reply.status_code == 200
            full = problem(await them.get(paths[1]), 429, "TOO_MANY_STREAMS")
            assert full["detail"].startswith("This server has 4")
        async with asyncio.timeout(20):  # an ended stream gives its place back
            while True:
                async with us.stream("GET", paths[0]) as again:
                    if again.status_code == 200:
                        return
                await asyncio.sleep(0.05)


async def test_who_helps_a_tenant_takes_none_of_its_places_and_no_key_takes_all(
    strict: House,
) -> None:
    name, key = strict.new_tenant()
    other = strict.new_key({"scope": "operator", "permissions": ["read"]})
    async with (
        strict.caller(key) as tenant,
        strict.caller(strict.operator_key) as operator,
        strict.caller(other) as colleague,
        AsyncExitStack() as streams,
    ):
        made = await tenant.post("/v1/jobs", json=JOB)
        path, acting = f"{made.headers['location']}/events", {"fairway-tenant": name}
        helps = await streams.enter_async_context(operator.stream("GET", path, headers=acting))
        assert helps.status_code == 200
        taken = strict.platform.waiting._taken["streams"]
        assert (taken[STAFF], taken[TenantId(_tenant(strict, key))]) == (1, 0)
        full = problem(await operator.get("/v1/live"), 429, "TOO_MANY_STREAMS")
        assert full["detail"].startswith("Your key has 1")
        live = await streams.enter_async_context(colleague.stream("GET", "/v1/live"))
        assert live.status_code == 200, "another's key has places of its own"


async def test_held_requests_are_counted_and_who_cannot_wait_is_answered_at_once(
    strict: House,
) -> None:
    _, key = strict.new_tenant()
    async with strict.caller(key) as tenant:
        location = (await tenant.post("/v1/jobs", json=JOB)).headers["location"]
        wait = {"prefer": "wait=20"}
        held = [asyncio.create_task(tenant.get(location, headers=wait)) for _ in range(2)]
        async with asyncio.timeout(20):
            while strict.platform.waiting.has_slot("waits", TenantId(_tenant(strict, key))):  # noqa: ASYNC110  # other thread
                await asyncio.sleep(0.01)
        for method in ("GET", "HEAD"):
            seen = await tenant.request(method, location, headers=wait)
            assert seen.status_code == 200
            assert "preference-applied" not in seen.headers
            known = {**wait, "if-none-match": seen.headers["etag"]}
            assert (await tenant.request(method, location, headers=known)).status_code == 304
        reply = await tenant.post("/v1/jobs", json=JOB, headers=wait)
        assert reply.status_code == 202
        assert "preference-applied" not in reply.headers
        await tenant.delete(location)
        assert [(await one).status_code for one in held] == [200, 200]


def _tenant(house: House, key: str) -> int:
    principal = house.platform.directory.known(key)
    assert principal is not None
    assert principal.tenant is not None
    return principal.tenant.id


async def _guess(nobody: httpx2.AsyncClient, number: int) -> httpx2.Response:
    guess = ApiKey.compose("tenant", f"{number:08x}", "S" * 43).text
    return await nobody.get("/v1/jobs", headers={"authorization": f"Bearer {guess}"})


async def test_guessing_keys_is_slowed_and_shuts_nobody_out(
    strict: House,
    questions: list[str],  # noqa: F811
) -> None:
    _, key = strict.new_tenant()
    strict.inside(lambda platform: platform.directory.refresh())  # the key is in memory
    async with strict.caller() as nobody:
        replies: list[httpx2.Response] = []
        began = time.monotonic()
        while not any(reply.status_code == 429 for reply in replies[-GUESSES_AT_ONCE:]):
            replies += [await _guess(nobody, len(replies) + one) for one in range(GUESSES_AT_ONCE)]
        allowed = GUESSES_AT_ONCE + 1 + GUESSES_PER_SECOND * (time.monotonic() - began)
        refused = [reply for reply in replies if reply.status_code == 429]
        problem(refused[-1], 429, "TOO_MANY_WRONG_KEYS")
        assert all(reply.status_code != 429 for reply in replies[:GUESSES_AT_ONCE])
        assert len(replies) - len(refused) <= allowed
        assert len(questions) <= allowed
        reply = await nobody.get("/v1/jobs", headers={"authorization": f"Bearer {key}"})
        assert reply.status_code == 200, "a key in memory is judged as ever"


async def test_the_store_is_asked_once_about_a_key_that_is_not_there(
    house: House,
    questions: list[str],  # noqa: F811
) -> None:
    guess = ApiKey.compose("tenant", "feedfeed", "S" * 43).text
    async with house.caller(guess) as caller:
        for _ in range(5):
            problem(await caller.get("/v1/jobs"), 401, "UNAUTHENTICATED")
    assert questions.count("feedfeed") == 1


async def test_what_no_filter_can_be_is_refused(house: House) -> None:
    _, key = house.new_tenant()
    async with house.caller(key) as tenant:
        problem(await tenant.get("/v1/events?kind=%00"), 422, "INVALID_REQUEST", "kind")
        assert (await tenant.get("/v1/events?kind=circuit.opened")).status_code == 200


async def test_a_job_in_a_shard_that_is_not_there_is_not_there(house: House) -> None:
    _, key = house.new_tenant()
    job = "01900000-0000-7fff-8000-000000000001"
    async with house.caller(key) as tenant:
        problem(await tenant.delete(f"/v1/jobs/{job}"), 404, "NOT_FOUND")
        later = {"delay_seconds": 5}
        problem(await tenant.patch(f"/v1/jobs/{job}", json=later), 404, "NOT_FOUND")
        problem(await tenant.post(f"/v1/dead-letters/{job}/replay", json={}), 404, "NOT_FOUND")
