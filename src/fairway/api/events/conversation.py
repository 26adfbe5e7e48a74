"""What is said on one socket: subscriptions come and go, each is told its events in order.

One task hears, one tells; subscriptions take turns, a page each. Nothing waits in between: what a
client does not read is read from the log later, or its connection is cut.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import msgspec

from fairway.api.events.event_log import filter_of, places_of
from fairway.api.events.socket_line import GOING_AWAY, SocketLine
from fairway.api.events.stream import PING_SECONDS, begin_at, gap_text
from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.core.errors import Conflict, FairwayError, InvalidRequest, LimitReached, NotFound
from fairway.core.events.event_filter import EventFilter
from fairway.core.events.event_gap import EventGap, LogItem
from fairway.core.events.log_places import Places, shown
from fairway.runtime.loops import WorkInParts, pause
from fairway.services.events.part_logs import LogFollower, PartLogs
from fairway.wire import problems
from fairway.wire.events import SocketRequest

SUBSCRIPTIONS_MAX = 32
MESSAGE_COST = 4  # an event on a socket is as dear as so many in a stream
REQUESTS_AT_ONCE = 64
APART_SECONDS = 0.05  # between requests after those

_decode = msgspec.json.Decoder(SocketRequest).decode


class Subscription:
    """What a client calls it, what it wants, and how far it has been told."""

    def __init__(self, name: str, wanted: EventFilter, after: Places) -> None:
        self.name = name
        self._wanted = wanted
        self.places = after
        self._head = b'{"subscription":%s,' % msgspec.json.encode(name)

    def told(self, items: Iterable[tuple[Places, LogItem]]) -> Iterator[bytes]:
        """What is to be said of these; the places move on with it."""
        for self.places, item in items:
            if isinstance(item, EventGap):
                yield self._head + b'"gap":%s}' % gap_text(item)
            elif self._wanted.matches(item):
                yield self._head + b'"event":%s}' % msgspec.json.encode(item)

    def place(self, word: bytes = b"position") -> bytes:
        """Where it is: after a filter let nothing through, the client need not go back so far."""
        return self._head + b'"%s":%s}' % (word, msgspec.json.encode(shown(self.places)))


class Conversation:
    def __init__(self, line: SocketLine, logs: PartLogs) -> None:
        self._line = line
        self._logs = logs
        self._subscriptions: dict[str, Subscription] = {}

    async def run(self) -> None:
        """Until one side ends it: SocketGone, a FairwayError, or the server stops."""
        with self._logs.follow() as follower:
            both = (
                asyncio.create_task(self._tell(follower), name="socket: tell"),
                asyncio.create_task(self._hear(follower), name="socket: hear"),
            )
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in both:
                    task.cancel()
                await asyncio.wait(both)
            failures = [task.exception() for task in both if not task.cancelled()]
            for failure in filter(None, failures):
                raise failure
        await self._line.close(GOING_AWAY, "The server stops; come back.")

    # -- telling -----------------------------------------------------------------------------

    async def _tell(self, follower: LogFollower) -> None:
        now = asyncio.get_running_loop().time
        said_at, work = now(), WorkInParts()
        while not follower.is_closed:
            looked_at = 0
            for one in list(self._subscriptions.values()):
                looked_at += await self._tell_one(follower, one)
                await work.let_others()
            if now() - said_at >= PING_SECONDS:
                said_at = now()
                for one in list(self._subscriptions.values()):
                    await self._line.say(one.place())
            if looked_at:
                await follower.rest(looked_at * MESSAGE_COST)
                continue
            places = [one.places for one in self._subscriptions.values()]
            least = tuple(map(min, zip(*places, strict=True)))
            await follower.until_news(least or None, PING_SECONDS)

    async def _tell_one(self, follower: LogFollower, one: Subscription) -> int:
        items, count = await follower.following(one.places)
        for text in one.told(items):
            if self._subscriptions.get(one.name) is not one:
                break  # it was ended meanwhile
            await self._line.say(text)
        return count

    # -- hearing -----------------------------------------------------------------------------

    async def _hear(self, follower: LogFollower) -> None:
        heard = 0
        while True:
            text = await self._line.hear()
            name = ""
            try:
                asked = _understood(text)
                name = asked.subscribe or asked.unsubscribe or ""
                await self._obey(asked)
                follower.wake()
            except FairwayError as error:
                await self._line.say(_refusal(name, error))
            heard += 1
            if heard > REQUESTS_AT_ONCE:
                await pause(APART_SECONDS)

    async def _obey(self, asked: SocketRequest) -> None:
        if asked.unsubscribe is not None:
            await self._unsubscribe(asked.unsubscribe)
        elif asked.subscribe is not None:
            await self._subscribe(asked.subscribe, asked)

    async def _unsubscribe(self, name: str) -> None:
        gone = self._subscriptions.pop(name, None)
        if gone is None:
            raise NotFound(f"There is no subscription {name!r} on this socket.")
        await self._line.say(gone.place(b"unsubscribed_at"))

    async def _subscribe(self, name: str, asked: SocketRequest) -> None:
        self._check_room(name)
        wanted = _filter_of(asked)
        after = None if asked.after is None else places_of(str(asked.after), self._logs.count)
        made = Subscription(name, wanted, await begin_at(self._logs, after))
        await self._line.say(made.place(b"subscribed_at"))
        self._subscriptions[name] = made  # only now: its events come after that word

    def _check_room(self, name: str) -> None:
        if name in self._subscriptions:
            raise Conflict(
                f"There is a subscription {name!r} on this socket; unsubscribe first, or take"
                " another name.",
                field="/subscribe",
            )
        if len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
            raise LimitReached(
                f"A socket has at most {SUBSCRIPTIONS_MAX} subscriptions; open another one.",
                code="TOO_MANY_STREAMS",
            )


def _understood(text: bytes) -> SocketRequest:
    try:
        asked = _decode(text)
    except UNDECODABLE as error:
        raise invalid(error, text) from None
    if (asked.subscribe is None) == (asked.unsubscribe is None):
        raise InvalidRequest('A message says either "subscribe" or "unsubscribe", with a name.')
    return asked


def _filter_of(asked: SocketRequest) -> EventFilter:
    try:
        return filter_of({"kind": asked.kind, "type": asked.type, "job": asked.job})
    except InvalidRequest as error:
        raise InvalidRequest(error.message, field=f"/{error.field}") from None


def _refusal(name: str, error: FairwayError) -> bytes:
    problem = problems.encode(problems.problem_of(error))
    head = b'{"subscription":%s,' % msgspec.json.encode(name) if name else b"{"
    return head + b'"error":%s}' % problem
