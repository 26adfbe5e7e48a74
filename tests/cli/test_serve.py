"""`fairway server` without a database, or told to stop at once: what it says, and to whom."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.acceptance.house import free_port
from tests.cli.program import fairway
from tests.postgres import connected

from fairway.cli.processes import serve
from fairway.store.registry.tenants import found_cluster


def test_a_server_whose_database_is_away_says_where(tmp_path: Path) -> None:
    ended = fairway(
        tmp_path, "server", FAIRWAY_PORT="0", FAIRWAY_DATABASE_URL="postgresql://a:b@127.0.0.1:1/x"
    )
    assert "FAIRWAY_PORT must be from 1 to 65535, not 0." in ended.err
    url = "postgresql://somebody:secret@127.0.0.1:1/nowhere"
    ended = fairway(tmp_path, "server", "--port", str(free_port()), FAIRWAY_DATABASE_URL=url)
    assert ended.status == 1
    assert "No connection to the database at 127.0.0.1:1/nowhere: " in ended.err
    assert "FAIRWAY_DATABASE_URL" in ended.err
    assert "Traceback" not in ended.err
    assert "secret" not in ended.err


def test_a_server_needs_a_database(tmp_path: Path) -> None:
    ended = fairway(tmp_path, "server")
    assert ended.status == 1
    assert ended.err.startswith("fairway: Set FAIRWAY_DATABASE_URL")


def test_a_server_that_nobody_can_operate_says_what_to_do(
    tmp_path: Path, database_url: str
) -> None:
    """And that a setting of it does nothing, since the database was founded with another."""
    asyncio.run(_founded(database_url, shards=2))
    program = Path(sys.executable).parent / "fairway"
    given = {"PATH": "/usr/bin:/bin", "FAIRWAY_DATABASE_URL": database_url}
    given["FAIRWAY_SHARD_COUNT"] = "8"
    words = [str(program), "server", "--port", str(free_port())]
    server = subprocess.Popen(words, cwd=tmp_path, env=given, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        said = []
        for line in server.stderr:
            said.append(line)
            if "no operator's key" in line:
                break
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert "`fairway init` makes the first" in said[-1]
    assert "this database has 2 shards" in said[-2]
    assert "`fairway shards split --to 8`" in said[-2]
    assert server.returncode == 0


@pytest.mark.parametrize(("processes", "who"), [("1", "server"), ("2", "servers")])
def test_a_server_says_that_it_stops_and_that_it_has(
    tmp_path: Path, database_url: str, processes: str, who: str
) -> None:
    program = Path(sys.executable).parent / "fairway"
    given = {"PATH": "/usr/bin:/bin", "FAIRWAY_DATABASE_URL": database_url}
    words = [str(program), "server", "--port", str(free_port()), "--processes", processes]
    server = subprocess.Popen(words, cwd=tmp_path, env=given, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        ready = next(line for line in server.stderr if f"{who} ready" in line)
    finally:
        server.terminate()
        _, after = server.communicate(timeout=60)
    first, *_, last = [line for line in after.splitlines() if f'"event": "{who} ' in line]
    assert ready
    assert f"{who} stopping" in first
    assert "handing over, finishing what is under way" in first
    assert f"{who} stopped" in last
    assert server.returncode == 0


async def _founded(database_url: str, shards: int) -> None:
    async with connected(database_url) as connection:
        await found_cluster(connection, shards, "secret")


async def test_a_server_that_is_told_to_stop_waits_for_nobody_to_know_of_it() -> None:
    """Its rounds are over, so it would look in vain, and then say that it is ready."""

    class Ownership:
        async def looked(self) -> None:
            await asyncio.Event().wait()

    class Platform:
        ownership = Ownership()

    stopping, platform = asyncio.Event(), Platform()
    asyncio.get_running_loop().call_later(0.01, stopping.set)
    began = time.monotonic()
    await serve._known_to_others(platform, stopping)  # type: ignore[arg-type]
    assert time.monotonic() - began < serve.KNOWN_SECONDS_MAX / 2
