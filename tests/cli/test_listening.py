"""Where a server listens: who connects is taken in, however busy the loop is."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack

import uvloop

from fairway.cli.processes.listening import ACCEPTED_AT_ONCE, BACKLOG, accepting, listen_at

ROUNDS = 4  # of the loop; each takes long where a server is busy


def test_many_who_connect_at_once_are_taken_in_within_a_few_rounds_of_the_loop() -> None:
    accepted = 0

    class Counted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            nonlocal accepted
            accepted += 1
            transport.close()

    async def rounds() -> None:
        loop, listener = asyncio.get_running_loop(), listen_at("127.0.0.1", 0, "--port")
        sockets = accepting(listener)
        servers = [await loop.create_server(Counted, sock=s, backlog=BACKLOG) for s in sockets]
        with ExitStack() as clients:
            for _ in range(ROUNDS * ACCEPTED_AT_ONCE):
                clients.enter_context(socket.create_connection(listener.getsockname()))
            for _ in range(2 * ROUNDS):  # it looks once more before what it took is told
                await asyncio.sleep(0)
        for server in servers:
            server.close()

    uvloop.run(rounds())
    assert accepted == ROUNDS * ACCEPTED_AT_ONCE
