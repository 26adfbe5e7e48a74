"""The HTTP server that carries the API: uvicorn, with two changes.

The program, not uvicorn, answers signals. And a reply leaves in one write: uvicorn hands its head
and its body to the transport one after the other, each a system call; here they are gathered until
the reply is whole, or, when it is a stream, until the event loop has gone round once. With a reply
per job that is a good part of its cost.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

STOP_SECONDS = 5


class Corked:
    """A transport that gathers what is written, until `flush` or the event loop's next turn."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class CorkedProtocol(HttpToolsProtocol):
    def connection_made(self, transport: Any) -> None:
        corked: Any = Corked(transport, asyncio.get_running_loop())
        self._flush = corked.flush
        super().connection_made(corked)

    def on_response_complete(self) -> None:
        self._flush()
        super().on_response_complete()


class HttpServer(uvicorn.Server):
    def __init__(self, application: Any) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                log_config=None,
                access_log=False,
                loop="none",
                http=CorkedProtocol,
                ws="none",
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                date_header=False,
                backlog=2048,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )

    def install_signal_handlers(self) -> None:
        return None

    async def run_until(
        self, stopping: asyncio.Event, listener: socket.socket, let_go: Callable[[], None]
    ) -> None:
        """Serve until told to stop; then `let_go` answers the calls that are held open."""
        task = asyncio.create_task(self._serve(sockets=[listener]))
        waiter = asyncio.create_task(stopping.wait())
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        self.should_exit = True
        waiter.cancel()
        let_go()
        await task
