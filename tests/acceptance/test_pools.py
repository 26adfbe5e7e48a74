"""A pool that an operator adds while all runs: labels, run mode, and a worker that fits."""

from __future__ import annotations

import asyncio

from tests.acceptance.house import House

BOX = {"slots": 1, "run_mode": "process", "labels": ["box"], "lease_seconds": 5}


async def test_a_pool_of_ones_own(house: House) -> None:
    house.start_server()
    await house.servers[0].ready()
    headers = {"authorization": f"Bearer {house.operator_key}"}
    reply = await house.call("PUT", "/v1/pools/box", json=BOX, headers=headers)
    assert reply.status_code == 200, reply.text
    job = await house.post("nap", "box")
    without = house.start_worker(pools=["box=1"])
    await without.says("worker ready")
    await asyncio.sleep(0.5)
    why = (await house.call("GET", f"/v1/jobs/{job}/explain")).json()
    assert (why["reason"], why["state"]) == ("labels", "queued")
    fitting = house.start_worker(pools=["box=1"], more=["--label", "box"])
    await fitting.says("worker ready")
    shared = min(fitting.runners())  # the job's own process may be there already
    view = await house.finished(job)
    assert (view["state"], view["pool"], view["attempts"]) == ("succeeded", "box", 1)
    assert view["result"]["pid"] != shared, "the pool asks for a process of its own"
