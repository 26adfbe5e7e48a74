"""Signing in: what a session opens, what it needs besides, and when it is over."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpx2
import pytest
from tests.api.house import House, open_house, problem
from tests.api.jobs.test_jobs import submit

from fairway.core.sign_in import PER_KEY_MAX, token_hash
from fairway.services.backpressure.key_guesses import GUESSES_AT_ONCE
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal

PATIENCE_SECONDS = 30.0
CSRF = "x-fairway-csrf"


@pytest.fixture(scope="module")
def second(house: House) -> Iterator[House]:
    """Another server on the same database."""
    with open_house(house.dsn) as second:
        yield second


@asynccontextmanager
async def signed_in(house: House, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser, as far as cookies go, with the token against forgery in its headers."""
    async with house.caller() as browser:
        reply = await browser.post("/session", json={"key": key})
        assert reply.status_code == 200, reply.text
        browser.headers[CSRF] = reply.json()["csrf"]
        yield browser


async def until_over(browser: httpx2.AsyncClient) -> httpx2.Response:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (reply := await browser.get("/session")).status_code == 200:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.02)
    return reply


async def test_a_key_shown_once_opens_a_session(house: House, nobody: httpx2.AsyncClient) -> None:
    name, key = house.new_tenant()
    reply = await nobody.post("/session", json={"key": f" {key}\n"})
    said, cookie = reply.json(), reply.headers["set-cookie"]
    assert (said["scope"], said["tenant"], said["may"]) == (
        "tenant", name, ["operate", "read", "submit"],
    )  # fmt: skip
    left = datetime.fromisoformat(said["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=11) < left < timedelta(hours=13)
    assert "HttpOnly; SameSite=Strict; Path=/" in cookie
    assert "Secure" not in cookie
    assert reply.headers["cache-control"] == "no-store"
    assert (await nobody.get("/session")).json() == said
    assert (await nobody.get("/v1/jobs")).status_code == 200
    problem(await nobody.get("/v1/tenants"), 403, "FORBIDDEN")
    async with house.caller() as other:
        problem(await other.get("/session"), 401, "UNAUTHENTICATED")


async def test_with_a_key_there_is_nobody_signed_in_and_no_cookie_is_looked_at(
    house: House, operator: httpx2.AsyncClient
) -> None:
    said = (await operator.get("/session")).json()
    assert (said["scope"], said["csrf"], said["expires_at"]) == ("operator", None, None)
    async with signed_in(house, house.new_tenant()[1]) as browser:
        given = {"authorization": f"Bearer {house.operator_key}"}
        assert (await browser.get("/session", headers=given)).json()["scope"] == "operator"
        wrong = {"authorization": "Bearer fw_tenant_aa_bb_cc"}
        problem(await browser.get("/session", headers=wrong), 401, "UNAUTHENTICATED")


async def test_what_changes_something_needs_the_token_against_forgery(house: House) -> None:
    job = {"type": "never.run"}
    async with signed_in(house, house.new_tenant()[1]) as browser:
        assert (await browser.post("/v1/jobs", json=job)).status_code == 202
        right = browser.headers.pop(CSRF)
        for shown in (None, "", "0" * 64, right[:-1], right.upper() + "x"):
            headers = {} if shown is None else {CSRF: shown}
            reply = await browser.post("/v1/jobs", json=job, headers=headers)
            told = problem(reply, 403, "CROSS_SITE_REQUEST")
            assert "X-Fairway-Csrf" in told["detail"]
            problem(await browser.delete("/session", headers=headers), 403, "CROSS_SITE_REQUEST")
        assert (await browser.get("/v1/jobs")).status_code == 200


async def test_another_site_signs_nobody_in(house: House, nobody: httpx2.AsyncClient) -> None:
    _, key = house.new_tenant()
    for said in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        reply = await nobody.post("/session", json={"key": key}, headers=said)
        problem(reply, 403, "CROSS_SITE_REQUEST")
        assert "set-cookie" not in reply.headers
    plain = {"content-type": "text/plain"}  # what a form of another site can send
    reply = await nobody.post("/session", content=f'{{"key":"{key}"}}', headers=plain)
    problem(reply, 415, "UNSUPPORTED_MEDIA_TYPE")


async def test_a_worker_needs_its_key(house: House, nobody: httpx2.AsyncClient) -> None:
    """Its key opens no session, and no session opens what is for workers."""
    key = house.new_key({"scope": "worker"})
    problem(await nobody.post("/session", json={"key": key}), 403, "FORBIDDEN")
    async with signed_in(house, house.operator_key) as browser:
        exchange = {"session": "0" * 32}
        reply = await browser.post("/v1/workers/w/exchange", json=exchange)
        problem(reply, 401, "UNAUTHENTICATED")
        assert (await browser.get("/v1/pools")).status_code == 200, "others may look there too"


@pytest.mark.parametrize(
    "body", [{}, {"key": None}, {"key": "a", "code": "b"}, {"key": ""}, {"token": "x"}, {"key": 1}]
)
async def test_one_of_two_is_wanted(nobody: httpx2.AsyncClient, body: dict[str, Any]) -> None:
    reply = await nobody.post("/session", json=body)
    assert reply.status_code == 422, reply.text


async def test_signing_out_ends_it_on_every_server(house: House, second: House) -> None:
    _, key = house.new_tenant()
    async with signed_in(house, key) as browser, second.caller() as elsewhere:
        elsewhere.cookies.update(browser.cookies)
        assert (await elsewhere.get("/v1/jobs")).status_code == 200
        token = browser.cookies["fairway_session"]
        reply = await browser.delete("/session")
        assert reply.status_code == 204
        assert "Max-Age=0" in reply.headers["set-cookie"]
        browser.cookies.set("fairway_session", token)
        problem(await browser.get("/session"), 401, "UNAUTHENTICATED")
        problem(await until_over(elsewhere), 401, "UNAUTHENTICATED")


async def test_one_that_ends_while_it_is_looked_up_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with signed_in(house, house.new_tenant()[1]) as browser:
        token = browser.cookies["fairway_session"]

    async def race(platform: Platform) -> tuple[object, bool]:
        sign_ins, read, ended = platform.sign_ins, asyncio.Event(), asyncio.Event()
        holder_of = platform.directory.holder_of

        async def slowly(key_id: str) -> Principal | None:
            read.set()
            await ended.wait()
            return await holder_of(key_id)

        sign_ins._known.pop(token_hash(token))
        with monkeypatch.context() as patch:
            patch.setattr(platform.directory, "holder_of", slowly)
            finding = asyncio.create_task(sign_ins.find(token))
            await read.wait()
            await sign_ins.end(token)
            ended.set()
            return await finding, token_hash(token) in sign_ins._known

    assert house.inside(race) == (None, False)


async def test_what_only_the_owner_can_do_is_passed_on_with_the_session(
    house: House, second: House
) -> None:
    name, key = house.new_tenant()
    async with signed_in(second, key) as browser, signed_in(second, house.operator_key) as staff:
        staff.headers["fairway-tenant"] = name
        for caller in (browser, staff):
            place = await submit(browser)
            assert (await caller.delete(place)).is_success
            assert (await browser.get(place)).json()["state"] == "cancelled"


@pytest.mark.parametrize("where", ["here", "on another server"])
async def test_it_ends_with_its_key(house: House, operator: httpx2.AsyncClient, where: str) -> None:
    name, _ = house.new_tenant()
    key = house.new_key({"tenant": name})
    async with signed_in(house, key) as browser:
        assert (await browser.get("/session")).status_code == 200
        if where == "here":
            assert (await operator.delete(f"/v1/keys/{key.split('_')[2]}")).status_code == 204
        else:
            connection = await asyncpg.connect(house.dsn)
            statement = "UPDATE api_keys SET revoked_at = now() WHERE id = $1"
            await connection.execute(statement, key.split("_")[2])
            await connection.close()
        problem(await until_over(browser), 401, "UNAUTHENTICATED")


async def test_it_rests_while_its_tenant_is_suspended(
    house: House, operator: httpx2.AsyncClient
) -> None:
    name, key = house.new_tenant()
    async with signed_in(house, key) as browser:
        said = await operator.post(f"/v1/tenants/{name}/suspend", json={"reason": "Unpaid."})
        assert said.status_code == 200
        told = problem(await until_over(browser), 403, "TENANT_SUSPENDED")
        assert "Unpaid." in told["detail"]
        problem(await browser.post("/session", json={"key": key}), 403, "TENANT_SUSPENDED")
        assert (await operator.post(f"/v1/tenants/{name}/resume")).status_code == 200
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await browser.get("/session")).status_code != 200:  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.02)


async def test_it_ends_when_its_time_is_over(house: House) -> None:
    async with signed_in(house, house.new_tenant()[1]) as browser:
        connection = await asyncpg.connect(house.dsn)
        await connection.execute(
            "UPDATE sign_ins SET expires_at = now() WHERE token_hash = $1",
            token_hash(browser.cookies["fairway_session"]),
        )
        await connection.close()
        problem(await until_over(browser), 401, "UNAUTHENTICATED")


async def test_a_key_has_so_many_and_the_oldest_gives_way(house: House) -> None:
    _, key = house.new_tenant()
    async with signed_in(house, key) as oldest, signed_in(house, key) as other:
        for _ in range(PER_KEY_MAX - 1):
            assert (await other.post("/session", json={"key": key})).status_code == 200
        problem(await until_over(oldest), 401, "UNAUTHENTICATED")
        assert (await other.get("/session")).status_code == 200
    connection = await asyncpg.connect(house.dsn)
    kept = await connection.fetchval(
        "SELECT count(*) FROM sign_ins WHERE key_id = $1", key.split("_")[2]
    )
    await connection.close()
    assert kept == PER_KEY_MAX


async def test_a_sign_in_is_in_the_audit(house: House) -> None:
    _, key = house.new_tenant()
    async with signed_in(house, key) as browser:
        token = browser.cookies["fairway_session"]
        found = (await browser.get("/v1/audit")).json()["entries"]
    assert (found[0]["action"], found[0]["subject"]) == ("sign_in", key.split("_")[2])
    assert (found[0]["actor"], found[0]["address"]) == (key.split("_")[2], "127.0.0.1")
    assert token not in str(found)


# -- guesses -------------------------------------------------------------------------------------


async def test_guesses_are_slowed_and_who_is_known_is_let_in(house: House) -> None:
    _, key = house.new_tenant()
    line = httpx2.AsyncHTTPTransport(local_address="127.0.8.1")
    async with httpx2.AsyncClient(base_url=house.url, transport=line, timeout=30) as guesser:
        guesser.cookies.clear()
        reply = await guesser.post("/session", json={"key": key})
        token = reply.cookies["fairway_session"]
        guesser.cookies.clear()
        assert (await ask(guesser, token)).status_code == 200
        seen = set()
        for _ in range(GUESSES_AT_ONCE + 60):
            seen.add((await ask(guesser, secrets.token_urlsafe(32))).status_code)
            if 429 in seen:
                break
        assert seen == {401, 429}
        house.inside(guess_on)
        problem(await ask(guesser, secrets.token_urlsafe(32)), 429, "TOO_MANY_WRONG_KEYS")
        code = {"code": secrets.token_urlsafe(32)}
        problem(await guesser.post("/session", json=code), 429, "TOO_MANY_WRONG_KEYS")
        assert (await ask(guesser, token)).status_code == 200
        assert (await ask(guesser, "no token at all")).status_code == 401


async def guess_on(platform: Platform) -> None:
    """So much that this address waits for longer than a machine stands still."""
    for _ in range(GUESSES_AT_ONCE):
        platform.directory.guesses.failed("127.0.8.1")  # type: ignore[union-attr]


async def ask(client: httpx2.AsyncClient, token: str) -> httpx2.Response:
    return await client.get("/session", headers={"cookie": f"fairway_session={token}"})


# -- links ---------------------------------------------------------------------------------------


async def test_a_link_signs_in_once(
    house: House, operator: httpx2.AsyncClient, nobody: httpx2.AsyncClient
) -> None:
    made = await operator.post("/session/links")
    assert made.status_code == 201
    url, code = made.json()["url"].split("#code=")
    assert url == f"{house.url}/ui/sign-in"
    left = datetime.fromisoformat(made.json()["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=5) < left < timedelta(minutes=11)
    replies = await asyncio.gather(*(nobody.post("/session", json={"code": code}) for _ in "ab"))
    assert sorted(reply.status_code for reply in replies) == [200, 401]
    (first,) = [one.json() for one in replies if one.status_code == 200]
    assert (first["scope"], first["may"]) == ("operator", ["admin", "operate", "read"])
    for wrong in (code, code[:-1], "x", secrets.token_urlsafe(32)):
        reply = await nobody.post("/session", json={"code": wrong})
        problem(reply, 401, "UNAUTHENTICATED")


async def test_a_link_may_no_more_than_its_key(house: House, nobody: httpx2.AsyncClient) -> None:
    key = house.new_key({"scope": "operator", "permissions": ["read"]})
    async with house.caller(key) as reader:
        url = (await reader.post("/session/links")).json()["url"]
    said = (await nobody.post("/session", json={"code": url.partition("=")[2]})).json()
    assert said["may"] == ["read"]
    headers = {CSRF: said["csrf"]}
    reply = await nobody.post("/v1/tenants", json={"name": "x"}, headers=headers)
    problem(reply, 403, "FORBIDDEN")


async def test_a_session_makes_no_links(house: House) -> None:
    async with signed_in(house, house.operator_key) as browser:
        problem(await browser.post("/session/links"), 403, "FORBIDDEN")


async def test_a_link_that_is_too_old_opens_nothing(
    house: House, operator: httpx2.AsyncClient, nobody: httpx2.AsyncClient
) -> None:
    code = (await operator.post("/session/links")).json()["url"].partition("=")[2]

    async def age(platform: Platform) -> None:
        async with platform.database.background() as connection:
            statement = "UPDATE sign_ins SET expires_at = now() WHERE token_hash = $1"
            await connection.execute(statement, token_hash(code))

    house.inside(age)
    reply = await nobody.post("/session", json={"code": code})
    assert "make a new one" in problem(reply, 401, "UNAUTHENTICATED")["detail"]


@pytest.mark.parametrize("how", ["out", "out elsewhere", "late"])
async def test_a_stream_ends_with_its_session(house: House, how: str) -> None:
    async with signed_in(house, house.operator_key) as browser, house.caller() as other:
        other.cookies.update(browser.cookies)
        async with asyncio.timeout(PATIENCE_SECONDS), other.stream("GET", "/v1/live") as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            if how == "out":
                assert (await browser.delete("/session")).status_code == 204
            else:
                change = "DELETE FROM" if how == "out elsewhere" else "UPDATE"
                value = "" if how == "out elsewhere" else "SET expires_at = now()"
                connection = await asyncpg.connect(house.dsn)
                await connection.execute(
                    f"{change} sign_ins {value} WHERE token_hash = $1",
                    token_hash(other.cookies["fairway_session"]),
                )
                await connection.close()
            async for _ in lines:  # to its end, which the server makes
                pass
        problem(await other.get("/v1/overview"), 401, "UNAUTHENTICATED")
