"""Two real servers that own a part of the shards each: people hear the same from both, at once."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.api.house import House, open_house
from tests.api.worker import HandWorker
from tests.services.platform_room import until

from fairway.api.worker_views import merged
from fairway.services.workers.worker_list import life_of
from fairway.wire.operators.operator import WorkerView


async def test_tenants_keys_and_workers_are_the_same_at_both(database_url: str) -> None:
    terms = {"shard_count": 2, "term_seconds": 0.6}
    with open_house(database_url, **terms) as first, open_house(database_url, **terms) as second:
        await until(lambda: opened(first) == opened(second) == 1)
        name, key = first.new_tenant()
        other_key = second.new_key({"scope": "tenant", "tenant": name})  # it was made elsewhere
        for house, opens in ((second, key), (first, other_key)):
            async with house.caller(opens) as tenant:
                assert (await tenant.post("/v1/jobs", json={"type": "any"})).status_code == 202
        worker_key = first.new_key({"scope": "worker"})
        async with first.caller(worker_key) as one, second.caller(worker_key) as two:
            here, there = HandWorker(one), HandWorker(two)
            await asyncio.gather(here.hello(), there.hello(slots=3))
            lists = [await listed(house) for house in (first, second)]
            assert [lives(found) for found in lists] == [
                {life_of(here.session), life_of(there.session)}
            ] * 2
            async with second.caller(second.operator_key) as operator:
                reply = await operator.post(f"/v1/workers/{life_of(here.session)}/drain")
                assert (reply.status_code, lives(reply.json())) == (202, {life_of(here.session)})
                assert (await operator.post("/v1/workers/nobody/drain")).status_code == 404
            assert (await here.say())["drain"] is True
            await here.leave()
            await there.leave()


def opened(house: House) -> int:
    return len(house.platform.dispatcher.shards.open)


async def listed(house: House) -> Any:
    async with house.caller(house.operator_key) as operator:
        reply = await operator.get("/v1/workers")
    assert reply.status_code == 200, reply.text
    return reply.json()


def lives(found: Any) -> set[str]:
    return {one["life"] for one in found["workers"]}


def test_a_worker_that_several_servers_hear_is_one() -> None:
    def view(name: str, running: int, silent_seconds: float, *, draining: bool) -> WorkerView:
        return WorkerView(
            name=name, life="x", tenant=None, build="", slots={"short": 4},
            running={"short": running}, draining=draining, silent_seconds=silent_seconds,
            silent=silent_seconds > 1, limits={},
        )  # fmt: skip

    views = [view("b", 1, 5, draining=True), view("a", 1, 0, draining=False)]
    assert merged([*views, view("b", 2, 0.1, draining=False)]) == [
        view("a", 1, 0, draining=False),
        view("b", 2, 0.1, draining=True),
    ]
