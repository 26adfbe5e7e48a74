"""The HTTP server that carries the API: uvicorn, with two changes.

The program, not uvicorn, answers signals; and connections are guarded (`api/http/protocol.py`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import uvicorn

from fairway.api.http.protocol import ConnectionGate, GuardedProtocol
from fairway.api.http.socket_protocol import SOCKET_SETTINGS, SocketProtocol
from fairway.cli.processes.listening import BACKLOG
from fairway.runtime.clock import SystemClock
from fairway.runtime.loops import Loop

STOP_SECONDS = 5


class HttpServer(uvicorn.Server):
    def __init__(self, application: Any, gate: ConnectionGate, idle_seconds: float) -> None:
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

    async def run_until(
        self,
        stopping: asyncio.Event,
        listener: socket.socket,
        let_go: Callable[[], Awaitable[None]],
    ) -> None:
        """Serve until told to stop; then `let_go` answers the calls that are held open.

        Until it is done, whoever comes is still heard.
        """
        self._sweep.start()
        task = asyncio.create_task(self._serve(sockets=[listener]))
        waiter = asyncio.create_task(stopping.wait())
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        try:
            await let_go()
        finally:
            self.should_exit = True
            await task
        await self._sweep.stop()
