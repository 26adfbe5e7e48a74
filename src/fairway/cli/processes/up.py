"""`fairway up`: the whole platform on one machine, with one command.

PostgreSQL first, then the server, then companions in processes of their own: a worker for each app
and the programs that stand beside. Stopped in reverse: companions end (workers drain), the server
finishes, PostgreSQL stops last. All state is in one folder.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import uvloop
from cyclopts import Parameter
from rich.console import Console

from fairway.api.dashboard.sign_ins import link_at
from fairway.api.dashboard.static_files import is_built
from fairway.cli.processes.companions import Companions, Stops, WorkerWishes
from fairway.cli.processes.data_folder import close_to_others, make_data_folder, postgres_folder
from fairway.cli.processes.local_keys import FILE_NAME, LocalKeys, read_keys, write_keys
from fairway.cli.processes.serve import checked, listen, serve
from fairway.cli.processes.signals import stop_on_signals
from fairway.cli.processes.work import parse_pools
from fairway.core.errors import InvalidRequest
from fairway.core.ids import TenantId
from fairway.core.keys import ApiKey
from fairway.core.sign_in import LINK_SECONDS
from fairway.core.tenant import TenantSettings
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.log_options import FormatName, LevelName, choose
from fairway.runtime.loops import pause
from fairway.runtime.random_ids import new_api_key
from fairway.runtime.settings import Settings, load
from fairway.runtime.telemetry import log_as, logger
from fairway.sdk.loading import LoadError, look_for
from fairway.services.platform import Platform
from fairway.services.registry.principal import KeyWish
from fairway.store.postgres.embedded import EmbeddedPostgres

log = logger("up")
screen = Console(stderr=True, highlight=False, soft_wrap=True)  # a key must stay in one piece

POSTGRES_PAUSE_SECONDS = 1.0


def up(
    *targets: str,
    beside: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    port: int | None = None,
    host: str | None = None,
    data_dir: Path | None = None,
    worker: bool = True,
    pool: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    slots: int | None = None,
    reload: Annotated[bool, Parameter(negative="")] = False,
    log_level: LevelName | None = None,
    log_format: FormatName | None = None,
) -> int:
    """Start everything: PostgreSQL, server and workers. Ctrl-C drains and stops.

    A second Ctrl-C waits for no job.

    Parameters
    ----------
    targets
        The apps whose jobs run here, each as module:app or file.py:app; a worker for each.
    beside
        Programs to keep running beside the server, each as a module for `python -m`.
    port
        Where the server listens (default 8700).
    host
        The address it listens on (default 127.0.0.1).
    data_dir
        Where all state lives (default .fairway).
    worker
        Start workers too.
    pool
        Pools that the workers serve, each as name or name=slots (default: short, medium and long).
    slots
        Slots of each worker in each pool that was named without a number.
    reload
        Start workers again when the Python files beside their app change.
    log_level
        The least that is logged, by server, workers and jobs (default info).
    log_format
        Lines for people (text) or for programs (json); default: text on a terminal.
    """
    behind = tuple(word for word in pool or () if ":" in word)  # no pool has a colon
    apps, programs = (*targets, *behind) if worker else (), beside or ()
    pools = [word for word in pool or () if word not in behind]
    wishes = worker_wishes(pools, slots, reload)
    outlive_readers()
    log_as(choose(os.environ, log_level, log_format))
    check_words(apps, programs)
    settings = checked(load(os.environ, port=port, host=host, data_dir=data_dir))
    return uvloop.run(_main(apps, programs, settings, wishes))


def worker_wishes(pools: list[str], slots: int | None, reloads: bool) -> WorkerWishes:
    """Said once, to every worker; a slip is better said before anything is started."""
    parse_pools(pools, slots)
    words = [word for pool in pools for word in ("--pool", pool)]
    words += [] if slots is None else ["--slots", str(slots)]
    return WorkerWishes(tuple(words), reloads)


def check_words(targets: Sequence[str], beside: Sequence[str]) -> None:
    """A slip is better said before anything is started."""
    for target in targets:
        try:
            look_for(target)
        except LoadError as error:
            raise InvalidRequest(f"{error}.") from None
    for module in beside:
        if ":" in module:
            raise InvalidRequest(f"--beside {module}: this is an app; name apps before --beside.")


async def _main(
    targets: Sequence[str], beside: Sequence[str], settings: Settings, wishes: WorkerWishes
) -> int:
    stopping, hurried = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        was_stopping = stopping.is_set()
        stopping.set()
        if not was_stopping:
            seconds = f"{settings.drain_seconds:g} s"
            screen.print(f"\n  [dim]Stopping: jobs that run have up to {seconds} to finish.[/]")

    stop_on_signals(stop, hurried.set)
    listener = listen(settings)
    make_data_folder(settings.data_dir)
    close_to_others(settings.data_dir, has_postgres=settings.database_url is None)
    postgres = None if settings.database_url else _embedded(settings)
    guard = asyncio.create_task(_nothing())
    try:
        dsn = settings.database_url or await _start_postgres(postgres)
        if stopping.is_set():
            return 0  # somebody changed their mind: nobody waits for the rest of it
        guard = asyncio.create_task(_guard(postgres))
        server_stop = asyncio.Event()
        companions = Companions(settings, Stops(stopping, hurried, server_stop), wishes)

        async def ready(platform: Platform) -> None:
            if stopping.is_set():
                return
            keys, are_new = await first_keys(platform, settings)
            page = await _dashboard(platform, settings, keys)
            _announce(settings, keys if are_new else None, page, (targets, beside))
            companions.start(targets, beside, keys)

        await serve(dsn, settings, listener, server_stop, ready)
        if companions.problem:
            raise InvalidRequest(companions.problem)
        return 0
    finally:
        guard.cancel()
        if postgres is not None:
            await postgres.stop()
        if stopping.is_set():
            screen.print("  [dim]Stopped.[/]")


async def _nothing() -> None:
    return None


# -- PostgreSQL --------------------------------------------------------------------------------


def _embedded(settings: Settings) -> EmbeddedPostgres:
    return EmbeddedPostgres(postgres_folder(settings.data_dir), settings.postgres_bin)


async def _start_postgres(postgres: EmbeddedPostgres | None) -> str:
    assert postgres is not None
    return await postgres.start(lambda line: screen.print(f"[dim]{line}[/]"))


async def _guard(postgres: EmbeddedPostgres | None) -> None:
    """PostgreSQL that dies is started again, also while the rest drains into it."""
    while postgres is not None:
        reason = await postgres.wait()
        log.error("PostgreSQL ended; starting it again", reason=reason)
        try:
            await _start_postgres(postgres)
        except Exception as error:  # a full disk, say: the next try may find it mended
            log.error("PostgreSQL did not start", error=str(error))
            await pause(POSTGRES_PAUSE_SECONDS)


# -- keys --------------------------------------------------------------------------------------


async def first_keys(platform: Platform, settings: Settings) -> tuple[LocalKeys, bool]:
    """The keys of this data folder, made on the first start; and whether that is now."""
    path = settings.data_dir / FILE_NAME
    keys, are_new = read_keys(path), False
    if keys is None or not await _are_known(platform, keys):
        keys, are_new = await _make_keys(platform, settings.url), True
    keys.url = settings.url
    write_keys(path, keys)
    return keys, are_new


async def _are_known(platform: Platform, keys: LocalKeys) -> bool:
    return await platform.directory.authenticate(keys.api_key) is not None


async def _make_keys(platform: Platform, url: str) -> LocalKeys:
    directory = platform.directory
    await directory.add_tenant("default", TenantSettings(tier="pro"))
    await directory.run_once(0)

    async def make(scope: str, tenant: TenantId | None = None) -> ApiKey:
        key = new_api_key(scope)
        await directory.add_key(key, tenant, wish=KeyWish(name="fairway up"))
        return key

    return LocalKeys(
        url=url,
        api_key=(await make("tenant", directory.tenant_ids["default"])).text,
        worker_key=(await make("worker")).text,
        operator_key=(await make("operator")).text,
    )


async def _dashboard(platform: Platform, settings: Settings, keys: LocalKeys) -> str:
    """Where it is, with a sign-in that is good for one browser and ten minutes."""
    if not is_built():
        return "not built: run `make web`, then start again"
    operator = await platform.directory.authenticate(keys.operator_key)
    if operator is None:  # the key was revoked; whoever did it has another
        return f"{settings.url}/ui"
    opened = await platform.sign_ins.add_link(operator.key_id)
    link = link_at(settings.url, opened.token)
    return f"{link}  (once, within {LINK_SECONDS // 60} minutes; then `fairway dashboard`)"


def _announce(
    settings: Settings,
    new_keys: LocalKeys | None,
    page: str,
    started: tuple[Sequence[str], Sequence[str]],
) -> None:
    """Keys are shown when they are made, and never again: what is printed is often kept."""
    targets, beside = started
    screen.print(
        f"\n  [bold green]Fairway is up[/] at [bold]{settings.url}[/]  (API: {settings.url}/docs)"
    )
    data = settings.data_dir.resolve()
    screen.print(f"  dashboard     {page}")
    if new_keys is not None:
        screen.print(f"  tenant key    {new_keys.api_key}")
        screen.print(f"  operator key  {new_keys.operator_key}")
    screen.print(f"  keys          {data / FILE_NAME}  (not shown again)")
    screen.print(f"  data          {data}")
    apps = ", ".join(targets) or "none: give an app, as in `fairway up module:app`"
    screen.print(f"  workers       {apps}")
    if beside:
        screen.print(f"  beside it     {', '.join(beside)}")
    screen.print("  [dim]Ctrl-C drains and stops.[/]\n")
