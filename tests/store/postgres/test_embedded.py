"""The embedded PostgreSQL from first start to last stop, on the real thing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from fairway.core.errors import Unavailable
from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.inspection import inspect_database
from fairway.store.postgres.os_user import account_for, traversable_by

OTHER_FAIRWAY = """
import asyncio, sys
from pathlib import Path
from fairway.store.postgres.embedded import EmbeddedPostgres

async def main():
    await EmbeddedPostgres(Path(sys.argv[1])).start(lambda message: None)
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def open_room() -> Iterator[Path]:
    """An empty folder that every account can reach, unlike pytest's own."""
    shared = Path(tempfile.gettempdir())
    if traversable_by(account_for(shared / "absent"), shared / "absent") is not None:
        shared = Path("/tmp")
    with tempfile.TemporaryDirectory(prefix="fw-", dir=shared) as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture
def room() -> Iterator[Path]:
    with open_room() as made:
        yield made


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    """One data folder for all tests that leave it whole: making one takes most of a second."""
    with open_room() as made:
        yield made / "data"


@pytest.fixture
async def postgres(data_dir: Path) -> AsyncIterator[EmbeddedPostgres]:
    postgres = EmbeddedPostgres(data_dir)
    yield postgres
    await postgres.stop()


@pytest.fixture
async def fresh_postgres(room: Path) -> AsyncIterator[EmbeddedPostgres]:
    postgres = EmbeddedPostgres(room / "data")
    yield postgres
    await postgres.stop()


@pytest.fixture
def said() -> list[str]:
    return []


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


async def leave_running(data_dir: Path) -> None:
    """Start a PostgreSQL under another Fairway, then kill that Fairway without warning."""
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER_FAIRWAY, str(data_dir), stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert await other.stdout.readline() == b"ready\n"
    other.kill()
    await other.wait()


async def kill(postgres: EmbeddedPostgres) -> str:
    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGKILL)
    return await postgres.wait()


async def running(dsn: str, backend: int) -> None:
    """Wait until this backend works on a statement."""
    async with connected(dsn) as connection:
        query = "SELECT state FROM pg_stat_activity WHERE pid = $1"
        while await connection.fetchval(query, backend) != "active":
            await connection.execute("SELECT pg_sleep(0.01)")


def pid_in_file(data_dir: Path) -> int:
    return int((data_dir / "pgdata/postmaster.pid").read_text().split()[0])


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


async def test_our_own_server_passes_our_own_inspection(postgres: EmbeddedPostgres) -> None:
    assert await inspect_database(await postgres.start(print)) == []


async def test_inspecting_a_server_that_is_not_there_is_a_finding(room: Path) -> None:
    (finding,) = await inspect_database(f"postgresql://fairway@/fairway?host={room}")
    assert finding.level == "error"


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


async def test_a_stale_pid_file_that_names_a_stranger_is_set_aside(
    postgres: EmbeddedPostgres, data_dir: Path, said: list[str]
) -> None:
    await write_note(await postgres.start(said.append))
    left_behind = lock_files(data_dir)
    pid = str(postgres.pid)
    await postgres.stop()
    with decoy_of(data_dir) as decoy:
        for path, text in left_behind.items():
            path.write_text(text.replace(pid, str(decoy.pid), 1))
        assert await read_note(await postgres.start(said.append)) == "kept"
        assert decoy.poll() is None
        decoy.kill()
    assert any(f"(pid {decoy.pid}) did not stop cleanly" in line for line in said)


def lock_files(data_dir: Path) -> dict[Path, str]:
    names = ("pgdata/postmaster.pid", "socket/.s.PGSQL.5432.lock")
    return {data_dir / name: (data_dir / name).read_text() for name in names}


def decoy_of(data_dir: Path) -> subprocess.Popen[bytes]:
    """A stranger under the same account in the same folder: PostgreSQL itself would give up."""
    options = account_for(data_dir).process_options()
    return subprocess.Popen(["sleep", "60"], cwd=data_dir / "pgdata", **options)


async def test_a_backend_that_outlives_its_postmaster_is_ended(
    postgres: EmbeddedPostgres, said: list[str]
) -> None:
    dsn = await postgres.start(said.append)
    async with connected(dsn) as connection:
        backend = await connection.fetchval("SELECT pg_backend_pid()")
        busy = asyncio.create_task(connection.execute("DO $$ BEGIN LOOP END LOOP; END $$"))
        await running(dsn, backend)
        await kill(postgres)
        await postgres.start(said.append)
        with pytest.raises((OSError, asyncpg.PostgresError)):
            await busy
    assert f"Ending pid {backend}, which outlived its PostgreSQL" in said


# --- another Fairway ---------------------------------------------------------------------------


async def test_a_postgres_left_running_is_adopted_and_stopped(
    postgres: EmbeddedPostgres, data_dir: Path, said: list[str]
) -> None:
    await leave_running(data_dir)
    pid = pid_in_file(data_dir)
    await write_note(await postgres.start(said.append))
    assert postgres.pid == pid
    assert f"left running (pid {pid})" in said[0]
    await postgres.stop()
    assert "postmaster.pid" not in os.listdir(data_dir / "pgdata")


async def test_a_postgres_on_its_way_down_is_awaited_then_replaced(
    postgres: EmbeddedPostgres, data_dir: Path
) -> None:
    await leave_running(data_dir)
    pid = pid_in_file(data_dir)
    told = asyncio.Event()
    async with connected(f"postgresql://fairway@/fairway?host={data_dir}/socket&port=5432"):
        os.kill(pid, signal.SIGTERM)  # waits for its clients
        starting = asyncio.create_task(postgres.start(hear("has yet to answer", told)))
        await told.wait()
    await starting
    assert postgres.pid not in (None, pid)


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
