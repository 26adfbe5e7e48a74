"""Who asks again may be told what was told a moment ago; who does not say so never is."""

from __future__ import annotations

import asyncio

import httpx2
from tests.api.house import House

from fairway.api.recent_replies import accepted_age_seconds

AGAIN = {"Cache-Control": "max-age=10"}
ONE = {"type": "recent.reply", "payload": {}}


async def jobs(caller: httpx2.AsyncClient, **headers: str) -> tuple[int, bool]:
    """How many are listed, and whether the reply had an age."""
    reply = await caller.get("/v1/jobs", headers=headers)
    assert reply.status_code == 200, reply.text
    return len(reply.json()["jobs"]), "age" in reply.headers


async def test_who_says_so_is_given_what_was_told_a_moment_ago(
    tenant: httpx2.AsyncClient, stranger: httpx2.AsyncClient
) -> None:
    assert await jobs(tenant, **AGAIN) == (0, False)
    assert (await tenant.post("/v1/jobs", json=ONE)).status_code == 202
    assert await jobs(tenant, **AGAIN) == (0, True)  # it takes an old one
    assert await jobs(tenant) == (1, False)  # it does not
    for said in ("max-age=0", "no-cache", "max-age=10, no-store"):
        assert await jobs(tenant, **{"Cache-Control": said}) == (1, False)
    assert (await stranger.post("/v1/jobs", json=ONE)).status_code == 202
    assert (await stranger.post("/v1/jobs", json=ONE)).status_code == 202
    assert await jobs(stranger, **AGAIN) == (2, False)  # nothing of another's


async def test_a_query_is_another_question(tenant: httpx2.AsyncClient) -> None:
    for path in ("/v1/jobs?limit=1", "/v1/jobs?limit=2", "/v1/limits"):
        assert "age" not in (await tenant.get(path, headers=AGAIN)).headers
        assert "age" in (await tenant.get(path, headers=AGAIN)).headers


async def test_an_operator_sees_each_tenant_as_it_is(
    house: House, operator: httpx2.AsyncClient
) -> None:
    for count in (1, 2):
        name, key = house.new_tenant()
        async with house.caller(key) as caller:
            for _ in range(count):
                assert (await caller.post("/v1/jobs", json=ONE)).status_code == 202
        acting = {"Fairway-Tenant": name}
        assert await jobs(operator, **AGAIN, **acting) == (count, False)
        assert await jobs(operator, **AGAIN, **acting) == (count, True)


async def test_a_key_that_is_gone_is_told_nothing(
    house: House, operator: httpx2.AsyncClient
) -> None:
    key = house.new_key({"scope": "operator"})
    async with house.caller(key) as caller:
        for _ in range(2):
            assert (await caller.get("/v1/pools", headers=AGAIN)).status_code == 200
        told = await operator.delete(f"/v1/keys/{key.split('_')[2]}")
        assert told.status_code < 300, told.text
        async with asyncio.timeout(30):
            while (await caller.get("/v1/pools", headers=AGAIN)).status_code != 401:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_who_asks_together_is_answered_together(tenant: httpx2.AsyncClient) -> None:
    await tenant.get("/v1/schedules", headers=AGAIN)  # the path is known from here on
    replies = await asyncio.gather(
        *(tenant.get("/v1/schedules?limit=7", headers=AGAIN) for _ in range(8))
    )
    assert {one.status_code for one in replies} == {200}
    assert len({one.text for one in replies}) == 1


def test_only_plain_questions_of_the_api_may_be_shared() -> None:
    def asked(method: str, path: str, **headers: str) -> int:
        pairs = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
        return accepted_age_seconds({"method": method, "path": path, "headers": pairs})

    assert asked("GET", "/v1/jobs", cache_control="max-age=4") == 4
    assert asked("GET", "/v1/jobs", cache_control="max-age=999") == 10
    assert asked("GET", "/session", cache_control="max-age=4") == 0  # holds a secret of a session
    assert asked("HEAD", "/v1/jobs", cache_control="max-age=4") == 0
    assert asked("GET", "/v1/jobs", cache_control="max-age=4", if_none_match='"a"') == 0
    assert asked("GET", "/v1/jobs", cache_control="max-age=4", prefer="wait=5") == 0
