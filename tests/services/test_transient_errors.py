"""Errors of the store that pass: what it undid is tried again, the rest is "try again"."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import asyncpg
import pytest
from tests.postgres import connected
from tests.services.platform_room import QUICK, add_tenant, new, owner_on, submit, until

from fairway.core.errors import Unavailable
from fairway.services.transient_errors import TRIES_MAX, again, may_pass


@asynccontextmanager
async def failing(dsn: str, code: str, *, tries: int) -> AsyncIterator[None]:
    """So many writes of jobs fail with this error, whoever writes them."""
    async with connected(dsn) as connection:
        await connection.execute(
            f"""
            CREATE SEQUENCE failures;
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
            BEGIN
                IF nextval('failures') <= {tries} THEN
                    RAISE 'injected' USING ERRCODE = '{code}';
                END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER fail BEFORE INSERT ON jobs EXECUTE FUNCTION fail();
            """
        )
        try:
            yield
        finally:
            await connection.execute("DROP FUNCTION fail CASCADE; DROP SEQUENCE failures")


async def count_jobs(dsn: str) -> int:
    async with connected(dsn) as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM jobs")
        return found


@pytest.mark.parametrize(  # an INSERT, a larger one, a COPY
    ("code", "jobs"), [("40001", 1), ("40P01", 3), ("55P03", 40), ("57014", 1)]
)
async def test_what_the_store_undid_is_tried_again(database_url: str, code: str, jobs: int) -> None:
    async with owner_on(database_url) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant)
        keyed = [new(idempotency_key=f"k{n}" if n % 2 else None) for n in range(jobs)]
        async with failing(database_url, code, tries=2):
            assert len(await submit(platform, tenant, *keyed)) == jobs
        assert await count_jobs(database_url) == 1 + jobs


@pytest.mark.parametrize("code", ["40P01", "53100", "53200", "25006", "58030", "57P01"])
async def test_what_does_not_pass_soon_is_an_answer(database_url: str, code: str) -> None:
    async with owner_on(database_url) as platform:
        tenant = await add_tenant(platform)
        await submit(platform, tenant)
        async with failing(database_url, code, tries=1000):
            with pytest.raises(Unavailable) as caught:
                await submit(platform, tenant)
        is_known = code not in ("58030", "57P01")
        assert ("nothing of it was kept" in caught.value.message) == is_known
        assert ("Idempotency-Key" in caught.value.message) != is_known
        await submit(platform, tenant)
        assert await count_jobs(database_url) == 2


async def test_who_was_sent_away_is_not_written_later(database_url: str) -> None:
    hasty = replace(QUICK, store_wait_seconds=0.6)
    async with owner_on(database_url, hasty) as platform, connected(database_url) as beside:
        tenant = await add_tenant(platform)
        await platform.directory.know_types(["work"])
        await beside.execute("BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        first = asyncio.create_task(submit(platform, tenant))
        await asyncio.sleep(0.1)
        behind = [asyncio.create_task(submit(platform, tenant)) for _ in range(3)]
        async with asyncio.timeout(30):
            answers = await asyncio.gather(first, *behind, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable] * 4
        await until(lambda: nobody_writes(database_url))  # what nobody waits for has ended
        await beside.execute("COMMIT")
        await submit(platform, tenant)
        assert await count_jobs(database_url) == 1


async def nobody_writes(dsn: str) -> bool:
    async with connected(dsn) as connection:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND state = 'active' AND query LIKE '%INSERT INTO jobs%' AND pid <> pg_backend_pid()"
        )
    return count == 0


async def test_another_try_has_an_end() -> None:
    tries = 0

    async def work(seconds: float) -> None:
        nonlocal tries
        tries += 1
        raise asyncpg.DeadlockDetectedError

    with pytest.raises(asyncpg.DeadlockDetectedError):
        await again(work, 20)
    assert tries == TRIES_MAX
    with pytest.raises(asyncpg.DeadlockDetectedError):
        await again(work, 0)
    assert tries == TRIES_MAX + 1


def test_a_fault_of_ours_does_not_pass() -> None:
    assert not may_pass(KeyError("x"))
    assert not may_pass(asyncpg.UniqueViolationError())
    assert may_pass(asyncpg.DiskFullError())
