"""HTTP with manners: connections kept per event loop, questions asked again until patience ends.

It knows statuses and problems, not jobs. A question is asked again when the server says "not now",
when it cannot be reached and when its reply is lost: whoever asks makes sure that asking twice does
no harm. Every question has a deadline, so nothing here waits for ever.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx2
import msgspec

from fairway.core.errors import Conflict, FairwayError, Forbidden
from fairway.sdk.http.addresses import OWNER_HEADER, Addresses
from fairway.sdk.http.backoff import parse_retry_after, pause_seconds
from fairway.sdk.http.http_reply import HttpReply
from fairway.sdk.http.proxies import is_proxied
from fairway.sdk.http.settings import ClientSettings
from fairway.sdk.http.unreachable import Unreachable
from fairway.wire.problems import error_of, naming_its_field

CONNECT_SECONDS = 5.0
STREAM_SILENCE_SECONDS = 45.0  # three pings of a server's stream
# Below what servers keep: a connection must not be closed on us in the moment we use it.
KEEP_ALIVE_SECONDS = 4.0
UPLOAD_SECONDS = 300.0

NOT_NOW = frozenset({429, 502, 503, 504})
ELSEWHERE = NOT_NOW - {429}  # another server may do; a limit is the same at every one

KEY_HEADER = "Authorization"
SENT_KEY = MappingProxyType({KEY_HEADER: ""})
NO_KEY = (
    "The server asks for a key, and none was given: set FAIRWAY_API_KEY beside FAIRWAY_URL, or"
    ' write App(…, api_key="fw_…").'
)

TENANT_MOVING = "TENANT_MOVING"
HOME_ELSEWHERE = "HOME_ELSEWHERE"  # a region says so of what it does not pass on, such as a stream


class Question(NamedTuple):
    """One request, harmless when it arrives twice."""

    method: str
    path: str
    content: bytes | None = None
    headers: Mapping[str, str] = MappingProxyType({})
    wait_seconds: float = 0  # how long the server was asked to hold the reply
    again_on: frozenset[int] = NOT_NOW
    final_on: frozenset[str] = frozenset()  # codes of problems that no repeat changes
    tells_repeats: bool = False  # a refusal of a repeat is `RefusedRepeat`


class NotNow(Exception):
    """This try brought no answer, another may."""

    def __init__(
        self,
        error: FairwayError,
        retry_after_seconds: float | None = None,
        is_elsewhere: bool = False,  # the next try goes to another server, if there is one
        is_sent: bool = True,  # it may have been heard
    ) -> None:
        self.error = error
        self.retry_after_seconds = retry_after_seconds
        self.is_elsewhere = is_elsewhere
        self.is_sent = is_sent


class RefusedRepeat(Exception):
    """Refused, after a try that brought no answer: that one may have done what was asked."""

    def __init__(self, error: FairwayError) -> None:
        self.error = error


class Transport:
    """The way to the servers of one platform with one key."""

    def __init__(self, settings: ClientSettings, user_agent: str, patience_seconds: float) -> None:
        self.addresses = Addresses(settings.url)
        self._patience_seconds = patience_seconds
        self.headers = {"User-Agent": user_agent}
        if settings.api_key:
            self.headers[KEY_HEADER] = f"Bearer {settings.api_key}"
        if settings.acting_for:
            self.headers["Fairway-Tenant"] = settings.acting_for
        self._by_loop: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}

    async def ask(self, question: Question) -> bytes:
        """The body of a good answer; a FairwayError for any other end."""
        ends_at = time.monotonic() + self._patience_seconds + question.wait_seconds
        tries = 0
        while True:
            tries += 1
            try:
                return await self.attempt(question, ends_at - time.monotonic())
            except NotNow as not_now:
                await self.rest(tries, not_now, ends_at)
            except FairwayError as error:
                if tries > 1 and question.tells_repeats:
                    raise RefusedRepeat(error) from error
                raise

    async def rest(self, tries: int, not_now: NotNow, ends_at: float) -> None:
        """Pause before the next try, or give up when it would come too late.

        A server that was not asked yet is asked at once.
        """
        is_next = not_now.is_elsewhere and not self.addresses.are_all_tried(tries)
        rounds, after = self.addresses.rounds(tries), not_now.retry_after_seconds
        pause = 0.0 if is_next else pause_seconds(rounds, after, random.random())
        if time.monotonic() + pause >= ends_at:
            raise not_now.error from not_now.__cause__
        await asyncio.sleep(pause)

    async def rest_following(self, tries: int, not_now: NotNow, ends_at: float) -> float:
        """As `rest`, for whoever follows something without an end of its own; answers until when
        it has patience. Of a tenant that moves a server says so itself: that ends, however long it
        takes."""
        if not_now.error.code == TENANT_MOVING:
            ends_at = self.patience_ends_at() + (not_now.retry_after_seconds or 0)
        await self.rest(tries, not_now, ends_at)
        return ends_at

    def patience_ends_at(self) -> float:
        return time.monotonic() + self._patience_seconds

    @asynccontextmanager
    async def stream(self, question: Question) -> AsyncIterator[httpx2.Response]:
        """An open reply, read piece by piece; NotNow when it broke and may be asked for again."""
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=STREAM_SILENCE_SECONDS)
        url = self.addresses.current
        with self._leaving_the_silent(url):
            async with self._client().stream(
                question.method, url + question.path, headers=question.headers, timeout=timeout
            ) as response:
                if response.is_error:
                    await response.aread()
                    raise_for(response, question, self.headers)
                yield response

    @contextmanager
    def _leaving_the_silent(self, url: str) -> Iterator[None]:
        """Whoever asks next asks another when this one gives no answer."""
        try:
            yield
        except httpx2.TransportError as error:
            self.addresses.leave(url)
            is_sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            raise NotNow(self._unreachable(error), is_elsewhere=True, is_sent=is_sent) from error
        except NotNow as not_now:
            if not_now.is_elsewhere:
                self.addresses.leave(url)
            raise
        except Conflict as error:
            if error.code != HOME_ELSEWHERE or len(self.addresses.all) < 2:
                raise
            self.addresses.leave(url)
            raise NotNow(error, is_elsewhere=True) from error

    async def put(self, url: str, content: bytes) -> None:
        """To an address of its own, without our key; FairwayError when it is not taken.

        Harmless when it arrives twice. What a try took is no part of our patience: it may be long.
        """
        waited_seconds, tries = 0.0, 0
        async with httpx2.AsyncClient(timeout=UPLOAD_SECONDS) as client:
            while True:
                tries += 1
                try:
                    return await self._put(client, url, content)
                except NotNow as not_now:
                    began = time.monotonic()
                    await self.rest(tries, not_now, self.patience_ends_at() - waited_seconds)
                    waited_seconds += time.monotonic() - began
                except Conflict:
                    if tries == 1:
                        raise
                    return None  # an earlier try arrived, and only its reply was lost

    async def _put(self, client: httpx2.AsyncClient, url: str, content: bytes) -> None:
        try:
            response = await client.put(url, content=content)
        except httpx2.TransportError as error:
            raise NotNow(self._unreachable(error)) from error
        if response.is_error:
            raise_for(response, Question("PUT", url))

    async def aclose(self) -> None:
        client = self._by_loop.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def close_idle(self) -> None:
        """Idle connections close by themselves, a few seconds after their last use."""

    async def attempt(self, question: Question, left_seconds: float) -> bytes:
        """One try: the body of a good answer; NotNow when another may bring one."""
        url = self.addresses.pick()
        try:
            return await self._attempt(url, question, left_seconds)
        except NotNow as not_now:
            # One that may have been heard is a try: whoever asked must know of it before the next.
            is_try = not_now.is_sent or not self.addresses.is_short_cut(url)
            if is_try or not not_now.is_elsewhere:
                raise
        return await self._attempt(self.addresses.current, question, left_seconds)

    async def _attempt(self, url: str, question: Question, left_seconds: float) -> bytes:
        content_bytes = len(question.content or b"")
        share = self.addresses.try_seconds(url, self._patience_seconds, content_bytes)
        left_seconds = max(min(left_seconds, share + question.wait_seconds), 0.1)
        timeout = httpx2.Timeout(left_seconds, connect=min(CONNECT_SECONDS, left_seconds))
        with self._leaving_the_silent(url):
            response = await self._client().request(
                question.method,
                url + question.path,
                content=question.content,
                headers=question.headers,
                timeout=timeout,
            )
            if response.is_error:
                raise_for(response, question, self.headers)
            self.addresses.answered(url)
            self.addresses.learn(response.headers.get(OWNER_HEADER))
            return response.content

    def _client(self) -> httpx2.AsyncClient:
        """The client of this event loop: connections cannot be shared between loops."""
        loop = asyncio.get_running_loop()
        client = self._by_loop.get(loop)
        if client is None:
            self._forget_closed_loops()
            client = self._by_loop[loop] = httpx2.AsyncClient(
                headers=self.headers,
                limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS),
                verify=self._certificates(),
            )
        return client

    def _certificates(self) -> ssl.SSLContext | bool:
        """None, where no TLS is spoken: to read all of the machine's takes a tenth of a second."""
        urls = self.addresses.all
        is_plain = all(url.startswith("http://") and not is_proxied(url) for url in urls)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True

    def _forget_closed_loops(self) -> None:
        for loop in list(self._by_loop):  # a copy: other threads may be adding theirs
            if loop.is_closed():
                self._by_loop.pop(loop, None)

    def _unreachable(self, error: Exception) -> Unreachable:
        asked = f"{self.addresses} gave no answer ({_named(error)})"
        return Unreachable(f"{asked}; is the server running?")


def raise_for(
    response: httpx2.Response | HttpReply,
    question: Question,
    sent: Mapping[str, str] = SENT_KEY,
) -> None:
    """`sent` are the headers that every question to a server has."""
    if response.status_code == 401 and KEY_HEADER not in sent:
        raise Forbidden(NO_KEY, code="UNAUTHENTICATED")
    retry_after = parse_retry_after(response.headers.get("retry-after"), time.time())
    error = error_of(_problem(response), 1 if retry_after is None else retry_after)
    naming_its_field(error)
    if response.status_code in question.again_on and error.code not in question.final_on:
        raise NotNow(error, retry_after, response.status_code in ELSEWHERE)
    raise error


def _problem(response: httpx2.Response | HttpReply) -> dict[str, Any]:
    """The problem document, or one made up for a server (or proxy) that sent none."""
    try:
        document = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        document = None
    if isinstance(document, dict):
        return {"status": response.status_code, **document}
    text = f"HTTP {response.status_code} {response.reason_phrase}".strip()
    return {"status": response.status_code, "code": "UNEXPECTED_REPLY", "detail": text}


def _named(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
