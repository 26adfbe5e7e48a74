"""Replies that are a moment old, for those who say that they take one: pages that ask again.

A dashboard asks for the same every few seconds, and many look at the same. With `Cache-Control:
max-age=SECONDS` (RFC 9111) a request for something to read takes the reply that another with the
same key, for the same tenant, was given so many seconds ago at most; who asks while that is being
made waits for it. Without the header everybody is answered anew: who changed something sees it.

Whoever asks is looked at first, each time: a key that was revoked or may not read is told nothing.
What is kept is bounded in count, bytes and time. Streams and hot paths are not for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from fairway.api.auth import CALLER, admit
from fairway.api.endpoint import Endpoint
from fairway.api.http.asgi import JSON, Receive, Scope, Send
from fairway.api.http.headers import Header, header
from fairway.api.tenant_parts.meant import PART
from fairway.core.ids import TenantId
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ENDPOINT = "fairway.endpoint"  # in a scope: which one answered
AGE_MAX_SECONDS = 10
KEPT_MAX = 512
KEPT_BYTES_MAX = 16 << 20
REPLY_BYTES_MAX = 256 << 10
PATHS_MAX = 4096
WAIT_SECONDS = 2.0  # for one that another asked for

#: A reply to a request with one of these is for that request alone.
OWN_QUESTION = (b"prefer", b"if-none-match", b"last-event-id", b"range")
OWN_ANSWER = (b"x-request-id", b"set-cookie")
_MAX_AGE = re.compile(rb"max-age=(\d{1,3})")


class Asked(NamedTuple):
    """All that a reply depends on."""

    key_id: str
    tenant: TenantId | None
    path: str
    query: bytes
    accept: bytes | None
    part: bytes | None  # named; the first has the number of the whole tenant


class Kept(NamedTuple):
    at_us: int
    headers: list[Header]
    body: bytes


class RecentReplies:
    def __init__(self, platform: Platform, answer: Answer) -> None:
        """`answer` makes a reply anew."""
        self._platform = platform
        self._answer = answer
        self._endpoints: dict[str, Endpoint] = {}  # by path, of replies that were kept
        self._kept: dict[Asked, Kept] = {}  # the oldest first
        self._kept_bytes = 0
        self._making: dict[Asked, asyncio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        age_seconds = accepted_age_seconds(scope)
        if not age_seconds:
            await self._answer(scope, receive, send)
            return
        endpoint = self._endpoints.get(scope["path"])
        if endpoint is None:  # nobody was answered there yet
            await self._make(scope, receive, send)
            return
        asked = _asked(scope, await admit(scope, self._platform, endpoint))
        kept = await self._recent(asked, age_seconds * 1_000_000)
        if kept is not None:
            await self._send(kept, send)
            return
        made = self._making.setdefault(asked, asyncio.Event())
        try:
            await self._make(scope, receive, send)
        finally:
            made.set()
            if self._making.get(asked) is made:
                del self._making[asked]

    async def _recent(self, asked: Asked, age_us: int) -> Kept | None:
        """None: whoever asks makes it."""
        if (found := self._fresh(asked, age_us)) is not None:
            return found
        making = self._making.get(asked)
        if making is None:
            return None
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await making.wait()
        except TimeoutError:
            return None
        return self._fresh(asked, age_us)

    def _fresh(self, asked: Asked, age_us: int) -> Kept | None:
        found = self._kept.get(asked)
        is_fresh = found is not None and self._platform.clock.now_us() - found.at_us <= age_us
        return found if is_fresh else None

    async def _send(self, kept: Kept, send: Send) -> None:
        age_seconds = max(self._platform.clock.now_us() - kept.at_us, 0) // 1_000_000
        headers = [*kept.headers, (b"age", b"%d" % age_seconds)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": kept.body, "more_body": False})

    async def _make(self, scope: Scope, receive: Receive, send: Send) -> None:
        at_us, copy = self._platform.clock.now_us(), _Copy(send)
        await self._answer(scope, receive, copy.send)
        endpoint: Endpoint | None = scope.get(ENDPOINT)
        if endpoint is None or not endpoint.keys or not copy.is_whole:
            return
        if len(self._endpoints) >= PATHS_MAX:
            self._endpoints.clear()
        self._endpoints[scope["path"]] = endpoint
        self._keep(_asked(scope, scope[CALLER]), Kept(at_us, copy.headers, bytes(copy.body)))

    def _keep(self, asked: Asked, kept: Kept) -> None:
        self._forget(asked)
        self._kept[asked] = kept
        self._kept_bytes += len(kept.body)
        oldest_us = self._platform.clock.now_us() - AGE_MAX_SECONDS * 1_000_000
        for one in list(self._kept):
            is_full = len(self._kept) > KEPT_MAX or self._kept_bytes > KEPT_BYTES_MAX
            if not is_full and self._kept[one].at_us >= oldest_us:
                return
            self._forget(one)

    def _forget(self, asked: Asked) -> None:
        if (found := self._kept.pop(asked, None)) is not None:
            self._kept_bytes -= len(found.body)


def accepted_age_seconds(scope: Scope) -> int:
    """How old a reply may be by the request's own word; 0: it is to be made anew."""
    said = header(scope, b"cache-control")
    if said is None or scope["method"] != "GET" or not scope["path"].startswith("/v1/"):
        return 0
    if any(header(scope, name) is not None for name in OWN_QUESTION):
        return 0
    found = _MAX_AGE.fullmatch(said.strip())
    return min(int(found[1]), AGE_MAX_SECONDS) if found else 0


def _asked(scope: Scope, caller: Principal) -> Asked:
    tenant = None if caller.tenant is None else caller.tenant.id
    said = scope["path"], scope["query_string"], header(scope, b"accept"), header(scope, PART)
    return Asked(caller.key_id, tenant, *said)


class _Copy:
    """What goes out, as it goes; whole only if it was JSON, went well, and is not too large."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_wanted = False
        self.headers: list[Header] = []
        self.body = bytearray()
        self.is_whole = False

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._is_wanted = message["status"] == 200 and JSON in message["headers"]
            self.headers = [one for one in message["headers"] if one[0] not in OWN_ANSWER]
        elif self._is_wanted:
            self.body += message.get("body", b"")
            self._is_wanted = len(self.body) <= REPLY_BYTES_MAX
            self.is_whole = self._is_wanted and not message.get("more_body", False)
        await self._send(message)
