"""Which owners a worker serves: as it is told, over failures, and until it ends."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from fairway.core.errors import Unavailable
from fairway.core.ids import ShardId, Term
from fairway.services.workers.owner_list import OwnerList
from fairway.store.leadership import Owner
from fairway.wire import exchange as wire
from fairway.worker.exchange import owners as module
from fairway.worker.exchange.conversation import Conversation, Speaking
from fairway.worker.exchange.lease_ledger import LeaseLedger
from fairway.worker.exchange.owners import Owners
from fairway.worker.options import WorkerOptions

SILENT = Unavailable("It does not answer.")
A, B = "http://127.0.0.1:1", "http://127.0.0.1:2"


class Server:
    """What a server knows of owners, shard by shard."""

    def __init__(self, *owners: tuple[int, str]) -> None:
        self.list = OwnerList(lambda: self.owners)
        self.know(*owners)

    def know(self, *owners: tuple[int, str]) -> None:
        """The term and the address of each; an empty one is nobody."""
        found = enumerate(owners)
        self.owners = {
            ShardId(n): Owner(ShardId(n), Term(term), url, url) for n, (term, url) in found if url
        }

    def reply(self, known: int) -> wire.ExchangeReply:
        news = self.list.news(known)
        if news is None:
            return wire.ExchangeReply()
        owners = [wire.OwnerAt(url=url, shards=list(of)) for url, of in news.shards.items()]
        return wire.ExchangeReply(owners=owners, owners_version=news.version)


def worker_at(url: str) -> Owners:
    options = WorkerOptions(target="", name="one", urls=[url], api_key="key", slots={"short": 4})
    books: Any = SimpleNamespace(
        ledger=LeaseLedger(on_failure=lambda lease, report: None), heard=None, written=None
    )
    nobody: Any = None
    stopping = asyncio.Event()
    return Owners(
        options,
        Speaking("k", books, nobody, stopping, nobody, nobody, nobody, nobody, nobody, nobody),
    )


def hear(worker: Owners, server: Server, teller: int = -1) -> list[str]:
    """A call that is answered; the owners that are served then."""
    reply = server.reply(worker._ports.owners_version())
    if reply.owners:
        worker._hear_owners(worker.all[teller], reply)
    return [one.url for one in worker.all]


async def test_when_one_of_two_owners_dies_the_other_is_the_only_one() -> None:
    """Else what is to be said of its shards would be kept for it, for ever."""
    server, worker = Server((1, A), (1, B)), worker_at(B)
    assert hear(worker, server) == [A, B]
    worker._failed(worker.all[0], SILENT)
    server.know((1, ""), (1, B))  # its term is over, and nobody has taken its shard yet
    assert hear(worker, server) == [A, B]
    worker._failed(worker.all[0], SILENT)
    server.know((2, B), (1, B))
    assert hear(worker, server) == [B]
    assert worker._ledger._by_shard[0] is worker.all[0].part


async def test_an_owner_that_was_late_and_goes_on_is_served_again() -> None:
    server, worker = Server((1, A), (1, B), (1, "http://127.0.0.1:3")), worker_at(B)
    assert len(hear(worker, server)) == 3
    worker._failed(worker.all[0], SILENT)
    server.know((1, ""), (1, B), (1, "http://127.0.0.1:3"))
    hear(worker, server)
    server.know((1, A), (1, B), (1, "http://127.0.0.1:3"))  # in the same term
    assert A in hear(worker, server)


async def test_a_list_that_a_newer_one_has_overtaken_is_not_heeded() -> None:
    server, worker = Server((1, A), (1, B)), worker_at(B)
    old = server.reply(0)
    server.know((1, A), (2, A))
    worker._known_version = 2
    assert hear(worker, server) == [A]
    worker._hear_owners(worker.all[0], old)
    assert [one.url for one in worker.all] == [A]


async def test_a_worker_that_drains_looks_for_who_came_after_its_only_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else what it ran would be known to nobody, and would run again."""
    monkeypatch.setattr(module, "FALL_BACK_ALONE_SECONDS", 0.0)
    server, worker = Server((1, A)), worker_at(B)
    told = server.list.news(0, is_passed_on=True)
    assert told is not None
    assert server.list.news(0) is None, "of one that a worker speaks with it need not hear"
    worker._serve({url: list(shards) for url, shards in told.shards.items()})
    worker._speaking.stopping.set()
    (only,) = worker.all
    assert only.url == A
    only.failing_since = time.monotonic()
    worker._failed(only, SILENT)
    await asyncio.sleep(0)
    assert [one.url for one in worker.all] == [""]
    await worker.stop()


async def test_the_only_owner_that_is_none_any_more_is_left_at_once() -> None:
    """It hung, and its successor is about to grant: what runs must be known to that one first."""
    server, worker = Server((1, A)), worker_at(B)
    told = server.list.news(0, is_passed_on=True)
    assert told is not None
    worker._serve({url: list(shards) for url, shards in told.shards.items()})
    worker._speaking.stopping.set()
    (only,) = worker.all
    only.failing_since = time.monotonic()
    worker._failed(only, SILENT)
    await asyncio.sleep(0)
    assert worker.all == [only], "it may answer again in a moment"
    worker._failed(only, Unavailable(code="NOT_OWNER"))
    await asyncio.sleep(0)
    assert [one.url for one in worker.all] == [""]
    await worker.stop()


async def test_a_worker_drains_although_an_owner_goes_while_it_is_told_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = asyncio.Event()

    async def talk(one: Conversation) -> None:
        await gone.wait()

    monkeypatch.setattr(Conversation, "talk", talk)
    server, worker = Server((1, A), (1, B)), worker_at(B)
    talking = asyncio.create_task(worker.talk())
    await asyncio.sleep(0)
    hear(worker, server)
    await asyncio.sleep(0)
    worker._speaking.stopping.set()
    await asyncio.sleep(0.01)
    server.know((2, B), (1, B))
    assert hear(worker, server) == [B]
    await asyncio.sleep(0)
    gone.set()
    async with asyncio.timeout(1):
        await talking  # and is not cancelled: then nothing would be handed back
    await worker.stop()
