"""`fairway.sql` with libraries that people use: what commits is a job, what rolls back is none."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import django
import django.apps
import django.conf
import django.db
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tests.api.house import House, first_events
from tests.api.worker import HandWorker
from tests.logins import login_of
from tests.postgres import connected

import fairway.sql
from fairway import App, FairwayError, Handle, InvalidRequest, Job, NotFound, Unique
from fairway.sdk.client import sql as sdk_sql
from fairway.testing import all_enqueued, manual


class Shop(NamedTuple):
    """A tenant's program: where its own data is, and its jobs."""

    dsn: str
    app: App
    send: Job[[str], None]


@pytest.fixture
async def shop(house: House) -> AsyncIterator[Shop]:
    name, key = house.new_tenant(tier="enterprise")
    app = App("shop", url=house.url, api_key=key)

    @app.job(name=f"mail-{secrets.token_hex(4)}")
    def send(to: str) -> None: ...

    async with login_of(house.dsn, name) as dsn:
        yield Shop(dsn, app, send)
    await app.aclose()


async def names_of(house: House, shop: Shop) -> list[str]:
    """To whom mail is sent, by jobs that are there."""
    async with house.caller(shop.app.settings.api_key) as caller:
        ids = [job["id"] for job in (await caller.get("/v1/jobs")).json()["jobs"]]
        found = [(await caller.get(f"/v1/jobs/{one}")).json() for one in ids]
    return sorted(one["payload"]["to"] for one in found)


@contextmanager
def psycopg_connection(dsn: str) -> Iterator[Any]:
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        yield connection


@contextmanager
def alchemy_connection(dsn: str) -> Iterator[Any]:
    engine = sqlalchemy.create_engine(dsn.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@contextmanager
def alchemy_session(dsn: str) -> Iterator[Any]:
    engine = sqlalchemy.create_engine(dsn.replace("postgresql:", "postgresql+psycopg:"))
    with Session(engine) as session:
        yield session
    engine.dispose()


BLOCKING = [psycopg_connection, alchemy_connection, alchemy_session]


@pytest.mark.parametrize("opened", BLOCKING, ids=lambda opened: opened.__name__)
async def test_blocking_connections(
    house: House, shop: Shop, opened: Callable[[str], AbstractContextManager[Any]]
) -> None:
    def work() -> list[Handle[None]]:
        with opened(shop.dsn) as connection:
            fairway.sql.enqueue(connection, shop.send, "nobody")
            fairway.sql.enqueue_many(connection, shop.send, [("no one",)])
            connection.rollback()
            one = fairway.sql.enqueue(connection, shop.send.options(priority=9), "ada")
            many = fairway.sql.enqueue_many(connection, shop.send, [("b",), {"to": "c"}])
            assert fairway.sql.enqueue_many(connection, shop.send, []) == []
            connection.commit()
        assert one.status().priority == 9
        return [one, *many]

    handles = await asyncio.to_thread(work)
    for handle in handles:
        assert (await handle.astatus()).state == "queued"
    assert await names_of(house, shop) == ["ada", "b", "c"]


async def test_django(house: House, shop: Shop) -> None:
    parts = urlsplit(shop.dsn)
    socket = parse_qs(parts.query)
    if not django.conf.settings.configured:
        django.conf.settings.configure(LOGGING_CONFIG=None)
    if not django.apps.apps.ready:
        django.setup()
    settings = {
        "ENGINE": "django.db.backends.postgresql", "NAME": parts.path[1:],
        "USER": parts.username, "PASSWORD": "shop",
        "HOST": parts.hostname or socket["host"][0], "PORT": str(parts.port or socket["port"][0]),
    }  # fmt: skip

    def work() -> str:
        databases = django.db.utils.ConnectionHandler({"default": settings})
        connection = databases["default"]
        connection.set_autocommit(False)
        fairway.sql.enqueue(connection, shop.send, "nobody")
        connection.rollback()
        handle = fairway.sql.enqueue(connection, shop.send, "ada")
        (other,) = fairway.sql.enqueue_many(connection, shop.send, [("b",)])
        connection.commit()
        databases.close_all()
        assert other.status().state == "queued"
        return handle.status().state

    assert await asyncio.to_thread(work) == "queued"
    assert await names_of(house, shop) == ["ada", "b"]


async def test_asyncpg(house: House, shop: Shop) -> None:
    async with connected(shop.dsn) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await fairway.sql.aenqueue(connection, shop.send, "nobody")
        await transaction.rollback()
        async with connection.transaction():
            handle = await fairway.sql.aenqueue(connection, shop.send, "ada")
            many = await fairway.sql.aenqueue_many(connection, shop.send, [("b",), ("c",)])
    for one in (handle, *many):
        assert (await one.astatus()).state == "queued"
    assert await names_of(house, shop) == ["ada", "b", "c"]


async def test_psycopg_asynchronous(house: House, shop: Shop) -> None:
    connection = await psycopg.AsyncConnection.connect(shop.dsn, row_factory=dict_row)
    async with connection:
        await fairway.sql.aenqueue(connection, shop.send, "nobody")
        await connection.rollback()
        handle = await fairway.sql.aenqueue(connection, shop.send, "ada")
    assert (await handle.astatus()).state == "queued"
    assert await names_of(house, shop) == ["ada"]


async def test_sqlalchemy_asynchronous(house: House, shop: Shop) -> None:
    parts = urlsplit(shop.dsn)
    place = {name: values[0] for name, values in parse_qs(parts.query).items()}
    where = {"host": place.get("host", parts.hostname), "port": int(place.get("port", 5432))}
    url = f"postgresql+asyncpg://{parts.username}:shop@/{parts.path[1:]}"
    engine = create_async_engine(url, connect_args=where)
    async with AsyncSession(engine) as session:
        await fairway.sql.aenqueue(session, shop.send, "nobody")
        await session.rollback()
        handle = await fairway.sql.aenqueue(session, shop.send, "ada")
        await fairway.sql.aenqueue_many(session, shop.send, [("b",)])
        await session.commit()
    async with engine.begin() as connection:
        last = await fairway.sql.aenqueue(connection, shop.send, "c")
    await engine.dispose()
    assert (await handle.astatus()).state == (await last.astatus()).state == "queued"
    assert await names_of(house, shop) == ["ada", "b", "c"]


async def test_a_worker_has_it_within_a_second(shop: Shop, worker: HandWorker) -> None:
    worker.type = shop.send.name
    await worker.hello()
    seconds = []
    async with connected(shop.dsn) as connection:
        for n in range(5):
            handle = await fairway.sql.aenqueue(connection, shop.send, f"n{n}")
            began = time.monotonic()
            lease = await worker.lease()
            seconds.append(time.monotonic() - began)
            assert lease["job"] == handle.id
            await worker.tell(worker.report(lease))
            await handle.aresult(timeout=20)
    assert sorted(seconds)[2] < 1, seconds


async def test_what_is_no_job_is_told_as_an_event(shop: Shop, house: House) -> None:
    async with connected(shop.dsn) as connection:
        wrong = shop.send.options(pool="nowhere")
        handle = await fairway.sql.aenqueue(connection, wrong, "ada")
        fine = await fairway.sql.aenqueue(connection, shop.send, "b")
    assert (await fine.astatus()).state == "queued"
    async with house.caller(shop.app.settings.api_key) as caller:
        (event,) = await first_events(caller, 1)
    assert event["kind"] == "outbox.refused"
    assert event["job"] == handle.id
    assert "UNKNOWN_POOL" in event["data"]["detail"]


async def test_a_job_that_was_rolled_back_is_told_in_words(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_sql, "ARRIVAL_SECONDS", 0.3)
    async with connected(shop.dsn) as connection:
        transaction = connection.transaction()
        await transaction.start()
        handle = await fairway.sql.aenqueue(connection, shop.send, "nobody")
        await transaction.rollback()
    with pytest.raises(NotFound, match="Was its transaction committed"):
        await handle.astatus()


async def test_a_handle_waits_for_a_job_that_is_on_its_way(shop: Shop) -> None:
    async with connected(shop.dsn) as connection:
        transaction = connection.transaction()
        await transaction.start()
        handle = await fairway.sql.aenqueue(connection, shop.send, "ada")
        asked = asyncio.create_task(handle.astatus())
        done, _ = await asyncio.wait({asked}, timeout=0.5)
        assert not done, "it was not committed yet, and that is no reason to give it up"
        await transaction.commit()
        assert (await asked).state == "queued"


async def test_what_a_transaction_does_not_take(shop: Shop) -> None:
    @shop.app.job(unique=Unique())
    def only(to: str) -> None: ...

    async with connected(shop.dsn) as connection:
        with pytest.raises(ValueError, match=r"only: .*cannot be unique: .*unique constraint"):
            await fairway.sql.aenqueue(connection, only, "a")
        with pytest.raises(ValueError, match="idempotency_key"):
            await fairway.sql.aenqueue(connection, shop.send.options(idempotency_key="k"), "a")
        with pytest.raises(InvalidRequest, match="65536"):
            await fairway.sql.aenqueue(connection, shop.send, "x" * 65536)
        with pytest.raises(TypeError, match=r"fairway\.sql\.aenqueue"):
            fairway.sql.enqueue(connection, shop.send, "a")
        with pytest.raises(TypeError, match=r"after the connection"):
            await fairway.sql.aenqueue(connection, shop.send.function, "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"fairway\.sql\.enqueue "):
        await fairway.sql.aenqueue(psycopg.Connection, shop.send, "a")


async def test_under_test_no_database_is_asked(shop: Shop) -> None:
    with manual():
        await fairway.sql.aenqueue(None, shop.send, "ada")
        await fairway.sql.aenqueue_many(None, shop.send, [("b",)])
        assert [one.args["to"] for one in all_enqueued()] == ["ada", "b"]


async def test_a_login_is_one_tenants(house: House, shop: Shop) -> None:
    """Whatever key the program has for HTTP: whose the job is, its login says."""
    _, other_key = house.new_tenant()
    other = App("other", url=house.url, api_key=other_key)
    job = other.job(name=shop.send.name)(lambda to: None)
    async with connected(shop.dsn) as connection:
        handle: Handle[Any] = await fairway.sql.aenqueue(connection, job, to="ada")
    mine = shop.send.handle(handle.id)
    async with asyncio.timeout(20):
        while True:
            try:
                assert (await mine.astatus()).state == "queued"
                break
            except FairwayError:
                await asyncio.sleep(0.05)
    with pytest.raises(NotFound):
        await job.handle(handle.id).astatus()
    await other.aclose()
