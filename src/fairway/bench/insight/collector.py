"""`python -m fairway.bench.insight.collector PORT`: takes whatever comes by OTLP and keeps nothing.

A collector is another program, and here it costs as little as it can. `GET /` answers how many
requests it took.
"""

from __future__ import annotations

import asyncio
import sys

from fairway.runtime.told_to_end import run

HEAD_END = b"\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"


class Collector:
    def __init__(self) -> None:
        self._taken = 0

    async def serve(self, port: int) -> None:
        async with await asyncio.start_server(self._talk, "127.0.0.1", port) as server:
            await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(HEAD_END)).lower()
                length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
                is_asked = head.startswith(b"get ")
                self._taken += not is_asked
                answer = b"%d" % self._taken if is_asked else b""
                writer.write(HEAD % len(answer) + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


if __name__ == "__main__":
    run(Collector().serve(int(sys.argv[1])))
