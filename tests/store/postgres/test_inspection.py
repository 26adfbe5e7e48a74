"""A PostgreSQL looked at from outside: ours is in order, one that is away is a finding."""

from __future__ import annotations

from pathlib import Path

from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.inspection import inspect_database


async def test_our_own_server_passes_our_own_inspection(postgres: EmbeddedPostgres) -> None:
    assert await inspect_database(await postgres.start(print)) == []


async def test_inspecting_a_server_that_is_not_there_is_a_finding(room: Path) -> None:
    (finding,) = await inspect_database(f"postgresql://fairway@/fairway?host={room}")
    assert finding.level == "error"
