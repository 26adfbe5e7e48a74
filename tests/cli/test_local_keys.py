"""`client.json`: for its owner alone, read again as it was written, and no reason to fail."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.services.platform_room import QUICK, platform_on

from fairway.cli.processes.local_keys import FILE_NAME, LocalKeys, read_keys, write_keys
from fairway.cli.processes.up_server import first_keys
from fairway.runtime.settings import Settings

KEYS = LocalKeys(url="http://127.0.0.1:1", api_key="a", worker_key="b", operator_key="c")


def test_what_is_written_is_read_and_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    before = os.umask(0)
    try:
        write_keys(path, KEYS)
    finally:
        os.umask(before)
    assert read_keys(path) == KEYS
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_shorter_one_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    write_keys(path, LocalKeys(url="u" * 500, api_key="a", worker_key="b", operator_key="c"))
    write_keys(path, KEYS)
    assert read_keys(path) == KEYS


@pytest.mark.parametrize("text", [None, b"", b"{", b"{}", b"\xff"])
def test_what_is_none_is_none(tmp_path: Path, text: bytes | None) -> None:
    path = tmp_path / FILE_NAME
    if text is not None:
        path.write_bytes(text)
    assert read_keys(path) is None


async def test_keys_of_a_first_start_say_whose_they_are(tmp_path: Path, database_url: str) -> None:
    async with platform_on(database_url) as platform:
        _, are_new = await first_keys(platform, Settings(data_dir=tmp_path))
        async with platform.database.people() as connection:
            rows = await connection.fetch("SELECT scope, name FROM api_keys")
    assert are_new
    assert sorted(map(tuple, rows)) == [
        (scope, f"fairway up: {scope}") for scope in ("operator", "tenant", "worker")
    ]


async def test_a_region_that_is_not_the_directory_makes_no_tenant(
    tmp_path: Path, database_url: str
) -> None:
    """It would have the number that the directory gives to its own next one."""
    regions = "eu=http://127.0.0.1:1;us=http://127.0.0.1:2"
    secret = "a secret of both regions"
    far = replace(QUICK, region="us", regions=regions, region_secret=secret)
    async with platform_on(database_url, far) as platform:
        settings = Settings(data_dir=tmp_path)
        keys, are_new = await first_keys(platform, settings)
        assert are_new
        assert keys.api_key == ""
        async with platform.database.people() as connection:
            assert await connection.fetchval("SELECT count(*) FROM tenants") == 0
        assert await first_keys(platform, settings) == (keys, False), "nor keys at every start"
