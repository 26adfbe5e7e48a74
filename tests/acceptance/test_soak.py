"""Everything at once, for longer: started by `-m slow`."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import asyncpg
import pytest
from tests.acceptance.house import House
from tests.acceptance.processes import Program, send

pytestmark = pytest.mark.usefixtures("spare_runners")

SECONDS = 90.0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
async def test_every_fault_in_turn(house: House, seed: int, figures: dict[str, str]) -> None:
    """A fault every second or two, by a seeded plan, on two servers and three workers."""
    chaos = Chaos(house, await house.open(servers=2, workers=3), random.Random(seed))
    ends_at = time.monotonic() + SECONDS
    async with house.load(rate=120, clients=12) as load:
        while time.monotonic() < ends_at:
            await chaos.strike()
    verdict = await house.check(load.accepted, drain_seconds=60)
    figures[f"soak, seed {seed}"] = (
        f"{verdict.jobs} jobs, {chaos.faults.total()} faults, {verdict.lost_leases} leases lost,"
        f" {verdict.ran_twice} jobs ran twice; {dict(chaos.faults)}"
    )


class Chaos:
    def __init__(self, house: House, workers: list[Program], dice: random.Random) -> None:
        self._house = house
        self._workers = workers
        self._dice = dice
        self.faults: Counter[str] = Counter()

    async def strike(self) -> None:
        faults: list[Callable[[], Awaitable[None]]] = [
            self._kill_worker, self._kill_runner, self._deploy, self._freeze_worker,
            self._kill_server, self._freeze_server, self._mislead_the_planner,
        ]  # fmt: skip
        fault = self._dice.choice(faults)
        self.faults[fault.__name__.strip("_")] += 1
        await fault()
        await asyncio.sleep(0.5 + self._dice.random())

    async def _mislead_the_planner(self) -> None:
        """Statistics of this moment, which may be one in which nothing is queued or all is."""
        connection = await asyncpg.connect(self._house.dsn)
        try:
            await connection.execute(self._dice.choice(("ANALYZE jobs", "VACUUM ANALYZE jobs")))
        finally:
            await connection.close()

    async def _kill_worker(self) -> None:
        place = self._dice.randrange(len(self._workers))
        await self._workers[place].kill()
        self._workers[place] = self._house.start_worker()

    async def _kill_runner(self) -> None:
        for pid in self._dice.choice(self._workers).runners():
            send(pid, signal.SIGKILL)

    async def _deploy(self) -> None:
        place = self._dice.randrange(len(self._workers))
        old, self._workers[place] = self._workers[place], self._house.start_worker()
        if "worker ready" in old.said:
            old.send(signal.SIGTERM)
            assert await old.ended(30) == 0, old.said
        else:
            await old.kill()

    async def _freeze_worker(self) -> None:
        worker = self._dice.choice(self._workers)
        worker.send_tree(signal.SIGSTOP)
        await asyncio.sleep(5 * self._dice.random())
        worker.send_tree(signal.SIGCONT)

    async def _kill_server(self) -> None:
        server = self._dice.choice(self._house.servers)
        await server.kill()
        await self._house.restart(server).ready()

    async def _freeze_server(self) -> None:
        server = self._dice.choice(self._house.servers)
        server.send(signal.SIGSTOP)
        await asyncio.sleep(4 * self._dice.random())
        server.send(signal.SIGCONT)
