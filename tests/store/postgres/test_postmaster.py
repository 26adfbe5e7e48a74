"""The postmaster and what a crash leaves of it: told apart from strangers, ended, adopted."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
from tests.store.postgres.test_embedded import (
    connected,
    hear,
    kill,
    read_note,
    write_note,
)

from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.os_user import account_for

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


async def leave_running(data_dir: Path) -> None:
    """Start a PostgreSQL under another Fairway, then kill that Fairway without warning."""
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER_FAIRWAY, str(data_dir), stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert await other.stdout.readline() == b"ready\n"
    other.kill()
    await other.wait()


async def running(dsn: str, backend: int) -> None:
    """Wait until this backend works on a statement."""
    async with connected(dsn) as connection:
        query = "SELECT state FROM pg_stat_activity WHERE pid = $1"
        while await connection.fetchval(query, backend) != "active":
            await connection.execute("SELECT pg_sleep(0.01)")


def pid_in_file(data_dir: Path) -> int:
    return int((data_dir / "pgdata/postmaster.pid").read_text().split()[0])


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
