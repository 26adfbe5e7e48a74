"""Two tenants, their workers and their jobs, and everybody who might speak about them.

    alice's job that a worker of hers (or a shared one) runs; one that it finished; one that waits
    bob's job, which his own worker runs

Every caller speaks about each of them, with the token of its lease and with one that is made up.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import httpx2
from tests.api.house import House
from tests.api.jobs.test_jobs import submit
from tests.api.worker import HandWorker
from tests.api.workers.test_exchange import UNKNOWN

from fairway.services.platform import Platform

MADE_UP = "1" * 32
POOL = "medium"  # whose leases are on disk before their workers hear of them

#: Who speaks. The first two hold alice's lease.
CALLERS = {
    "shared": "the holder, with a key for all tenants",
    "own": "the holder, with a key of alice's workers",
    "beside": "the same key of alice's workers, in a session of its own",
    "other": "a key of bob's workers, in a session of its own",
    "revoked": "a key of alice's workers that was revoked",
    "hijack": "another key of alice's workers, in the holder's session",
}

#: What is spoken about; with ! the token is made up. What changes something comes last.
JOBS = ("unknown!", "queued!", "ended!", "held!", "bob's!", "ended", "bob's", "held")


class Keys(NamedTuple):
    """What the world is made of, for all tests of a module."""

    alice: str  # the tenants' names
    bob: str
    alices: str  # their keys
    bobs: str
    shared: str  # workers' keys
    own: str
    another: str  # of alice's workers, too
    other: str
    revoked: str


def make_keys(house: House) -> Keys:
    (alice, alices), (bob, bobs) = house.new_tenant(), house.new_tenant()
    of_alice = {"scope": "worker", "tenant": alice}
    revoked = house.new_key(of_alice)
    with httpx2.Client(base_url=house.url, headers=bearer(house.operator_key)) as operator:
        assert operator.delete(f"/v1/keys/{revoked.split('_')[2]}").status_code == 204
    return Keys(
        alice, bob, alices, bobs, house.new_key({"scope": "worker"}), house.new_key(of_alice),
        house.new_key(of_alice), house.new_key({"scope": "worker", "tenant": bob}), revoked,
    )  # fmt: skip


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


class World:
    def __init__(self, house: House, keys: Keys, who: str) -> None:
        self.house, self.keys, self.who = house, keys, who
        self.caller: HandWorker
        self.holder: HandWorker
        self.leases: dict[str, dict[str, Any]] = {}  # by what is spoken about, without a !

    async def people(self, stack: AsyncExitStack) -> None:
        async def person(key: str) -> httpx2.AsyncClient:
            return await stack.enter_async_context(self.house.caller(key))

        keys, who = self.keys, self.who
        alice, bob = await person(keys.alices), await person(keys.bobs)
        self.holder = HandWorker(await person(keys.shared if who == "shared" else keys.own))
        self.bobs = HandWorker(await person(keys.other))
        stack.push_async_callback(self.holder.leave)
        stack.push_async_callback(self.bobs.leave)
        await self.jobs(alice, bob)
        if who in ("shared", "own"):
            self.caller = self.holder
            return
        key = {"beside": keys.own, "other": keys.other, "revoked": keys.revoked}
        self.caller = HandWorker(await person(key.get(who, keys.another)))
        if who == "hijack":
            self.caller.session = self.holder.session
        elif who != "revoked":
            await self.caller.hello(pool=POOL)
            stack.push_async_callback(self.caller.leave)

    async def jobs(self, alice: httpx2.AsyncClient, bob: httpx2.AsyncClient) -> None:
        holder, bobs = self.holder, self.bobs
        await holder.hello(2, POOL)
        await submit(alice, holder.type, pool=POOL)
        self.leases["ended"] = await holder.lease()
        await holder.tell(holder.report(self.leases["ended"], result="ended"))
        await submit(alice, holder.type, pool=POOL, payload={"of": "alice"})
        self.leases["held"] = await holder.lease()
        await bobs.hello(1, POOL)
        await submit(bob, bobs.type, pool=POOL, payload={"of": "bob"})
        self.leases["bob's"] = await bobs.lease()
        location = await submit(alice, f"nobody.{secrets.token_hex(4)}", pool=POOL)
        waits = {"job": location.rpartition("/")[2], "tenant": self.keys.alice, "epoch": 1}
        self.leases["queued"] = waits
        self.leases["unknown"] = waits | {"job": UNKNOWN}

    def said_of(self, what: str) -> dict[str, Any]:
        """What the caller says of a lease: job, tenant, epoch and a token."""
        lease = self.leases[what.rstrip("!")]
        token = MADE_UP if what.endswith("!") else lease["token"]
        return {name: lease[name] for name in ("job", "tenant", "epoch")} | {"token": token}

    def seen(self) -> dict[str, Any]:
        """Everything about the jobs that a stranger must not change, as the server knows it."""

        async def look(platform: Platform) -> dict[str, Any]:
            async with platform.database.background() as connection:
                return {
                    what: await _facts(platform, connection, lease["job"])
                    for what, lease in self.leases.items()
                }

        found: dict[str, Any] = self.house.inside(look)
        return found


async def _facts(platform: Platform, connection: Any, job: str) -> Any:
    row = await connection.fetchrow(
        "SELECT state, epoch, attempts, deliveries, result, token::text, session::text FROM jobs"
        " WHERE id = $1", job,
    )  # fmt: skip
    lease, policies = (
        platform.dispatcher.leases.get(job),
        platform.dispatcher.failure_policy.policies,
    )
    held = lease and (
        lease.session.key, lease.token, lease.progress, lease.reported, lease.cancelling,
        policies.of(lease.job.tenant, lease.job.type),
        platform.registry.pool_for(platform.directory.type_names[lease.job.type], None),
    )  # fmt: skip
    return row and tuple(row), held


@asynccontextmanager
async def world_of(house: House, keys: Keys, who: str) -> AsyncIterator[World]:
    world = World(house, keys, who)
    async with AsyncExitStack() as stack:
        await world.people(stack)
        yield world
