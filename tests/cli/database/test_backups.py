"""A backup is whole or not there; a restore goes where nothing is, and brings back every row."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import stat
from pathlib import Path

import msgspec
import pytest
from tests.postgres import connected
from tests.store.rows import add_jobs, new_job

from fairway.cli.database.backups import DUMP, MANIFEST, Manifest, backup, restore
from fairway.cli.processes.local_keys import FILE_NAME
from fairway.core.errors import FairwayError, InvalidRequest, Unavailable
from fairway.core.ids import TenantId
from fairway.core.tenant import TenantSettings
from fairway.store.connections.database import Connection
from fairway.store.postgres.dump import PostgresTools, without_password
from fairway.store.registry import tenants
from fairway.store.schema.migrate import migrate_at

OBJECT = "payloads/20261117/1/large"


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "objects"
    monkeypatch.setenv("FAIRWAY_STORAGE_URL", f"file://{folder}")
    (folder / OBJECT).parent.mkdir(parents=True)
    (folder / OBJECT).write_bytes(b"large")
    (folder / ".parts").mkdir()
    (folder / ".parts/half").write_bytes(b"half")
    return folder


async def furnish(dsn: str) -> list[str]:
    async with connected(dsn) as connection:
        await tenants.add_tenant(connection, "acme", TenantSettings(tier="pro"))
        await add_jobs(connection, *(new_job(tenant=TenantId(1)) for _ in range(20)))
        await connection.execute(
            "INSERT INTO event_heads VALUES (0, 1, 7);"
            "INSERT INTO cluster (shard_count, secret) VALUES (1, 'secret');"
            "INSERT INTO shards (shard, term) VALUES (0, 5)"
        )
        return await jobs_of(connection)


async def jobs_of(connection: Connection) -> list[str]:
    rows = await connection.fetch("SELECT jobs::text AS row FROM jobs ORDER BY id")
    return [row["row"] for row in rows]


def test_every_row_and_object_comes_back(
    database_url: str,
    empty_database_url: str,
    objects: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = asyncio.run(furnish(database_url))
    backup(tmp_path / "nightly", database_url=database_url)
    assert stat.S_IMODE((tmp_path / "nightly").stat().st_mode) == 0o700
    monkeypatch.setenv("FAIRWAY_STORAGE_URL", f"file://{tmp_path}/elsewhere")
    restore(tmp_path / "nightly", database_url=empty_database_url)
    assert (tmp_path / "elsewhere" / OBJECT).read_bytes() == b"large"
    assert list((tmp_path / "elsewhere/.parts").iterdir()) == []

    async def look() -> None:
        async with connected(empty_database_url) as connection:
            assert await jobs_of(connection) == before
            assert await connection.fetchval("SELECT last FROM event_heads") > 10**9
            assert await connection.fetchval("SELECT term FROM shards") > 100_000
            ids = "SELECT nextval(pg_get_serial_sequence('alarm_history', 'id'))"
            assert await connection.fetchval(ids) > 10**9
            secured = "SELECT relrowsecurity FROM pg_class WHERE oid = 'jobs'::regclass"
            assert await connection.fetchval(secured)

    asyncio.run(look())
    with pytest.raises(InvalidRequest, match="go into a new folder"):
        restore(tmp_path / "nightly", database_url=database_url)
    monkeypatch.setenv("FAIRWAY_STORAGE_URL", f"file://{tmp_path}/third")
    with pytest.raises(InvalidRequest, match="something in this database already"):
        restore(tmp_path / "nightly", database_url=database_url)


def test_a_restore_that_was_killed_leaves_nothing_that_a_server_starts_on(
    database_url: str,
    empty_database_url: str,
    objects: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asyncio.run(furnish(database_url))
    shutil.rmtree(objects)
    backup(tmp_path / "nightly", database_url=database_url)

    async def killed(*args: object, **settings: object) -> None:
        raise ConnectionResetError

    with monkeypatch.context() as patched:
        patched.setattr(PostgresTools, "restore", killed)
        with pytest.raises(ConnectionResetError):
            restore(tmp_path / "nightly", database_url=empty_database_url, as_copy=True)
    with pytest.raises(Unavailable, match="A restore into this database") as refusal:
        asyncio.run(migrate_at(empty_database_url))
    assert refusal.value.code == "RESTORE_UNFINISHED"
    restore(tmp_path / "nightly", database_url=empty_database_url, as_copy=True)
    assert asyncio.run(migrate_at(empty_database_url)) == []


def manifest_of(folder: Path) -> Manifest:
    return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)


def rewrite(folder: Path, **changes: object) -> None:
    found = msgspec.structs.replace(manifest_of(folder), **changes)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(found))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A backup as far as the list of what it is."""
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / DUMP).write_bytes(b"dump")
    manifest = Manifest(
        format=1,
        fairway="0.1.0",
        made_at="2026-11-17T16:00:00+00:00",
        schema=1,
        postgresql="18.1",
        dump_bytes=4,
        dump_sha256="",
        objects=0,
        objects_bytes=0,
        storage="",
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return folder


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2, "fairway": "9.9"}, "newer Fairway (9.9)"),
        ({"schema": 9999}, "schema 9999, this version of Fairway knows"),
        ({}, "is damaged"),
    ],
)
def test_what_cannot_be_restored_is_refused_before_anything_is_touched(
    made: Path, tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    rewrite(made, **changes)
    with pytest.raises(FairwayError) as refusal:
        restore(made, data_dir=tmp_path / "data")
    assert words in refusal.value.message
    assert not (tmp_path / "data").exists()


def test_a_data_folder_with_a_platform_is_named_as_what_it_is(made: Path, tmp_path: Path) -> None:
    rewrite(made, objects=1, dump_sha256=hashlib.sha256(b"dump").hexdigest())
    (tmp_path / "data/objects").mkdir(parents=True)
    with pytest.raises(InvalidRequest, match=r"a platform in .*data already.*--data-dir"):
        restore(made, data_dir=tmp_path / "data")


def test_a_backup_with_keys_in_it_says_so(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    backup(tmp_path / "without", database_url=database_url, data_dir=data)
    said = capsys.readouterr().err
    assert "Other keys are in it as digests" in said
    assert "the keys of `fairway up`" not in said
    (data / FILE_NAME).write_text("{}")
    backup(tmp_path / "with", database_url=database_url, data_dir=data)
    assert "the keys of `fairway up`" in capsys.readouterr().err


def test_a_folder_that_was_not_finished_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no backup, or one that was not finished"):
        restore(tmp_path, data_dir=tmp_path / "data")


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path, objects: Path) -> None:
    with pytest.raises(InvalidRequest, match="There is no database in"):
        backup(tmp_path / "nightly", data_dir=tmp_path / "none")
    with pytest.raises((Unavailable, OSError)):
        backup(tmp_path / "nightly", database_url="postgresql://nobody@127.0.0.1:9/none")
    assert [one.name for one in tmp_path.iterdir()] == ["objects"]
    with pytest.raises(InvalidRequest, match="is there already"):
        backup(objects, data_dir=tmp_path / "none")


@pytest.mark.parametrize(
    ("dsn", "seen", "secret"),
    [
        (
            "postgresql://a:b%40c@h:1/d?sslmode=require",
            "postgresql://a@h:1/d?sslmode=require",
            "b@c",
        ),
        ("postgresql://a@/d?host=/tmp/x&port=5", "postgresql://a@/d?host=/tmp/x&port=5", ""),
        ("postgresql://h1,h2/d?user=a&password=p", "postgresql://h1,h2/d?user=a", "p"),
        ("postgresql:///d?host=/tmp", "postgresql:///d?host=/tmp", ""),
    ],
)
def test_no_password_is_among_the_arguments(dsn: str, seen: str, secret: str) -> None:
    address, environment = without_password(dsn)
    assert address == seen
    assert environment.get("PGPASSWORD", "") == secret
