"""The tenant's event log over HTTP: followed from a position on, whatever happens on the way.

A connection that breaks is taken up after the last event that was yielded, at this server or at
another: none is missed, none comes twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from fairway.core.errors import FairwayError
from fairway.core.events.event import Event
from fairway.core.events.event_gap import EventGap, LogItem
from fairway.sdk.http import sse
from fairway.sdk.http.transport import NotNow, Question, Transport

PATH = "/v1/events/stream"


class Wanted(NamedTuple):
    """Which events; what is empty does not narrow."""

    kind: str | Sequence[str] = ()
    type: str | Sequence[str] = ()
    job: str | None = None

    def query(self, after: int | str | None) -> str:
        asked: dict[str, str | int] = {} if after is None else {"after": after}
        if self.kind:
            asked["kind"] = _with_commas(self.kind)
        if self.type:
            asked["type"] = _with_commas(self.type)
        if self.job is not None:
            asked["job"] = self.job
        return urlencode(asked)


def _with_commas(names: str | Sequence[str]) -> str:
    """Of a single name, given as a text, not the letters."""
    return names if isinstance(names, str) else ",".join(names)


class EventLog:
    """What a client can ask of it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def follow(self, after: int | str | None, wanted: Wanted) -> AsyncIterator[LogItem]:
        """The events after this position or cursor, or from now on; without end."""
        return _follow(self._transport, after, wanted)


async def _follow(
    transport: Transport, after: int | str | None, wanted: Wanted
) -> AsyncIterator[LogItem]:
    """Without end. Raises when no server answers for longer than the client's patience."""
    parser = sse.EventParser()
    ends_at, tries = transport.patience_ends_at(), 0
    path = f"{PATH}?{wanted.query(after)}"
    while True:
        has_brought = False
        try:
            async with aclosing(_stream(transport, path, parser)) as stream:
                async for event in stream:
                    ends_at, tries = transport.patience_ends_at(), 0
                    if event is not None:
                        has_brought = True
                        yield _item(event)
        except NotNow as broken:
            if has_brought:
                continue  # asked for again at once: each time it brings something, or rests
            tries += 1
            ends_at = await transport.rest_following(tries, broken, ends_at)


async def _stream(
    transport: Transport, path: str, parser: sse.EventParser
) -> AsyncGenerator[sse.Event | None, None]:
    """None for each piece that came: the server is there, whether or not it has news."""
    headers = {"Accept": "text/event-stream"}
    if parser.last_id:
        headers["Last-Event-ID"] = parser.last_id
    parser.forget_partial()
    question = Question("GET", path, headers=headers)
    async with transport.stream(question) as response:
        async for chunk in response.aiter_text():
            yield None
            for event in parser.feed(chunk):
                yield event
    raise NotNow(FairwayError("the stream of events ended"))


def _item(event: sse.Event) -> LogItem:
    if event.kind == "gap":
        told = event.data
        return EventGap(told["from"], told["to"], told.get("part"), told.get("cursor"))
    return msgspec.convert(event.data, Event)
