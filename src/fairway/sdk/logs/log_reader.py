"""What a job's runs said, over HTTP: page by page, or live until the job has ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from urllib.parse import urlencode

import msgspec

from fairway.core.errors import FairwayError
from fairway.sdk.http.sse import Event, EventParser
from fairway.sdk.http.transport import NotNow, Question, Transport
from fairway.wire.run_logs import LogLine, decode_page

LINES_AT_ONCE = 1000


async def read_lines(
    transport: Transport, path: str, attempt: int | None
) -> AsyncIterator[LogLine]:
    """Those that there are by now, oldest first."""
    cursor: str | None = ""
    while cursor is not None:
        found = await transport.ask(Question("GET", f"{path}?{_query(attempt, cursor)}"))
        page = decode_page(found)
        for line in page.lines:
            yield line
        cursor = page.next_cursor


async def follow_lines(
    transport: Transport, path: str, attempt: int | None
) -> AsyncIterator[LogLine]:
    """All of them, as they are said; a connection that breaks is taken up where it was."""
    parser = EventParser()
    ends_at, tries = transport.patience_ends_at(), 0
    while True:
        try:
            async with aclosing(_stream(transport, path, attempt, parser)) as stream:
                async for event in stream:
                    ends_at, tries = transport.patience_ends_at(), 0
                    if event.kind == "end":
                        return
                    yield msgspec.convert(event.data, LogLine)
        except NotNow as broken:
            tries += 1
            ends_at = await transport.rest_following(tries, broken, ends_at)


async def _stream(
    transport: Transport, path: str, attempt: int | None, parser: EventParser
) -> AsyncGenerator[Event, None]:
    headers = {"Accept": "text/event-stream"}
    if parser.last_id:
        headers["Last-Event-ID"] = parser.last_id
    parser.forget_partial()
    question = Question("GET", f"{path}?{_query(attempt)}", headers=headers)
    async with transport.stream(question) as response:
        async for chunk in response.aiter_text():
            for event in parser.feed(chunk):
                yield event
    raise NotNow(FairwayError("the lines ended before the job did"))


def _query(attempt: int | None, cursor: str | None = None) -> str:
    asked: dict[str, str | int] = {} if attempt is None else {"attempt": attempt}
    if cursor is not None:
        asked["limit"] = LINES_AT_ONCE
    if cursor:
        asked["cursor"] = cursor
    return urlencode(asked)
