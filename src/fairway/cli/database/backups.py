"""`fairway backup` and `restore`: a platform as a folder, and a platform made from one.

    FOLDER/           0700
      database.dump   one moment of the database, by pg_dump
      objects/        large payloads, results and checkpoints, where they are in a folder
      client.json     the keys of `fairway up`, if it made any here
      backup.json     what all this is; written last, so without it nothing is whole

The database first, then the objects: what was stored in between is extra, and no row refers to what
is not in the copy. A restore goes into a database and a folder where nothing is.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fairway.cli.processes.local_keys import FILE_NAME
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.runtime.settings import Settings, load

if TYPE_CHECKING:
    from fairway.store.postgres.dump import PostgresTools

FORMAT = 1
DUMP, OBJECTS, MANIFEST = "database.dump", "objects", "backup.json"
PARTS = ".parts"  # of the folder of objects: what is being written, and the proof of its disk
ELSEWHERE = "Objects are in {address}, which is not copied: back it up by its own means."
KEEP_IT_SAFE = (
    "Keep it as safe as the database: it has payloads, results and what webhooks are signed with{}."
    " Other keys are in it as digests."
)
WITH_KEYS = ", and the keys of `fairway up`, the operator's among them"
IN_ITS_PLACE = "It takes the original's place: one that still runs must end, or restore --as-copy."


class Manifest(msgspec.Struct, kw_only=True):
    format: int
    fairway: str
    made_at: str
    schema: int  # the last migration
    postgresql: str
    dump_bytes: int
    dump_sha256: str
    objects: int
    objects_bytes: int
    storage: str  # where objects are that are not in here; empty: here, or none


class Copied(NamedTuple):
    files: int = 0
    size_bytes: int = 0


def backup(
    folder: Path | None = None,
    *,
    database_url: str | None = None,
    data_dir: Path | None = None,
) -> None:
    """Copy the platform into a folder, while it runs: the database, then the objects.

    Every job that was acknowledged before this began is in it. Prints the folder.

    Parameters
    ----------
    folder
        Where to; must not be there yet (default: fairway-backup- and the time, here).
    database_url
        postgresql://… as the owner of the tables (default FAIRWAY_OWNER_DATABASE_URL, else
        FAIRWAY_DATABASE_URL).
    data_dir
        The data folder, when it brings its own PostgreSQL (default .fairway).
    """
    from fairway.runtime.told_to_end import run

    settings = load(os.environ, database_url=database_url, data_dir=data_dir)
    target = folder or Path(f"fairway-backup-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    run(_back_up(settings, _must_be_new(target)))
    sys.stdout.write(f"{target}\n")


def restore(
    folder: Path,
    *,
    as_copy: bool = False,
    database_url: str | None = None,
    data_dir: Path | None = None,
) -> None:
    """Make a platform from a backup, in a data folder or a database where nothing is yet.

    Jobs that ended after the backup run again; those that ran then are granted again.

    Parameters
    ----------
    folder
        What `fairway backup` made.
    as_copy
        It will run beside the original: webhooks are off, schedules paused, and object storage is
        another one.
    database_url
        postgresql://… of an empty database, as its owner (default FAIRWAY_OWNER_DATABASE_URL,
        else FAIRWAY_DATABASE_URL).
    data_dir
        The data folder to make, when it brings its own PostgreSQL (default .fairway).
    """
    from fairway.runtime.told_to_end import run

    settings = load(os.environ, database_url=database_url, data_dir=data_dir)
    run(_restore(settings, folder, _read_manifest(folder), as_copy=as_copy))


# -- backup --------------------------------------------------------------------------------------


def _must_be_new(folder: Path) -> Path:
    if folder.exists():
        raise InvalidRequest(f"{folder} is there already; a backup goes into a folder of its own.")
    return folder


async def _back_up(settings: Settings, target: Path) -> None:
    """Beside its place, then renamed: what has the name is whole."""
    import asyncio

    unfinished = target.with_name(f".{target.name}.unfinished-{os.getpid()}")
    unfinished.mkdir(mode=0o700, parents=True)
    os.close(_new_file(unfinished / DUMP))  # for its owner only, whoever writes it
    try:
        schema, server = await _dump(settings, unfinished / DUMP)
        copied, storage = Copied(), ""
        if (objects := _objects_folder(settings)) is None:
            storage = settings.storage_url or ""
            _tell(ELSEWHERE.format(address=storage))
        elif objects.is_dir():
            copied = await asyncio.to_thread(_copy_objects, objects, unfinished / OBJECTS)
        has_keys = _copy_keys(settings.data_dir / FILE_NAME, unfinished)
        manifest = Manifest(
            format=FORMAT,
            fairway=version("fairway"),
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            schema=schema,
            postgresql=server,
            dump_bytes=(unfinished / DUMP).stat().st_size,
            dump_sha256=await asyncio.to_thread(_digest, unfinished / DUMP),
            objects=copied.files,
            objects_bytes=copied.size_bytes,
            storage=storage,
        )
        await asyncio.to_thread(_write_manifest, unfinished, manifest)
        unfinished.rename(target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    _tell(f"The database: {manifest.dump_bytes:,} bytes; objects: {copied.files:,}.")
    _tell(KEEP_IT_SAFE.format(WITH_KEYS if has_keys else ""))


async def _dump(settings: Settings, file: Path) -> tuple[int, str]:
    """The last migration of what was dumped, and the server's version."""
    from fairway.cli.processes.postgres import owner_address
    from fairway.store.connections.hosts import connect_for_once
    from fairway.store.schema.migrate import last_applied

    began = time.monotonic()
    _there_is_a_platform(settings)
    async with owner_address(settings) as dsn:
        connection = await connect_for_once(dsn, "fairway-backup")
        try:
            schema = await last_applied(connection)
            server: str = await connection.fetchval("SHOW server_version")
            major = connection.get_server_version().major
        finally:
            await connection.close()
        if not schema:
            raise InvalidRequest("There is no Fairway in this database.")
        await _tools(settings, major).dump(dsn, file)
    _tell(f"Dumped the database in {time.monotonic() - began:.1f} s")
    return schema, server


def _there_is_a_platform(settings: Settings) -> None:
    from fairway.cli.processes.data_folder import postgres_folder

    if settings.database_url is None and not postgres_folder(settings.data_dir).exists():
        raise InvalidRequest(
            f"There is no database in {settings.data_dir}: set FAIRWAY_DATABASE_URL or --data-dir."
        )


def _tools(settings: Settings, server_major: int) -> PostgresTools:
    import signal
    from functools import partial

    from fairway.runtime.parent_death import die_with_parent
    from fairway.store.postgres.binaries import client_programs
    from fairway.store.postgres.dump import PostgresTools

    tie = partial(die_with_parent, signal.SIGTERM)
    return PostgresTools(client_programs(settings.postgres_bin, server_major), tie)


def _objects_folder(settings: Settings) -> Path | None:
    """None: they are in a bucket."""
    if settings.storage_url is None:
        return settings.data_dir / OBJECTS
    if settings.storage_url.startswith("file://"):
        return Path(settings.storage_url.removeprefix("file://"))
    return None


def _copy_objects(source: Path, target: Path) -> Copied:
    """All that are whole; one that goes while we look was not needed any more."""
    files = size_bytes = 0
    for above, folders, names in os.walk(source):
        folders[:] = [one for one in folders if one != PARTS]
        place = target / Path(above).relative_to(source)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in names:
            try:
                size_bytes += _copy(Path(above, name), place / name)
                files += 1
            except FileNotFoundError:
                continue
    return Copied(files, size_bytes)


def _copy(source: Path, target: Path) -> int:
    """On disk when this returns; for its owner only."""
    with source.open("rb") as read, os.fdopen(_new_file(target), "wb") as written:
        shutil.copyfileobj(read, written, 1 << 20)
        written.flush()
        os.fsync(written.fileno())
        return written.tell()


def _new_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _copy_keys(source: Path, folder: Path) -> bool:
    """Whether there are any."""
    if not source.exists():
        return False
    _copy(source, folder / FILE_NAME)
    return True


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    with (folder / DUMP).open("rb") as dump:
        os.fsync(dump.fileno())
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    with os.fdopen(_new_file(folder / MANIFEST), "wb") as written:
        written.write(text + b"\n")
        written.flush()
        os.fsync(written.fileno())


def _digest(file: Path) -> str:
    import hashlib

    with file.open("rb") as dump:
        return hashlib.file_digest(dump, "sha256").hexdigest()


# -- restore -------------------------------------------------------------------------------------


def _read_manifest(folder: Path) -> Manifest:
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise InvalidRequest(
            f"{folder} has no {MANIFEST}: it is no backup, or one that was not finished."
        ) from None
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"{folder / MANIFEST} cannot be read: {error}.") from None
    if found.format > FORMAT:
        raise InvalidRequest(f"{folder} was made by a newer Fairway ({found.fairway}): use that.")
    return found


async def _restore(settings: Settings, folder: Path, manifest: Manifest, *, as_copy: bool) -> None:
    import asyncio

    _check_schema(manifest)
    if await asyncio.to_thread(_digest, folder / DUMP) != manifest.dump_sha256:
        raise InvalidRequest(f"{folder / DUMP} is damaged: its digest is not the one written down.")
    objects = _objects_folder(settings)
    if manifest.objects and (objects is None or objects.exists()):
        raise _objects_are_there(settings, objects)
    await _restore_database(settings, folder / DUMP, as_copy=as_copy)
    if manifest.objects and objects is not None:
        await asyncio.to_thread(_copy_objects, folder / OBJECTS, objects)
        (objects / PARTS).mkdir(mode=0o700, exist_ok=True)
    if settings.database_url is None and (folder / FILE_NAME).exists():
        (settings.data_dir / FILE_NAME).unlink(missing_ok=True)
        _copy(folder / FILE_NAME, settings.data_dir / FILE_NAME)
    if not as_copy:
        _tell(IN_ITS_PLACE)
    if manifest.storage and not as_copy:
        _tell(ELSEWHERE.format(address=manifest.storage))
    _tell(f"Restored what was there at {manifest.made_at}. Start a server, then `fairway doctor`.")


def _objects_are_there(settings: Settings, objects: Path | None) -> InvalidRequest:
    if settings.storage_url is None:
        return InvalidRequest(
            f"There is a platform in {settings.data_dir} already; a restore makes a data folder"
            " that is not there yet: name one with --data-dir."
        )
    where = settings.storage_url if objects is None else objects
    return InvalidRequest(
        f"The backup has objects, which go into a new folder, and not into {where}. Set"
        " FAIRWAY_STORAGE_URL to file:///… of one that is not there yet."
    )


def _check_schema(manifest: Manifest) -> None:
    from fairway.store.schema.migrate import all_migrations

    newest = all_migrations()[-1].number
    if manifest.schema > newest:
        raise Unavailable(
            f"The backup has schema {manifest.schema:04}, this version of Fairway knows"
            f" {newest:04}. Restore it with the version that made it ({manifest.fairway}), or a"
            " newer one.",
            code="SCHEMA_TOO_NEW",
        )


async def _restore_database(settings: Settings, dump: Path, *, as_copy: bool) -> None:
    from fairway.cli.processes.data_folder import close_to_others, make_data_folder
    from fairway.cli.processes.postgres import embedded

    if settings.database_url is not None:
        dsn = settings.owner_database_url or settings.database_url
        await _read_back(settings, dsn, dump, as_copy=as_copy)
        return
    make_data_folder(settings.data_dir)
    close_to_others(settings.data_dir, has_postgres=True)
    postgres = embedded(settings)
    dsn = await postgres.start(_tell)
    try:
        await _read_back(settings, dsn, dump, as_copy=as_copy)
    finally:
        await postgres.stop()


async def _read_back(settings: Settings, dsn: str, dump: Path, *, as_copy: bool) -> None:
    from fairway.store.connections.hosts import connect_for_once
    from fairway.store.connections.row_security import make_roles
    from fairway.store.schema.migrate import migrate_at
    from fairway.store.schema.restored import begin, is_empty, make_ready

    connection = await connect_for_once(dsn, "fairway-restore")
    try:
        await connection.execute("SET statement_timeout = 0")
        if not await is_empty(connection):
            raise InvalidRequest(
                "There is something in this database already; a restore goes into an empty one."
            )
        if settings.row_security:
            await make_roles(connection)  # policies name them
        await begin(connection)
        began = time.monotonic()
        await _tools(settings, connection.get_server_version().major).restore(dsn, dump)
        await make_ready(connection, as_copy=as_copy)
        _tell(f"Read the database back in {time.monotonic() - began:.1f} s")
    finally:
        await connection.close()
    await migrate_at(dsn, _tell, roles=settings.row_security)


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # standard output has the folder and nothing else
