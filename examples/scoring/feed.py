"""The board as a stream: one look at the board for everybody who watches it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from examples.scoring.board import Board, Place
from sse_starlette import ServerSentEvent

LOOK_SECONDS = 0.5
SHOWN = 15


class Feed:
    """Looks at the board twice a second while somebody watches, and never when nobody does."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._watchers: set[asyncio.Queue[str]] = set()
        self._last = ""
        self._task: asyncio.Task[None] | None = None

    async def follow(self) -> AsyncIterator[ServerSentEvent]:
        """The board now, and again after each change."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._watchers.add(queue)
        if self._task is None or self._task.done():
            self._last = await asyncio.to_thread(self._look)
            self._task = asyncio.create_task(self._keep_looking())
        queue.put_nowait(self._last)
        try:
            while True:
                yield ServerSentEvent(await queue.get(), event="board")
        finally:
            self._watchers.discard(queue)

    async def _keep_looking(self) -> None:
        while self._watchers:
            await asyncio.sleep(LOOK_SECONDS)
            seen = await asyncio.to_thread(self._look)
            if seen != self._last:
                self._last = seen
                for queue in self._watchers:
                    queue.put_nowait(seen)

    def _look(self) -> str:
        totals = self._board.totals()
        places = [place_view(place) for place in self._board.ranking(SHOWN)]
        return msgspec.json.encode({**totals._asdict(), "leaderboard": places}).decode()


def place_view(place: Place) -> dict[str, Any]:
    row = place.row
    return {"rank": place.rank, "id": row.id, "candidate": row.candidate, "score": row.score}
