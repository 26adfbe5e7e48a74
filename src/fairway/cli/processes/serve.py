"""One server as a program: services, HTTP, signals; stopped in the reverse of its start."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import uvloop

from fairway.api.app import Api
from fairway.api.events import socket as event_socket
from fairway.api.http.gate import ConnectionGate, GateLimits
from fairway.api.http.siblings import Siblings
from fairway.api.peers import Peers
from fairway.cli.processes.http import HttpServer
from fairway.cli.processes.listening import Listeners, listen
from fairway.cli.processes.shards_asked_for import shards_asked_for
from fairway.cli.processes.signals import STOPPING, WHILE_STOPPED, quit_now, stop_on_signals
from fairway.cli.processes.supervisor import first_of
from fairway.core.backpressure.connections import ConnectionLimits
from fairway.core.errors import InvalidRequest
from fairway.core.fair_share.fairness import PoolShare
from fairway.core.ownership.shard_count_wish import unheeded
from fairway.runtime import instruments
from fairway.runtime.clock import SystemClock
from fairway.runtime.gc_tuning import OldObjects, tune_gc
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.log_options import LogOptions
from fairway.runtime.loops import Loop
from fairway.runtime.service_manager import ServiceManager
from fairway.runtime.settings import Settings, checked, load
from fairway.runtime.telemetry import log_as, logger
from fairway.services.platform import Platform

log = logger("server")

FILES_MAX = 1 << 16
#: How long a thread that computes (a cron expression, a body of megabytes) keeps the interpreter
#: from the event loop, which asks for it after every wait. Python's own is 5 ms, and there are some
#: ten waits on the way of a job.
THREAD_TURN_SECONDS = 0.0005
KNOWN_SECONDS_MAX = 2.0  # without the store nobody is


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Connections take at most half of the files we may open: the store and objects need some."""
    files = open_files_max()
    return ConnectionLimits(
        max(1, min(settings.connections_max, files // 2)), settings.connections_per_address
    )


def open_files_max() -> int:
    """How many files this process may open, after asking for as many as it is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        log.warning("cannot open more files", limit=soft, error=repr(error))
        return soft
    return wanted


async def serve(
    dsn: str,
    settings: Settings,
    listeners: Listeners,
    stopping: asyncio.Event,
    ready: Callable[[Platform], Awaitable[None]] | None = None,
    scheduler: type[PoolShare] = PoolShare,
) -> None:
    """Run a server until `stopping` is set. `ready` is called once it accepts work."""
    peers = Peers()
    platform = await Platform.prepare(dsn, settings, SystemClock(), peers.ask_runs, scheduler)
    await platform.large_data.binding.begin()
    await platform.start()
    api = Api(platform, peers, listeners.group)
    limits = GateLimits(
        connection_limits(settings),
        settings.head_seconds,
        settings.unread_bytes_max,
        frozenset({event_socket.PATH.encode()}),
    )
    siblings = None if listeners.group is None else Siblings(listeners.group)
    gate = ConnectionGate(limits, platform.metrics, siblings)
    http = HttpServer(api, gate, settings.idle_seconds)
    tune_gc(looks_at_old=False)
    stir = platform.stalls.stir
    collecting = Loop("collector", OldObjects().run_once, SystemClock(), on_round=stir)
    collecting.start()
    sys.setswitchinterval(THREAD_TURN_SECONDS)
    try:
        serving = asyncio.create_task(http.run_until(stopping, listeners, platform.let_go))
        await _known_to_others(platform, stopping)
        if ready is not None and not stopping.is_set():
            await ready(platform)
        await serving
    finally:
        await collecting.stop()
        await api.close()
        peers.close()
        await platform.stop()
        await instruments.close(platform.instruments.otlp)


async def _known_to_others(platform: Platform, stopping: asyncio.Event) -> None:
    """Whoever stops because we are ready looks for us, and leaves us what it owns. Told to stop
    meanwhile, we own nothing more, and nobody may rely on us."""
    with suppress(TimeoutError):
        async with asyncio.timeout(KNOWN_SECONDS_MAX):
            await first_of(platform.ownership.looked(), stopping.wait())


def run(scheduler: type[PoolShare] = PoolShare, **flags: str | int | None) -> None:
    """`scheduler` is for measurements against another one; there is no setting for it."""
    outlive_readers()
    log_as(LogOptions.of(os.environ))
    serve_alone(checked(load(os.environ, **flags)), scheduler)


def serve_alone(settings: Settings, scheduler: type[PoolShare] = PoolShare) -> None:
    """One server in this process, until it is told to stop."""
    manager = ServiceManager.of(os.environ)
    uvloop.run(_main(database_of(settings), settings, manager, scheduler))


def database_of(settings: Settings) -> str:
    if settings.database_url is None:
        raise InvalidRequest(
            "Set FAIRWAY_DATABASE_URL, or use `fairway up`, which brings its own PostgreSQL."
        )
    return settings.database_url


async def _main(
    dsn: str, settings: Settings, manager: ServiceManager, scheduler: type[PoolShare]
) -> None:
    stopping = asyncio.Event()

    def stop() -> None:
        if not stopping.is_set():  # told twice, it does the same
            log.info("server stopping", doing=STOPPING, jobs=WHILE_STOPPED)
        manager.stopping(STOPPING)
        stopping.set()

    stop_on_signals(stop, leave=quit_now)
    listeners = Listeners(listen(settings))

    async def ready(platform: Platform) -> None:
        log.info("server ready", url=settings.url)
        manager.ready(f"at {settings.url}")
        await tell_operators(platform)

    await serve(dsn, settings, listeners, stopping, ready, scheduler)
    log.info("server stopped")


async def tell_operators(platform: Platform) -> None:
    """Say so, when nobody can look after this platform yet, or its settings ask in vain."""
    wanted = shards_asked_for(platform.settings, os.environ)
    told = unheeded(wanted, platform.cluster.shard_count, platform.cluster.shards)
    if told is not None:
        log.warning(f"{told.what} {told.remedy}")
    if not await platform.directory.list_keys("", 1, "operator", None):
        log.warning("there is no operator's key yet; `fairway init` makes the first")
