"""`fairway up`: the whole platform on one machine, with one command.

PostgreSQL first, then the server, then companions: a worker for each app and the programs that
stand beside. Each is a process of its own; one that crashes is replaced. Stopped in order: the
intake is closed, companions end (workers drain), the server writes what is left, PostgreSQL stops
last. All state is in one folder.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import uvloop
from cyclopts import Parameter
from rich.console import Console

from fairway.cli.processes.app_check import check_apps
from fairway.cli.processes.companions import Companions, WorkerWishes
from fairway.cli.processes.data_folder import close_to_others, make_data_folder
from fairway.cli.processes.listening import listen
from fairway.cli.processes.local_keys import FILE_NAME, read_keys
from fairway.cli.processes.postgres import embedded
from fairway.cli.processes.process_part import processes_wanted
from fairway.cli.processes.server_group import ServerGroup
from fairway.cli.processes.server_process import WORDS, ServerProcess
from fairway.cli.processes.signals import Orders, stop_on_signals
from fairway.cli.processes.supervisor import (
    LONG_LIFE_SECONDS,
    PAUSE_FIRST_SECONDS,
    PAUSE_MAX_SECONDS,
    first_of,
)
from fairway.cli.processes.work import parse_pools
from fairway.cli.remote import Remote
from fairway.core.backoff import RestartPauses
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.log_options import FormatName, LevelName, choose
from fairway.runtime.loops import pause
from fairway.runtime.service_manager import ServiceManager
from fairway.runtime.settings import Settings, checked, load
from fairway.runtime.telemetry import log_as, logger
from fairway.sdk.loading import LoadError, look_for, look_for_module
from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.worker.limits.environment import for_runners

log = logger("up")
screen = Console(stderr=True, highlight=False, soft_wrap=True)

START_MORE_SECONDS = 30.0  # asked of a service manager each time PostgreSQL tells how far it is


class Started(NamedTuple):
    """What runs here beside PostgreSQL and the server."""

    targets: Sequence[str]
    beside: Sequence[str]
    wishes: WorkerWishes


def up(
    *targets: str,
    beside: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    port: int | None = None,
    host: str | None = None,
    data_dir: Path | None = None,
    processes: int | None = None,
    worker: bool = True,
    pool: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    slots: int | None = None,
    reload: Annotated[bool, Parameter(negative="")] = False,
    autoscale: Annotated[bool, Parameter(negative="")] = False,
    log_level: LevelName | None = None,
    log_format: FormatName | None = None,
) -> int:
    """Start everything: PostgreSQL, server and workers. Ctrl-C drains and stops.

    A second Ctrl-C waits for no job, a third for nothing.

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
    processes
        Server processes behind that port (default by cores: one on up to 2 of them, since
        PostgreSQL and workers need some, then half, 8 at most). SIGHUP restarts several one by one.
    worker
        Start workers too.
    pool
        Pools that the workers serve, each as name or name=slots (default: short, medium and long).
    slots
        Slots of each worker in each pool that was named without a number.
    reload
        Start workers again when the Python files beside their app change.
    autoscale
        Start and end workers of each pool as they are needed, one for each processor at most
        unless `fairway autoscale set` says otherwise.
    log_level
        The least that is logged, by server, workers and jobs (default info).
    log_format
        Lines for people (text) or for programs (json); default: text on a terminal.
    """
    behind = tuple(word for word in pool or () if ":" in word)  # no pool has a colon
    apps, programs = (*targets, *behind) if worker else (), beside or ()
    pools = [word for word in pool or () if word not in behind]
    wishes = worker_wishes(pools, slots, reload, scales=autoscale)
    outlive_readers()
    log_as(choose(os.environ, log_level, log_format))
    check_words(apps, programs)
    check_scaling(apps, wishes)
    flags = {"port": port, "host": host, "data_dir": data_dir, "server_processes": processes}
    settings = checked(load(os.environ, **flags))
    if not reload:  # an app that is being edited is waited for
        known = {"FAIRWAY_URL": settings.url, "FAIRWAY_DATA_DIR": str(settings.data_dir.resolve())}
        check_apps(apps, for_runners(os.environ) | known)
    return uvloop.run(OneMachine(settings, Started(apps, programs, wishes)).run())


def worker_wishes(
    pools: list[str], slots: int | None, reloads: bool, *, scales: bool = False
) -> WorkerWishes:
    """Said once, to every worker; a slip is better said before anything is started."""
    named = frozenset(parse_pools(pools, slots)) if pools else frozenset[str]()
    words = [word for pool in pools for word in ("--pool", pool)]
    words += [] if slots is None else ["--slots", str(slots)]
    return WorkerWishes(tuple(words), reloads, scales, named)


def check_words(targets: Sequence[str], beside: Sequence[str]) -> None:
    """A slip is better said before anything is started."""
    for module in beside:
        if ":" in module:
            raise InvalidRequest(f"--beside {module}: this is an app; name apps before --beside.")
    try:
        for target in targets:
            look_for(target)
        for module in beside:
            look_for_module(module)
    except LoadError as error:
        raise InvalidRequest(f"{error}.") from None


def check_scaling(targets: Sequence[str], wishes: WorkerWishes) -> None:
    """Workers of a pool stand for each other: whose jobs wait is not whose worker is started."""
    if wishes.scales and len(targets) > 1:
        raise InvalidRequest(
            f"--autoscale is for one app, and these are {len(targets)}: workers of a pool stand"
            " for each other, so one app could be left waiting. Put their jobs into one app."
        )


def check_pools(named: frozenset[str], url: str, key: str) -> None:
    """Which there are only the database knows. A worker would be refused, life after life."""
    try:
        there = [one["name"] for one in Remote(url, key).get("/v1/pools")["pools"]]
    except Unavailable:
        return  # then the worker hears it
    for name in sorted(named.difference(there)):
        raise InvalidRequest(
            f"--pool {name}: there is no pool {name!r}; there are {', '.join(there)}."
        )


class OneMachine:
    """PostgreSQL, a server and companions, from the first start to the last stop."""

    def __init__(self, settings: Settings, started: Started) -> None:
        self._settings = settings
        self._started = started
        self._orders = Orders()
        self._manager = ServiceManager.of(os.environ)
        self._companions = Companions(settings, self._orders, started.wishes)

    async def run(self) -> int:
        settings = self._settings
        stop_on_signals(self._stop, self._orders.hurry, self._orders.quit)
        listener = listen(settings)
        make_data_folder(settings.data_dir)
        close_to_others(settings.data_dir, has_postgres=settings.database_url is None)
        postgres = None if settings.database_url else embedded(settings)
        guard: asyncio.Task[None] | None = None
        try:
            if postgres is not None:
                await self._start(postgres)
            if self._orders.stopping.is_set():
                return 0  # somebody changed their mind: nobody waits for the rest of it
            if postgres is not None:
                guard = asyncio.create_task(self._guard(postgres))
            return await self._serve(self._server(listener))
        finally:
            if guard is not None:
                guard.cancel()
            listener.close()
            if postgres is not None:
                await postgres.stop(self._orders.quitting)
            if self._orders.stopping.is_set():
                screen.print("  [dim]Stopped.[/]")

    def _server(self, listener: socket.socket) -> ServerProcess | ServerGroup:
        words = (*WORDS, "--autoscale") if self._started.wishes.scales else WORDS
        count = processes_wanted(self._settings)
        if count == 1:
            return ServerProcess(self._settings, listener, self._orders, words=words)
        group = ServerGroup(self._settings, listener, self._orders, words, processes=count)
        group.roll_on_hangup()
        return group

    async def _start(self, postgres: EmbeddedPostgres) -> None:
        """However long its recovery takes: unless somebody hurries, then the next start does it."""
        starting = asyncio.create_task(postgres.start(self._say))
        await first_of(asyncio.shield(starting), self._orders.hurried.wait())
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
        if not starting.cancelled():
            starting.result()

    def _stop(self) -> None:
        if not self._orders.stopping.is_set():
            seconds = f"{self._settings.drain_seconds:g} s"
            screen.print(
                f"\n  [dim]Stopping: jobs that run have up to {seconds} to finish."
                " Ctrl-C once more waits for nobody.[/]"
            )
            self._manager.stopping(f"jobs that run have up to {seconds} to finish")
        self._orders.stop()

    async def _serve(self, server: ServerProcess | ServerGroup) -> int:
        """Until somebody wants it to end, or the server cannot be started at all."""
        ended = server.start()
        try:
            if await server.ready(self._orders.stopping):
                await self._begin()
                await first_of(self._orders.stopping.wait(), asyncio.shield(ended))
            server.close_intake()
            await self._companions.stop()
        finally:
            await server.stop()
        if self._companions.problem:
            raise InvalidRequest(self._companions.problem)
        if self._orders.stopping.is_set():
            return 0
        ended.result()  # raises what kept it from being started
        return 1  # it said itself what is wrong

    async def _begin(self) -> None:
        targets, beside, wishes = self._started
        keys = read_keys(self._settings.data_dir / FILE_NAME)
        assert keys is not None, "the server wrote them before it was ready"
        if targets and wishes.pools:
            await asyncio.to_thread(check_pools, wishes.pools, self._settings.url, keys.worker_key)
        apps = ", ".join(targets) or "none: give an app, as in `fairway up module:app`"
        screen.print(f"  workers       {apps}")
        if beside:
            screen.print(f"  beside it     {', '.join(beside)}")
        screen.print("  [dim]Ctrl-C drains and stops.[/]\n")
        self._companions.start(targets, beside, keys)
        self._manager.ready(f"at {self._settings.url}")

    def _say(self, line: str) -> None:
        screen.print(f"[dim]{line}[/]")
        self._manager.starting(line, START_MORE_SECONDS)

    async def _guard(self, postgres: EmbeddedPostgres) -> None:
        """PostgreSQL that dies is started again, also while the rest drains into it."""
        pauses = RestartPauses(PAUSE_FIRST_SECONDS, PAUSE_MAX_SECONDS, LONG_LIFE_SECONDS)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            reason = await postgres.wait()
            seconds = pauses.after(loop.time() - began)
            log.error("PostgreSQL ended; starting it again", reason=reason, in_seconds=seconds)
            await pause(seconds)
            try:
                await postgres.start(self._say)
            except Exception as error:  # a full disk, say: the next try may find it mended
                log.error("PostgreSQL did not start", error=str(error))
