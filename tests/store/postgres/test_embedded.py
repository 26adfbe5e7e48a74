"""The embedded PostgreSQL from first start to last stop, on the real thing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from fairway.core.errors import Unavailable
from fairway.store.postgres.embedded import EmbeddedPostgres


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def write_note(dsn: str) -> None:
    async with connected(dsn) as connection:
        await connection.execute("DROP TABLE IF EXISTS note; CREATE TABLE note (text text)")
        await connection.execute("INSERT INTO note VALUES ('kept')")


async def read_note(dsn: str) -> str:
    async with connected(dsn) as connection:
        return str(await connection.fetchval("SELECT text FROM note"))


async def kill(postgres: EmbeddedPostgres) -> str:
    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGKILL)
    return await postgres.wait()


# --- first start, restart ----------------------------------------------------------------------


async def test_first_start_makes_a_private_database(
    fresh_postgres: EmbeddedPostgres, room: Path, said: list[str]
) -> None:
    dsn = await fresh_postgres.start(said.append)
    async with connected(dsn) as connection:
        assert await connection.fetchval("SELECT current_database()") == "fairway"
        assert await connection.fetchval("SHOW listen_addresses") == ""
        assert await connection.fetchval("SHOW jit") == "off"
    assert "Making a new PostgreSQL 18 database" in said[0]
    assert (room / "data").stat().st_mode & 0o777 == 0o700
    assert (room / "data/socket").stat().st_mode & 0o777 == 0o700
    assert (room / "data/VERSION").read_text() == "postgresql 18\nlayout 1\n"


async def test_restart_keeps_data_and_stop_may_be_called_twice(
    postgres: EmbeddedPostgres, said: list[str]
) -> None:
    await postgres.stop()
    await write_note(await postgres.start(said.append))
    await postgres.stop()
    await postgres.stop()
    assert postgres.pid is None
    said.clear()
    assert await read_note(await postgres.start(said.append)) == "kept"
    assert said == []


async def test_starting_twice_returns_the_same_server(postgres: EmbeddedPostgres) -> None:
    first = await postgres.start(print), postgres.pid
    assert (await postgres.start(print), postgres.pid) == first


# --- crashes and what they leave behind --------------------------------------------------------


async def test_a_killed_postgres_is_noticed_and_recovers(
    postgres: EmbeddedPostgres, said: list[str]
) -> None:
    await write_note(await postgres.start(said.append))
    assert "ended by itself" in await kill(postgres)
    assert await read_note(await postgres.start(said.append)) == "kept"
    assert any("did not stop cleanly" in line for line in said)


async def test_an_ordered_stop_is_no_alarm(postgres: EmbeddedPostgres) -> None:
    await postgres.start(print)
    watch = asyncio.create_task(postgres.wait())
    await asyncio.gather(postgres.stop(), postgres.stop())
    assert await watch == ""


async def test_a_long_recovery_is_told_and_not_cut_short(
    postgres: EmbeddedPostgres, said: list[str]
) -> None:
    await postgres.start(said.append)
    await kill(postgres)
    told = asyncio.Event()
    starting = asyncio.create_task(postgres.start(hear("is recovering from a crash, ", told)))
    pid = await launched(postgres)
    os.kill(pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(60):
            await told.wait()
    finally:
        os.kill(pid, signal.SIGCONT)
    await starting


async def launched(postgres: EmbeddedPostgres) -> int:
    """The new postmaster's number, as soon as there is one."""
    while (pid := postgres.pid) is None:  # noqa: ASYNC110 - the launch announces itself in no other way
        await asyncio.sleep(0)
    return pid


def hear(expected: str, told: asyncio.Event) -> Callable[[str], None]:
    return lambda message: told.set() if expected in message else None


# --- another Fairway ---------------------------------------------------------------------------


async def test_a_folder_in_use_is_refused_and_left_alone(
    postgres: EmbeddedPostgres, data_dir: Path
) -> None:
    dsn = await postgres.start(print)
    with pytest.raises(Unavailable, match="Another Fairway is using this data folder"):
        await EmbeddedPostgres(data_dir).start(print)
    await write_note(dsn)


# --- what it finds in its folder ---------------------------------------------------------------


async def test_failure_to_start_shows_what_postgres_said(
    fresh_postgres: EmbeddedPostgres, room: Path
) -> None:
    await fresh_postgres.start(print)
    await fresh_postgres.stop()
    with (room / "data/pgdata/postgresql.conf").open("a") as settings:
        settings.write("no_such_setting = 1\n")
    with pytest.raises(Unavailable, match=r"did not start(.|\n)*no_such_setting"):
        await fresh_postgres.start(print)
    assert fresh_postgres.pid is None


async def test_a_long_path_moves_the_socket_elsewhere(room: Path) -> None:
    postgres = EmbeddedPostgres(room / ("a long, long folder name " * 6).strip() / "data")
    dsn = await postgres.start(print)
    await write_note(dsn)
    await postgres.stop()
    socket_dir = Path(dsn.split("host=")[1].split("&")[0])
    assert not socket_dir.is_relative_to(room)
    assert os.stat(socket_dir).st_mode & 0o777 == 0o700
    os.rmdir(socket_dir)


async def test_a_folder_of_another_major_version_is_refused(
    fresh_postgres: EmbeddedPostgres, room: Path
) -> None:
    await fresh_postgres.start(print)
    await fresh_postgres.stop()
    (room / "data/pgdata/PG_VERSION").write_text("17\n")
    with pytest.raises(Unavailable, match="made by PostgreSQL 17"):
        await fresh_postgres.start(print)
