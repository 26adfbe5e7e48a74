"""The HTTP server that carries the API: uvicorn, with three changes.

The program, not uvicorn, answers signals; connections are guarded (`api/http/protocol.py`); and it
does not look ten times a second whether it is to stop: it is told.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import uvicorn

from fairway.api.http.gate import ConnectionGate
from fairway.api.http.protocol import GuardedProtocol
from fairway.api.http.siblings import Handed, Siblings
from fairway.api.http.socket_protocol import SOCKET_SETTINGS, SocketProtocol
from fairway.cli.processes.listening import ACCEPTED_AT_ONCE, BACKLOG, Listeners, accepting
from fairway.core.backpressure.connections import address_of
from fairway.runtime.clock import SystemClock
from fairway.runtime.loops import Loop, pause
from fairway.runtime.telemetry import logger

log = logger("http")

STOP_SECONDS = 5
#: For clients of a process whose siblings go on: who asks meanwhile hears that this was the last
#: reply on its connection, and asks the next one elsewhere. Who is silent for longer loses nothing.
MOVE_SECONDS = 1.0
MOVE_LOOK_SECONDS = 0.05


class HttpServer(uvicorn.Server):
    def __init__(self, application: Any, gate: ConnectionGate, idle_seconds: float) -> None:
        self._gate = gate
        self._ending = asyncio.Event()
        self._sweep = Loop("connections", gate.run_once, SystemClock())
        guarded: Any = partial(GuardedProtocol, gate)
        super().__init__(
            uvicorn.Config(
                application,
                log_config=None,
                access_log=False,
                log_level="error",  # strangers must not fill the log with what is no HTTP
                loop="none",
                http=guarded,
                ws=SocketProtocol,
                **SOCKET_SETTINGS,
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                date_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=idle_seconds,  # type: ignore[arg-type]  # seconds, whole or not
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )

    def install_signal_handlers(self) -> None:
        return None

    async def main_loop(self) -> None:
        await self.on_tick(0)  # the headers of every reply
        await self._ending.wait()

    async def run_until(
        self,
        stopping: asyncio.Event,
        listeners: Listeners,
        let_go: Callable[[], Awaitable[None]],
    ) -> None:
        """Serve until told to stop; then `let_go` answers the calls that are held open.

        Until it is done, whoever comes is still heard; at an address that is shared, by others.
        """
        self._sweep.start()
        sockets = accepting(listeners.public)
        if listeners.own is not None:
            sockets.append(listeners.own)
        task = asyncio.create_task(self._serve(sockets=sockets))
        self._take_from_siblings()
        waiter = asyncio.create_task(stopping.wait())
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        try:
            if listeners.group is not None and self.started:
                self._leave_to_siblings()
            await let_go()
            if listeners.group is not None:
                await self._move_clients()
        finally:
            if self._gate.siblings is not None:
                self._gate.siblings.close()  # before those that are here are closed
            self.should_exit = True
            self._ending.set()
            await task
        await self._sweep.stop()

    def _take_from_siblings(self) -> None:
        """Connections whose requests are ours."""
        if (siblings := self._gate.siblings) is not None:
            siblings.begin(partial(self._take, siblings))

    def _take(self, siblings: Siblings, carried: socket.socket, facts: Handed) -> None:
        """Where there is no room for it, whoever had it goes on with it."""
        try:
            address = address_of(carried.getpeername()[0])
        except OSError:  # its client has gone meanwhile
            carried.close()
            return
        has_room = facts.is_back or self._gate.book.has_room(address, facts.tenant)
        back = facts._replace(sender=siblings.number, is_back=True)
        if not has_room and siblings.hand(facts.sender, carried.fileno(), back):
            carried.close()  # our hold on it, not the connection
            return
        task = asyncio.get_running_loop().create_task(self._go_on(carried, facts))
        task.add_done_callback(self.server_state.tasks.discard)
        self.server_state.tasks.add(task)

    async def _go_on(self, carried: socket.socket, facts: Handed) -> None:
        """As if it had come here by itself."""
        make: Any = self.config.http_protocol_class
        protocol = partial(
            make, facts, config=self.config, server_state=self.server_state, app_state={}
        )
        try:
            await asyncio.get_running_loop().connect_accepted_socket(protocol, carried)
        except OSError as error:
            carried.close()
            log.info("a connection that was handed over is gone", error=repr(error))

    def _leave_to_siblings(self) -> None:
        """Who connects from now on meets another process; ours are told to leave, one by one."""
        for server in self.servers[:ACCEPTED_AT_ONCE]:  # our hold on the public address
            server.close()  # which the parent has as well
        self._gate.move()
        if self._gate.siblings is not None:
            self._gate.siblings.leave()

    async def _move_clients(self) -> None:
        until = asyncio.get_running_loop().time() + MOVE_SECONDS
        while self.server_state.connections and asyncio.get_running_loop().time() < until:
            await pause(MOVE_LOOK_SECONDS)
