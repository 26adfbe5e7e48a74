"""The servers that a worker serves: one conversation with whoever answers, or one with each owner.

It begins at the addresses that it was given. Where several servers own shards, any of them says so
and who they are; then there is a conversation with each, and each hears of the jobs of its shards.
A worker's key goes only where it was sent by hand or by a server that it proved itself to, and in
clear only if it was given such an address; an owner that cannot be reached so, or must not, is
spoken to through the addresses that were given, where calls are passed on. When no owner answers
for a while the worker begins anew.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from fairway.core.errors import FairwayError
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.wire import exchange as wire
from fairway.worker.exchange.conversation import Conversation, OwnerPorts, Speaking
from fairway.worker.exchange.lease_ledger import Part
from fairway.worker.exchange.promises import Promises, go_round, review
from fairway.worker.exchange.readiness import NOT_OWNER
from fairway.worker.exchange.session import Session, SilentAddresses
from fairway.worker.options import WorkerOptions

log = logger("worker")

FALL_BACK_SECONDS = 5.0  # no owner answered: whoever is there knows who owns what now
FALL_BACK_ALONE_SECONDS = 0.5  # with a single owner there is no other to say who came after it
TURN_SECONDS = 0.25  # slots that are fewer than owners go to the next ones
SHUT_OUT_SECONDS = 2.0  # before one that refused our key is asked again, while others take it
ANY_LIST = 1  # told as what we know: every list is newer, also one that names a single owner
NAMED_MAX = 16  # addresses of earlier owners that are tried when nobody else answers


class Owners:
    def __init__(self, options: WorkerOptions, speaking: Speaking) -> None:
        self._options = options
        self._speaking = speaking
        self._ledger = speaking.books.ledger
        self._ports = OwnerPorts(
            self._answered, self._failed, self._offer, lambda: self._known_version
        )
        self._known_version = 0
        self._shards: dict[str, list[int]] = {}  # address of an owner → what it owns
        self._silent = SilentAddresses()
        self._named: list[str] = []  # owners that there were, the newest first
        self._tasks: dict[Conversation, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._shut_out: dict[Conversation, FairwayError] = {}
        self._is_over: asyncio.Future[None] | None = None
        self._turns, self._turning, self._is_turn_due = 0, asyncio.Event(), False
        self.all: list[Conversation] = [self._at_any()]

    @property
    def are_several(self) -> bool:
        return self.all[0].promises is not None

    @property
    def calls(self) -> list[asyncio.Task[None]]:
        """That are under way."""
        return [call for one in self.all for call in one.calls]

    @property
    def bytes_left(self) -> int:
        """Of large reports that are to be said."""
        return sum(one.reporting.bytes_left for one in self.all)

    async def talk(self) -> None:
        """With all of them, until the worker stops; or as one that nobody lets in."""
        self._is_over = asyncio.get_running_loop().create_future()
        for one in self.all:
            self._begin(one)
        stopping = asyncio.ensure_future(self._speaking.stopping.wait())
        turning = asyncio.create_task(self._turn_slots(), name="slots")
        try:
            either: set[asyncio.Future[Any]] = {stopping, self._is_over}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._is_over.done():
                self._is_over.result()
            # One may end meanwhile, with its server: what is to be drained is the others' then.
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        finally:
            stopping.cancel()
            turning.cancel()

    async def stop(self) -> None:
        for one in self.all:
            self._end(one)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def wake(self) -> None:
        for one in self.all:
            one.wake()

    def ask_again(self) -> None:
        for one in self.all:
            one.ask_again()

    def greet_again(self) -> None:
        for one in self.all:
            one.greet_again()

    def noted(self) -> None:
        for one in self.all:
            one.noted()

    async def speak(self) -> None:
        """A short call to each, of a worker that drains."""
        if not self.are_several:
            await self.all[0].speak()
            return
        said = [one.speak() for one in self.all]
        errors = await asyncio.gather(*said, return_exceptions=True)
        if all(isinstance(one, FairwayError) for one in errors):
            raise next(one for one in errors if isinstance(one, FairwayError))

    def goodbye(self) -> None:
        for one in self.all:
            one.goodbye()

    async def call(self, method: str, path: str, body: bytes, limit_seconds: float) -> bytes:
        """An errand that any server can do: by one that answers."""
        there = [one for one in self.all if one.failing_since is None]
        return await (there or self.all)[0].session.call(method, path, body, limit_seconds)

    # -- conversations -------------------------------------------------------------------------

    def _at_any(self) -> Conversation:
        """With whoever answers: as if there were no other."""
        self._shards, self._known_version = {}, 0
        self._ledger.divide({}, Part())
        urls = dict.fromkeys([*self._options.urls, *filter(self._may_call, self._named)])
        session = Session(list(urls), self._options.api_key, self._options.name, self._silent)
        return Conversation(session, self._ledger.whole, self._speaking, self._ports)

    def _with(self, url: str, *, is_known: bool) -> Conversation:
        """With this owner: itself, or by others who pass calls on."""
        urls = [url] if self._may_call(url) else []
        urls += [one for one in self._options.urls if one != url]
        about = self._options.api_key, self._options.name, self._silent
        session = Session(urls, *about, owner=url)
        promises = Promises(self._options.slots, is_known=is_known)
        return Conversation(session, Part(), self._speaking, self._ports, promises, url)

    def _may_call(self, url: str) -> bool:
        """Whether the worker's key may go there."""
        given = self._options.urls
        if url in given:
            return True
        is_safe = url.startswith("https://") or not all(one.startswith("https://") for one in given)
        return self._options.follows_owners and is_safe

    def _begin(self, one: Conversation) -> None:
        if self._is_over is not None and not self._speaking.stopping.is_set():
            self._tasks[one] = asyncio.create_task(self._talk(one), name="conversation")

    async def _talk(self, one: Conversation) -> None:
        while True:
            try:
                await one.talk()
                return
            except Exception as error:
                if isinstance(error, FairwayError):
                    self._shut_out[one] = error
                is_alone = all(other in self._shut_out for other in self.all)
                if is_alone or not isinstance(error, FairwayError):
                    if self._is_over is not None and not self._is_over.done():
                        self._is_over.set_exception(error)
                    return
                log.warning("an owner lets us not in", owner=one.url, error=error.message)
            await pause(SHUT_OUT_SECONDS)

    def _end(self, one: Conversation) -> None:
        ending = one.cancel()
        if (task := self._tasks.pop(one, None)) is not None:
            task.cancel()
            ending.append(task)
        self._shut_out.pop(one, None)
        for task in ending:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    # -- who owns what -------------------------------------------------------------------------

    def _answered(
        self, one: Conversation, request: wire.ExchangeRequest, reply: wire.ExchangeReply
    ) -> None:
        self._shut_out.pop(one, None)
        if reply.owners:
            # Not in the middle of a reply: its conversation may be over with it.
            asyncio.get_running_loop().call_soon(self._hear_owners, one, reply)
        if one.promises is not None and request.offer is not None and reply.in_use is not None:
            one.promises.answered(request.call, reply.in_use, reply.waiting)
            self._share_out()

    def _hear_owners(self, teller: Conversation, reply: wire.ExchangeReply) -> None:
        if teller not in self.all:
            return  # it was over before its word counted
        if reply.owners_version <= self._known_version:
            return  # another reply, with a newer list, has overtaken it
        shards = {one.url: one.shards for one in reply.owners if _is_address(one.url)}
        self._known_version = reply.owners_version
        if shards and shards != self._shards:
            self._serve(shards)

    def _serve(self, shards: dict[str, list[int]]) -> None:
        """These are the owners from now on; whoever owns more than before hears what is held."""
        known = {one.url: one for one in self.all if one.url}
        # Of one that had all slots nobody knows yet how many it has given out.
        kept = [known.get(url) or self._with(url, is_known=bool(known)) for url in sorted(shards)]
        for gone in self.all:
            if gone not in kept:
                self._end(gone)
        before, self.all, self._shards = self._shards, kept, shards
        self._named = list(dict.fromkeys([*shards, *self._named]))[:NAMED_MAX]
        by_shard = {shard: one.part for one in kept for shard in shards[one.url]}
        self._ledger.divide(by_shard, kept[0].part)  # whoever owns the rest next is told again
        log.info("serving owners", owners=sorted(shards), shards=sum(map(len, shards.values())))
        for one in kept:
            if not set(shards[one.url]) <= set(before.get(one.url, ())):
                one.greet_again()
            if one not in self._tasks:
                self._begin(one)

    def _failed(self, one: Conversation, error: FairwayError) -> None:
        """A call failed. Others may know whether its server owns anything still."""
        if one.promises is None:
            self._known_version = 0
            return
        self._known_version = ANY_LIST
        one.promises.lost(self._ledger.running_by_pool(one.part))
        since = [other.failing_since for other in self.all]
        patience = FALL_BACK_SECONDS
        if len(self.all) == 1:  # that it is no owner any more says whom to ask: everybody
            patience = 0.0 if error.code == NOT_OWNER else FALL_BACK_ALONE_SECONDS
        longest = time.monotonic() - patience
        if all(at is not None and at <= longest for at in since):
            asyncio.get_running_loop().call_soon(self._begin_anew)
        else:
            self._share_out()

    def _begin_anew(self) -> None:
        """No owner answers: perhaps others are by now. Also for one that drains, which has reports
        to say; then nobody talks but whoever drains it."""
        if self.are_several:
            log.warning("no owner answers; asking who there is", tried=len(self.all))
            for one in self.all:
                self._end(one)
            self.all = [self._at_any()]
            self._begin(self.all[0])

    # -- slots ---------------------------------------------------------------------------------

    def _offer(self, one: Conversation, number: int) -> wire.SlotOffer | None:
        if one.promises is None:
            return None
        others = (other for other in self.all if other is not one)
        elsewhere = sum((self._running(other) for other in others), Counter[str]())
        return wire.SlotOffer(
            slots=one.promises.say(number), elsewhere=elsewhere, is_counted=one is self._home()
        )

    def _running(self, one: Conversation) -> Counter[str]:
        return Counter() if one.promises is None else Counter(one.promises.in_use)

    def _home(self) -> Conversation:
        """The owner that counts this worker: the first that answers, in an order of its own."""
        there = [one for one in self.all if one.failing_since is None] or self.all
        start = sum(self._options.name.encode()) % len(self.all)
        order = self.all[start:] + self.all[:start]
        return next(one for one in order if one in there)

    def _share_out(self) -> None:
        promises = [one.promises for one in self.all if one.promises is not None]
        for number in review(self._options.slots, promises, self._turns):
            self.all[number].ask_again()
        if go_round(self._options.slots, promises):
            self._is_turn_due = True
            self._turning.set()
        if any(one.is_doubted for one in promises):
            self._turning.set()

    async def _turn_slots(self) -> None:
        """While work waits at more owners than there are slots, or perhaps not for us."""
        while True:
            await self._turning.wait()
            await pause(TURN_SECONDS)
            self._turning.clear()
            self._turns += self._is_turn_due
            self._is_turn_due = False
            for one in self.all:
                if one.promises is not None:
                    one.promises.turn()
            self._share_out()


def _is_address(url: str) -> bool:
    """Names a host and nothing else that a client would act on."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def surplus_of(new: Sequence[wire.Lease], running: int, slots: int) -> Iterable[wire.Lease]:
    """Of these leases, those that no slot is left for: their owners must have them back.

    It takes an owner that sends leases again which were lost on their way when their slots had been
    given to another by then.
    """
    over = min(max(running - slots, 0), len(new))
    return new[len(new) - over :]
