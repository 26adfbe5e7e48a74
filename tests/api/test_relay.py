"""Two real servers, one of which owns nothing: whose calls it passes on when many are held."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from tests.api.house import NO_TLS, House, open_house, problem
from tests.api.worker import HandWorker
from tests.services.platform_room import freeze, owns_all, platform_on, until

from fairway.api import relay
from fairway.api.peers import Peers
from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import PoolId, ShardId, TenantId, Term, TypeId, make_job_id
from fairway.services.sessions.session_table import TENANT_SESSIONS_MAX
from fairway.store import leadership

PATIENCE_SECONDS = 30.0  # for a busy machine
FEW_CALLS, FEW_OF_TENANT = 6, 3


@pytest.fixture(scope="module")
def usual(house: House) -> Iterator[House]:
    with open_house(house.dsn) as second:
        yield second


@pytest.fixture(scope="module")
def narrow(house: House) -> Iterator[House]:
    """It passes on a handful of tenants' calls at a time, so that a handful of tenants is many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relay, "CALLS_MAX", FEW_CALLS)
        patch.setattr(relay, "TENANT_CALLS_MAX", FEW_OF_TENANT)
        with open_house(house.dsn) as second:
            yield second


class Crowd:
    """Workers of one tenant at the second server, each with a call that the owner holds open."""

    def __init__(self, second: House, owner: House) -> None:
        name, _ = owner.new_tenant()
        self.key = owner.new_key({"scope": "worker", "tenant": name})
        self._owner = owner
        headers = {"authorization": f"Bearer {self.key}"}
        self.client = httpx2.AsyncClient(
            base_url=second.url, headers=headers, timeout=60, trust_env=False, verify=NO_TLS,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        )  # fmt: skip
        self.sessions: list[str] = []
        self.calls: list[asyncio.Task[httpx2.Response]] = []

    async def hold(self, count: int) -> None:
        """Once this is over, so many are held."""
        for _ in range(count):
            self.sessions.append(secrets.token_hex(16))
            self.calls.append(asyncio.create_task(self.ask(self.sessions[-1], wait_ms=60_000)))
        held = self._owner.platform.dispatcher.sessions
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not all(one in held and held[one].poll is not None for one in self.sessions):
                early = [call.result().text for call in self.calls if call.done()]
                assert not early, early[0]
                await asyncio.sleep(0.02)

    def is_held(self) -> bool:
        return not any(call.done() for call in self.calls)

    async def ask(self, session: str = "", wait_ms: int = 0) -> httpx2.Response:
        session = session or secrets.token_hex(16)
        hello = {"types": [{"name": "crowd"}], "slots": {"short": 1}}
        body = {"session": session, "hello": hello, "running": [], "wait_ms": wait_ms}
        return await self.client.post(f"/v1/workers/w-{session}/exchange", json=body)

    async def end(self, *sessions: str) -> None:
        """They say goodbye at the owner itself, which ends their held calls."""
        async with self._owner.caller(self.key) as client:
            for session in sessions:
                body = {"session": session, "goodbye": True}
                await client.post(f"/v1/workers/w-{session}/exchange", json=body)

    async def leave(self) -> None:
        await self.end(*self.sessions)
        await asyncio.gather(*self.calls, return_exceptions=True)
        await self.client.aclose()


@asynccontextmanager
async def crowds(second: House, owner: House, *counts: int) -> AsyncIterator[list[Crowd]]:
    found = [Crowd(second, owner) for _ in counts]
    try:
        for crowd, count in zip(found, counts, strict=True):
            await crowd.hold(count)
        yield found
    finally:
        for crowd in found:
            await crowd.leave()


@asynccontextmanager
async def shared_worker(second: House) -> AsyncIterator[HandWorker]:
    async with second.caller(second.new_key({"scope": "worker"})) as client:
        worker = HandWorker(client)
        yield worker
        await worker.leave()


async def test_all_sessions_that_a_tenant_may_have_leave_room_for_everybody(
    usual: House, house: House
) -> None:
    async with crowds(usual, house, TENANT_SESSIONS_MAX, 0) as (greedy, modest):
        assert relay.TENANT_CALLS_MAX > TENANT_SESSIONS_MAX, "its other calls pass, too"
        problem(await greedy.ask(), 429, "TOO_MANY_SESSIONS")
        assert (await modest.ask()).status_code == 200
        async with shared_worker(usual) as worker:
            await worker.hello()
        assert greedy.is_held(), "nobody passed in the place of one that had ended"


async def test_when_tenants_have_all_places_shared_workers_still_pass(
    narrow: House, house: House
) -> None:
    async with (
        crowds(narrow, house, FEW_OF_TENANT, FEW_OF_TENANT, 0) as (first, second, late),
        shared_worker(narrow) as worker,
        narrow.caller(house.new_tenant()[1]) as tenant,
    ):
        problem(await late.ask(), 503, "OVERLOADED")
        await worker.hello()
        call = asyncio.create_task(worker.say(wait_ms=20_000))
        assert (await tenant.post("/v1/jobs", json={"type": worker.type})).status_code == 202
        assert len((await asyncio.wait_for(call, PATIENCE_SECONDS))["leases"]) == 1
        assert first.is_held(), "nobody passed in the place of one that had ended"
        assert second.is_held()


async def test_a_place_is_free_again_when_its_call_is_over(narrow: House, house: House) -> None:
    async with crowds(narrow, house, FEW_OF_TENANT) as (crowd,):
        problem(await crowd.ask(), 503, "OVERLOADED")
        await crowd.end(crowd.sessions[0])
        assert (await crowd.calls[0]).status_code == 200
        assert (await crowd.ask()).status_code == 200


# -- hints ---------------------------------------------------------------------------------------


class Owner:
    """An owner of shards as far as hints know: it answers, or takes them in and never does."""

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers
        self._listener: asyncio.Server | None = None
        self.heard = asyncio.Semaphore(0)

    async def __aenter__(self) -> str:
        self._listener = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *failure: object) -> None:
        assert self._listener is not None
        self._listener.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 16):
            self.heard.release()
            if self._answers:
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()


async def test_an_owner_that_hangs_holds_up_no_hint_to_another(database_url: str) -> None:
    hung, other = Owner(answers=False), Owner(answers=True)
    async with platform_on(database_url) as platform, hung as hung_url, other as other_url:
        await until(lambda: owns_all(platform))
        await freeze(platform)  # who owns what is not looked up any more
        platform.ownership.owners = {
            ShardId(1): leadership.Owner(ShardId(1), Term(1), "hung", hung_url),
            ShardId(2): leadership.Owner(ShardId(2), Term(1), "other", other_url),
        }
        peers = Peers()
        passing_on = relay.Relay(platform, peers)
        firsts: dict[StreamKey, str] = {
            StreamKey(TenantId(1), PoolId(1), TypeId(1), 5): make_job_id(ShardId(1), 0, 1, 0)
        }
        async with asyncio.timeout(relay.HINT_SECONDS_MAX / 2):
            platform.hints.add(ShardId(1), firsts)
            await hung.heard.acquire()
            for _ in range(3):
                platform.hints.add(ShardId(2), firsts)
                await other.heard.acquire()
        passing_on.close()
        peers.close()
