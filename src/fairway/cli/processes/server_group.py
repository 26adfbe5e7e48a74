"""Several server processes behind one address: started, replaced, and restarted one by one.

The parent takes the public address once and hands it down to all: whoever connects is taken in by
any process that is free, so one that ends turns nobody away (with a listener of its own for each,
by SO_REUSEPORT, whatever waits in the line of one that closes is reset: decision 0069). Besides,
each has an address of its own, held here over its lives, by which other servers and workers reach
that very process. The first is started alone: it makes the tables and the keys, and what keeps it
from starting is said once. The parent answers no request and reads no store.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from fairway.cli.processes.listening import listen_at
from fairway.cli.processes.server_process import ServerProcess
from fairway.cli.processes.sibling_files import SiblingChannels
from fairway.cli.processes.signals import Orders
from fairway.cli.processes.supervisor import first_of
from fairway.core.server_processes import ProcessGroup
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.runtime.told_to_end import heeded

log = logger("servers")


class ServerGroup:
    """As `ServerProcess`, of several."""

    def __init__(
        self,
        settings: Settings,
        listener: socket.socket,
        orders: Orders,
        words: Sequence[str],
        *,
        processes: int,
    ) -> None:
        self._listener = listener
        self._orders = orders
        self._owned = _own_listeners(settings, processes)
        self._counts = [os.memfd_create(f"fairway-counts-{n}") for n in range(1, processes + 1)]
        self._channels = SiblingChannels(processes)
        name, counts = secrets.token_hex(4), tuple(self._counts)
        urls = tuple(_url(settings, one) for one in self._owned)
        members = (
            ProcessGroup(name, number, own.fileno(), urls, counts, self._channels.files_of(number))
            for number, own in enumerate(self._owned, 1)
        )
        self._servers = [
            ServerProcess(settings, listener, orders, words=words, group=member)
            for member in members
        ]
        self._lives: list[asyncio.Task[int]] = []
        self._task: asyncio.Task[int] | None = None
        self._are_started = asyncio.Event()
        self._wanted_anew = asyncio.Event()
        self._rolling: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[int]:
        """Its task ends when any of them does for good: it could not start, or was told to."""
        self._lives.append(self._servers[0].start())
        self._task = asyncio.create_task(self._run(), name="servers")
        return self._task

    async def _run(self) -> int:
        first, *others = self._servers
        if await first.ready(self._orders.stopping):
            self._lives += [server.start() for server in others]
            self._are_started.set()
            self._rolling = asyncio.create_task(self._roll_when_told(), name="rolling restart")
        done, _ = await asyncio.wait(self._lives, return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()

    async def ready(self, *given_up: asyncio.Event) -> bool:
        """Whether all came to be ready before one ended, or anybody gave them up."""
        assert self._task is not None
        others = (event.wait() for event in given_up)
        if await first_of(self._are_started.wait(), asyncio.shield(self._task), *others) != 0:
            return False
        for server in self._servers:
            if not await server.ready(*given_up):
                return False
        return True

    def close_intake(self) -> None:
        for server in self._servers:
            server.close_intake()

    def roll(self) -> None:
        """Restart all, one by one; once more, if that is under way already."""
        self._wanted_anew.set()

    def roll_on_hangup(self) -> None:
        """SIGHUP means that, unless it is the end of the terminal that we run in. Who was started
        with `nohup` is not to end with it, and does not: this ends nobody."""
        if signal.SIGHUP not in heeded() or not _has_terminal():
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.roll)

    async def _roll_when_told(self) -> None:
        while True:
            await self._wanted_anew.wait()
            self._wanted_anew.clear()
            await self._roll()

    async def _roll(self) -> None:
        """What cannot be restarted ends it: the others go on as they are."""
        log.info("restarting servers one by one", processes=len(self._servers))
        for number, server in enumerate(self._servers, 1):
            is_ready = await server.renew()
            if self._orders.stopping.is_set():
                return
            if not is_ready:
                log.error("server is not ready after its restart; the others stay", process=number)
                return
            log.info("server restarted", process=number)
        log.info("servers restarted", processes=len(self._servers))

    async def stop(self) -> None:
        """All at once: who asks while they stop is answered or passed on, as with one."""
        if self._rolling is not None:
            self._rolling.cancel()
        started = [server for server in self._servers if server.is_started]
        await asyncio.gather(*(server.stop() for server in started))
        self._listener.close()
        for own in self._owned:
            own.close()
        self._channels.close()
        for counts in self._counts:
            with suppress(OSError):
                os.close(counts)


def _has_terminal() -> bool:
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
        return True
    return False


def _own_listeners(settings: Settings, processes: int) -> list[socket.socket]:
    """At the host of the public address: whoever reaches that one reaches these."""
    first = settings.process_port
    ports = range(first, first + processes) if first else [0] * processes
    return [listen_at(settings.host, port, "FAIRWAY_PROCESS_PORT") for port in ports]


def _url(settings: Settings, own: socket.socket) -> str:
    """Where other servers reach it: the advertised machine, at a port of its own."""
    host = urlsplit(settings.url).hostname or settings.host
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{own.getsockname()[1]}"
