"""The conversation with the platform: the only file that knows the transport.

One exchange at a time is the rule, and a second one when there is something to say while the
first is held open. A call that fails is followed by another to the next address, after a pause
that grows; the caller then says hello again and sends all it has not heard of since.
A worker with several owners has one of these for each. Whoever passes calls on to an owner reads
and writes each of them once more: so it is only spoken with until the owner itself answers again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import quote

import msgspec

from fairway.core.backoff import backoff_seconds
from fairway.core.errors import Conflict, FairwayError, InvalidRequest, NotFound, Unavailable
from fairway.runtime.plain_http import HttpClient, Reply
from fairway.wire import exchange as wire
from fairway.wire.problems import CODES, error_of
from fairway.worker.exchange.large_results import Parts, size_of

PAUSE_FIRST_SECONDS = 0.05
PAUSE_MAX_SECONDS = 1.0
GRACE_SECONDS = 3.0  # on top of the time a call may be held open; leases outlive the sum
NO_ROOM = "NO_ROOM"  # the code of: not so large a call just now; a smaller one is heard
BYTES_PER_SECOND = 64 << 10  # what the slowest link brings over; large calls get time for it
SILENT_SECONDS = 5.0  # so long others are asked first
LOOK_FIRST_SECONDS = 5.0  # from an owner's silence until it is asked whether it answers again
LOOK_MAX_SECONDS = 640.0  # there may never be a way to it from here
LOOK_ANSWER_SECONDS = 2.0


class Caller(Protocol):
    """Whoever reaches a server for errands beside the exchange."""

    async def call(self, method: str, path: str, body: bytes, limit_seconds: float) -> bytes:
        """The body of a good answer, below the worker's own path."""


class SilentAddresses:
    """Those that gave no answer of late, known to all conversations.

    A process that died may leave one at which the kernel takes calls and nobody answers them.
    """

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def missed(self, url: str) -> None:
        self._until[url] = time.monotonic() + SILENT_SECONDS

    def __contains__(self, url: str) -> bool:
        return time.monotonic() < self._until.get(url, 0.0)


class Session:
    def __init__(
        self,
        urls: Sequence[str],
        api_key: str,
        worker: str,
        silent: SilentAddresses,
        owner: str | None = None,
    ) -> None:
        """`owner` is who is meant, where there are several: other addresses pass calls on to it."""
        headers = {"authorization": f"Bearer {api_key}", "content-type": "application/json"}
        self._clients = [(url, HttpClient(url, headers)) for url in urls]
        self._silent = silent
        self._home = f"/v1/workers/{worker}"
        self._path = f"{self._home}/exchange"
        if owner is not None:
            self._path += f"?owner={quote(owner, safe='')}"
        self._owner = owner if urls[0] == owner else None  # where it is reached itself
        self._look_at = 0.0  # at the owner, while others pass calls on to it
        self._look_seconds = LOOK_FIRST_SECONDS
        self._looking: asyncio.Task[None] | None = None
        self._failures_in_row = 0
        self.asked = urls[0]  # the address of the last call
        self._random = random.Random()

    async def exchange(self, request: wire.ExchangeRequest, text: Parts) -> wire.ExchangeReply:
        """Raises FairwayError; `Unavailable` means that another try may help."""
        url, client = self._clients[0]
        self.asked = url
        if url != self._owner and self._is_look_due():
            self._looking = asyncio.create_task(self._look(), name="look at the owner")
        limit_seconds = request.wait_ms / 1000 + GRACE_SECONDS + size_of(text) / BYTES_PER_SECOND
        try:
            reply = await client.post(self._path, text, limit_seconds)
        except (OSError, TimeoutError) as error:
            self._silent.missed(url)
            self._leave(url)
            raise Unavailable(f"{url} does not answer: {_reason(error)}.") from error
        if reply.status != 200:
            problem = _error(reply)
            if not is_refusal(problem) and problem.code != NO_ROOM:
                self._leave(url)
            raise problem
        self._failures_in_row = 0
        if url == self._owner:
            self._look_seconds = LOOK_FIRST_SECONDS
        return wire.decode_reply(reply.body)

    async def call(self, method: str, path: str, body: bytes, limit_seconds: float) -> bytes:
        """Any other call, below the worker's own path; the body of a good answer."""
        url, client = self._clients[0]
        try:
            reply = await client.call(method, self._home + path, body, limit_seconds)
        except (OSError, TimeoutError) as error:
            raise Unavailable(f"{url} does not answer: {_reason(error)}.") from error
        if reply.status >= 300:
            raise _error(reply)
        return reply.body

    def _leave(self, url: str) -> None:
        """The next call goes to the next address that was not silent a moment ago, if there is one;
        a second failure of the same one is no news."""
        if self._clients[0][0] == url:
            self._clients.append(self._clients.pop(0))
            heard = [
                place for place, (one, _) in enumerate(self._clients) if one not in self._silent
            ]
            first = heard[0] if heard else 0
            self._clients = self._clients[first:] + self._clients[:first]
        if url == self._owner:
            self._look_at = time.monotonic() + self._look_seconds

    def _is_look_due(self) -> bool:
        is_looking = self._looking is not None and not self._looking.done()
        return self._owner is not None and not is_looking and time.monotonic() >= self._look_at

    async def _look(self) -> None:
        """Beside the conversation, which a silent address would hold up for as long as a call."""
        url, client = next(one for one in self._clients if one[0] == self._owner)
        self._look_seconds = min(2 * self._look_seconds, LOOK_MAX_SECONDS)
        self._look_at = time.monotonic() + self._look_seconds
        try:
            reply = await client.call("GET", "/livez", b"", LOOK_ANSWER_SECONDS)
        except (OSError, TimeoutError):
            return
        if reply.status == 200:
            self._clients.remove((url, client))
            self._clients.insert(0, (url, client))

    def next_pause_seconds(self) -> float:
        """After a failed call: how long to rest."""
        self._failures_in_row += 1
        longest = backoff_seconds(PAUSE_FIRST_SECONDS, self._failures_in_row, PAUSE_MAX_SECONDS)
        return float(longest * (0.5 + self._random.random() / 2))

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        for _, client in self._clients:
            client.close()


def is_refusal(error: FairwayError) -> bool:
    """Whether what was said will never be taken: to say it again, or elsewhere, cannot help.

    A key that is refused is another matter, and so is a limit that passes. `Not found` counts only
    from a server of ours: else the address is wrong, or somebody in between is lost.
    """
    if error.code == "TOO_MANY_JOB_TYPES":
        return False  # of an older server; names go, and then there is room
    if isinstance(error, NotFound | Conflict):
        return error.code in CODES and error.code != "INTERNAL"
    return isinstance(error, InvalidRequest)


def _reason(error: OSError | TimeoutError) -> str:
    """A wrong address is met by whoever starts a first worker: words, no repr."""
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there (connection refused)"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "no reply in time" if isinstance(error, TimeoutError) else repr(error)


def _error(reply: Reply) -> FairwayError:
    try:
        problem = msgspec.json.decode(reply.body, type=dict)
    except msgspec.DecodeError:
        problem = {"status": reply.status, "detail": reply.body[:200].decode(errors="replace")}
        if reply.status >= 500:  # of somebody in between: the server itself explains its errors
            problem["code"] = Unavailable.code
    return error_of(problem)
