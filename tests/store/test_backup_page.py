"""Commands of docs/UPGRADING.md as they stand: what was copied is there in another database."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

from tests.postgres import connected

from fairway.core.tenant import TenantSettings
from fairway.store.registry import tenants

PAGE = Path(__file__).parents[2] / "docs/UPGRADING.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


async def run(block: str, folder: Path, dsn: str) -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FAIRWAY_DATABASE_URL": dsn,
        "FAIRWAY_OWNER_DATABASE_URL": dsn,
        "FAIRWAY_STORAGE_URL": f"file://{folder}/objects",
    }
    program = await asyncio.create_subprocess_exec(
        "sh", "-e", "-c", block, cwd=folder, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await program.communicate()
    assert program.returncode == 0, said.decode()


async def test_a_backup_is_restored(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    backup, restore = BLOCKS
    async with connected(database_url) as connection:
        await tenants.add_tenant(connection, "acme", TenantSettings(tier="pro"))
    await run(backup, tmp_path, database_url)
    await run(restore, tmp_path, empty_database_url)
    async with connected(empty_database_url) as connection:
        assert await connection.fetchval("SELECT count(*) FROM tenants WHERE name = 'acme'") == 1
        assert await connection.fetchval(
            "SELECT relrowsecurity FROM pg_class WHERE relname = 'jobs'"
        )
