"""`fairway server`: one server in this process, or several behind one port that this one keeps.

Only reads what was asked for; what a server needs is loaded where it runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import uvloop

from fairway.cli.processes.listening import listen, listeners_of
from fairway.cli.processes.process_part import of_one_process, processes_wanted
from fairway.cli.processes.server_group import ServerGroup
from fairway.cli.processes.signals import (
    STOPPING,
    WHILE_STOPPED,
    Orders,
    quit_now,
    stop_on_signals,
)
from fairway.cli.processes.supervisor import CANNOT_START, first_of
from fairway.runtime.lasting_output import outlive_readers
from fairway.runtime.log_options import LogOptions
from fairway.runtime.parent_death import follow
from fairway.runtime.service_manager import ServiceManager
from fairway.runtime.settings import Settings, checked, load
from fairway.runtime.telemetry import log_as, logger

log = logger("servers")

WORDS = ("fairway", "server-process")


def server(
    *,
    port: int | None = None,
    host: str | None = None,
    database_url: str | None = None,
    advertised_url: str | None = None,
    processes: int | None = None,
) -> int:
    """Start a server on an existing PostgreSQL (FAIRWAY_DATABASE_URL). Start as many as you like.

    Parameters
    ----------
    port
        Where it listens (default 8700).
    host
        The address it listens on (default 127.0.0.1).
    database_url
        postgresql://… of a database that Fairway may use for itself.
    advertised_url
        How other servers reach this one.
    processes
        Server processes behind that port (default by cores: one on up to 2 of them, since
        PostgreSQL and workers need some, then half, 8 at most). SIGHUP restarts several one by one.
    """
    outlive_readers()
    log_as(LogOptions.of(os.environ))
    flags = {"port": port, "host": host, "database_url": database_url}
    flags |= {"advertised_url": advertised_url, "server_processes": processes}
    settings = checked(load(os.environ, **flags))
    count = processes_wanted(settings)
    if count > 1 and settings.database_url is not None:
        return uvloop.run(SeveralServers(settings, count).run())
    from fairway.cli.processes.serve import serve_alone

    serve_alone(settings)
    return 0


class SeveralServers:
    """The parent of several server processes, from the first start to the last stop."""

    def __init__(self, settings: Settings, processes: int) -> None:
        self._settings = settings
        self._processes = processes
        self._orders = Orders()
        self._manager = ServiceManager.of(os.environ)

    async def run(self) -> int:
        stop_on_signals(self._stop, self._orders.hurry, self._orders.quit)
        listener = listen(self._settings)
        group = ServerGroup(
            self._settings, listener, self._orders, WORDS, processes=self._processes
        )
        group.roll_on_hangup()
        ended = group.start()
        try:
            if await group.ready(self._orders.stopping):
                url, count = self._settings.programs_url, self._processes
                log.info("servers ready", url=url, processes=count)
                self._manager.ready(f"at {url}, {count} processes")
            await first_of(self._orders.stopping.wait(), asyncio.shield(ended))
        finally:
            await group.stop()
            if self._orders.stopping.is_set():
                log.info("servers stopped", processes=self._processes)
        if self._orders.stopping.is_set():
            return 0
        ended.result()  # raises what kept them from being started
        return 1  # it said itself what is wrong

    def _stop(self) -> None:
        if not self._orders.stopping.is_set():  # told twice, they do the same
            count = self._processes
            log.info("servers stopping", doing=STOPPING, jobs=WHILE_STOPPED, processes=count)
        self._manager.stopping(STOPPING)
        self._orders.stop()


def server_process() -> int:
    """One of several servers of `fairway server`, which starts this; nobody else should."""
    from fairway.cli.main import sentence_of

    outlive_readers()
    parent = int(os.environ.get("FAIRWAY_DIE_WITH_PARENT", "0"))
    if parent and not follow(parent, signal.SIGTERM):
        return 0
    log_as(LogOptions.of(os.environ))
    member = MemberServer(of_one_process(load(os.environ)), ServiceManager.of(os.environ))
    try:
        uvloop.run(member.run())
    except Exception as error:
        if member.was_ready:
            raise
        sys.stderr.write(f"{sentence_of(error)}\n")
        return CANNOT_START
    return 0


class MemberServer:
    """A server at addresses that its parent holds."""

    def __init__(self, settings: Settings, manager: ServiceManager) -> None:
        self._settings = settings
        self._manager = manager
        self.was_ready = False

    async def run(self) -> None:
        from fairway.cli.processes.serve import database_of, serve, tell_operators
        from fairway.services.platform import Platform

        stopping = asyncio.Event()
        stop_on_signals(stopping.set, leave=quit_now)
        listeners = listeners_of(os.environ, self._settings)

        async def ready(platform: Platform) -> None:
            log.info("server ready", url=self._settings.url)
            self.was_ready = True
            self._manager.ready(f"at {self._settings.url}")
            if listeners.group is not None and listeners.group.number == 1:
                await tell_operators(platform)

        await serve(database_of(self._settings), self._settings, listeners, stopping, ready)
