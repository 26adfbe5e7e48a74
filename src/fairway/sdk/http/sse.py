"""Server-sent events, read by hand: text in, events out. Pure; connections are the client's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

_LINE_END = re.compile(r"\r\n|\n|\r")


class Event(NamedTuple):
    """One thing that happened to a job. `id` is its place in the log."""

    kind: str
    data: Any
    id: str = ""


class EventParser:
    """Takes the stream in pieces of any size. `last_id` is where to resume a broken one."""

    def __init__(self) -> None:
        self.last_id = ""
        self.forget_partial()

    def forget_partial(self) -> None:
        """A new connection starts with a whole event."""
        self._kind = ""
        self._id = self.last_id
        self._data: list[str] = []
        self._rest = ""

    def feed(self, chunk: str) -> Iterator[Event]:
        text = self._rest + chunk
        # A final "\r" may be half of "\r\n": it waits for the next piece.
        held = len(text) - 1 if text.endswith("\r") else len(text)
        *lines, last = _LINE_END.split(text[:held])
        self._rest = last + text[held:]
        for line in lines:
            event = self._take(line)
            if event is not None:
                yield event

    def _take(self, line: str) -> Event | None:
        if not line:
            return self._close()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._kind = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
            case _:  # a comment keeps the connection warm; `retry` is for browsers
                pass
        return None

    def _close(self) -> Event | None:
        kind, data = self._kind or "message", self._data
        self._kind, self._data = "", []
        self.last_id = self._id  # also of one without data: it says only how far the server is
        return Event(kind, _value_of("\n".join(data)), self._id) if data else None


def _value_of(data: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data
