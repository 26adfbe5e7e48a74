"""Between a worker and its server, requests and replies are lost; between a client and it, too."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from tests.acceptance.checker import check_legality
from tests.acceptance.house import House
from tests.acceptance.processes import until
from tests.acceptance.proxy import Proxy


async def test_lost_replies_of_the_exchange(house: House, figures: dict[str, str]) -> None:
    """The request was heard, the reply was not: outcomes are recorded once, leases are not lost."""
    server = house.start_server()
    await server.ready()
    proxy = Proxy(server.url, seed=7)
    await proxy.open()
    try:
        worker = house.start_worker([proxy.url])
        await worker.says("worker ready")
        async with house.load(rate=60) as load:
            proxy.drop_reply, proxy.drop_request = 0.3, 0.1
            while proxy.fates["reply lost"] < 15 or len(load.accepted) < 200:
                await load.has_accepted(10)
        proxy.drop_reply = proxy.drop_request = 0.0
        verdict = await house.check(load.accepted)
    finally:
        proxy.close()
    assert verdict.lost_leases == 0, "the worker lived: no lease had to be lost"
    figures["lost replies of the exchange"] = (
        f"{verdict.jobs} jobs, {proxy.fates['reply lost']} replies and"
        f" {proxy.fates['request lost']} requests lost, {verdict.ran_twice} jobs ran twice"
    )


async def test_keys_over_two_servers(house: House) -> None:
    await house.open(servers=2)
    job = await one_key_in_a_hundred_parallel_posts_makes_one_job(house)
    jobs = await keys_in_opposite_orders_do_not_lock_each_other_out(house)
    await house.check([job, *jobs])
    assert len(house.ledger.begun(job)) == 1


async def one_key_in_a_hundred_parallel_posts_makes_one_job(house: House) -> str:
    body = {"type": "nap", "payload": {}}
    key = {"idempotency-key": "once"}
    replies = await asyncio.gather(
        *(house.call("POST", "/v1/jobs", url, json=body, headers=key) for url in house.urls * 50)
    )
    ((status, job),) = {(reply.status_code, reply.json()["id"]) for reply in replies}
    assert (status, len(replies)) == (202, 100)
    other = {"type": "nap", "payload": {"seconds": 0.1}}
    refused = await house.call("POST", "/v1/jobs", json=other, headers=key)
    assert (refused.status_code, refused.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    return str(job)


async def keys_in_opposite_orders_do_not_lock_each_other_out(house: House) -> list[str]:
    """The same posts through two servers at once, forwards and backwards: one job a key."""
    first, second = house.urls
    accepted: dict[str, set[str]] = defaultdict(set)

    async def post(url: str, key: str) -> None:
        body = {"type": "nap", "payload": {}}
        reply = await house.call(
            "POST", "/v1/jobs", url, json=body, headers={"idempotency-key": key}
        )
        assert reply.status_code == 202, reply.text
        accepted[key].add(reply.json()["id"])

    for turn in range(4):
        keys = [f"{turn}-{number}" for number in range(40)]
        forwards = (post(first, key) for key in keys)
        backwards = (post(second, key) for key in reversed(keys))
        await asyncio.gather(*forwards, *backwards)
    jobs = [job for found in accepted.values() for job in found]
    assert len(jobs) == len(accepted) == 160
    return jobs


async def test_a_cancellation_that_was_lost_is_said_again(house: House) -> None:
    """The reply that asks the worker to stop a job does not arrive; the next one asks again."""
    server = house.start_server()
    await server.ready()
    proxy = Proxy(server.url, seed=11)
    await proxy.open()
    try:
        worker = house.start_worker([proxy.url])
        await worker.says("worker ready")
        job = await house.post("nap", "short", seconds=60)
        await house.ledger.begins(job)
        proxy.drop_reply = 1.0
        assert (await house.call("DELETE", f"/v1/jobs/{job}")).status_code == 202
        await until(lambda: proxy.fates["reply lost"] >= 2, 5, "lost replies")
        proxy.drop_reply = 0.0
        view = await house.finished(job, within_seconds=5)
    finally:
        proxy.close()
    assert (view["state"], view["attempts"]) == ("cancelled", 0)


async def test_jobs_cancelled_as_they_start_all_end(house: House) -> None:
    """The lease and the wish to stop may reach the runner in one breath."""
    await house.open()
    kinds = [("nap", "short"), ("nap", "medium"), ("work", "medium")]
    jobs = [await house.post(*kinds[n % 3], seconds=0.5) for n in range(30)]
    for job in jobs:
        reply = await house.call("DELETE", f"/v1/jobs/{job}")
        assert reply.status_code in (200, 202, 409), reply.text
    await house.book.drained(10)
    check_legality(await house.book.changes())
