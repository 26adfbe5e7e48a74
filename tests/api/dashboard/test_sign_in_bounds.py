"""Who signs in again and again, and who guesses, are in nobody else's way; streams end in time."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator

import asyncpg
import httpx2
import pytest
from tests.api.dashboard.test_sign_ins import PATIENCE_SECONDS, ask, signed_in
from tests.api.house import House, open_house, problem
from tests.api.jobs.test_jobs import submit

from fairway.core.sign_in import token_hash
from fairway.services.backpressure.key_guesses import GUESSES_AT_ONCE
from fairway.services.platform import Platform
from fairway.services.registry import sign_ins


@pytest.fixture(scope="module")
def behind_a_proxy(house: House) -> Iterator[House]:
    with open_house(house.dsn, trusted_proxies="127.0.0.0/8") as behind:
        yield behind


async def test_who_signs_in_too_often_is_told_so_and_no_other_is(
    house: House, nobody: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, key = house.new_tenant()
    number = house.platform.directory.tenant_ids[name]

    async def often(platform: Platform) -> None:
        for _ in range(200):
            platform.sign_ins._pace.take(number)

    with pytest.raises(Exception, match="at once"):
        house.inside(often)
    other_key = house.new_key({"scope": "tenant", "tenant": name})
    for one in (key, other_key):
        problem(await nobody.post("/session", json={"key": one}), 429, "TOO_MANY_SIGN_INS")
    _, another = house.new_tenant()
    assert (await nobody.post("/session", json={"key": another})).status_code == 200


async def test_one_address_does_not_fill_the_line(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_ins, "OWNER_WAITING_MAX", 3)
    _, key = house.new_tenant()
    line = httpx2.AsyncHTTPTransport(local_address="127.0.8.7")

    async def hold(platform: Platform) -> None:
        await platform.sign_ins._one_asks.acquire()

    async def let_go(platform: Platform) -> None:
        platform.sign_ins._one_asks.release()

    async with (
        httpx2.AsyncClient(base_url=house.url, transport=line, timeout=30) as guesser,
        house.caller() as other,
    ):
        house.inside(hold)
        try:
            guesses = [asyncio.create_task(ask(guesser, secrets.token_urlsafe(32))) for _ in "1234"]
            done, _ = await asyncio.wait(guesses, return_when=asyncio.FIRST_COMPLETED)
            problem(done.pop().result(), 503, "UNAVAILABLE")
            honest = asyncio.create_task(other.post("/session", json={"key": key}))
        finally:
            house.inside(let_go)
        assert (await honest).status_code == 200
        assert sorted(one.status_code for one in await asyncio.gather(*guesses)) == [
            401, 401, 401, 503,
        ]  # fmt: skip
    assert not house.platform.sign_ins._waiting


async def test_not_all_who_come_through_a_proxy_pay_for_one_who_guesses(
    behind_a_proxy: House,
) -> None:
    house = behind_a_proxy
    guesser, honest = {"x-forwarded-for": "203.0.113.9"}, {"x-forwarded-for": "198.51.100.7"}
    async with house.caller() as proxy, house.caller(house.operator_key) as operator:
        code = (await operator.post("/session/links")).json()["url"].partition("=")[2]

        async def guess(platform: Platform) -> None:
            for _ in range(GUESSES_AT_ONCE * 2):
                platform.directory.guesses.failed("203.0.113.9")  # type: ignore[union-attr]

        first = await proxy.get(
            "/session", headers={"cookie": f"fairway_session={secrets.token_urlsafe(32)}"} | guesser
        )
        problem(first, 401, "UNAUTHENTICATED")
        house.inside(guess)
        reply = await proxy.post("/session", json={"code": code}, headers=guesser)
        problem(reply, 429, "TOO_MANY_WRONG_KEYS")
        reply = await proxy.post("/session", json={"code": code}, headers=honest)
        assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("how", ["signed out", "its time is over"])
async def test_a_stream_ends_with_its_session(house: House, how: str) -> None:
    async with (
        signed_in(house, house.operator_key) as browser,
        browser.stream("GET", "/v1/live") as stream,
    ):
        parts = stream.aiter_text()
        assert (await anext(parts)).startswith("retry:")
        if how == "signed out":
            assert (await browser.delete("/session")).status_code == 204
        else:
            connection = await asyncpg.connect(house.dsn)
            statement = "UPDATE sign_ins SET expires_at = now() WHERE token_hash = $1"
            await connection.execute(statement, token_hash(browser.cookies["fairway_session"]))
            await connection.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for _ in parts:
                pass
    assert not house.platform.sign_ins._held.names()


async def test_no_cache_keeps_what_a_session_was_told(house: House) -> None:
    async with signed_in(house, house.new_tenant()[1]) as browser:
        place = await submit(browser)
        assert (await browser.get(place)).headers.get_list("cache-control") == ["no-cache"]
        for path in ("/v1/jobs", "/v1/overview", "/v1/usage", "/v1/jobs/none", "/v1/none"):
            reply = await browser.get(path)
            assert reply.headers.get_list("cache-control") == ["no-store"], path
        assert (await browser.get("/ui")).headers.get_list("cache-control") == ["no-cache"]
