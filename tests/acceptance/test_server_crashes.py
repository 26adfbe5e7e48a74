"""Servers die or freeze; whatever was accepted is there, and only the owner writes."""

from __future__ import annotations

import asyncio
import signal
import time

from tests.acceptance.checker import Change
from tests.acceptance.house import House, Server
from tests.acceptance.processes import Program


async def test_kill_9_of_the_only_server_under_load(house: House, figures: dict[str, str]) -> None:
    await house.open(workers=2)
    kills = 3
    outages = []
    async with house.load() as load:
        for _ in range(kills):
            await load.has_accepted(30)
            await house.servers[0].kill()
            outages.append(await house.restart(house.servers[0]).ready())
    verdict = await house.check(load.accepted)
    assert load.answers.total() > load.answers["202"], "no client noticed: the test proved nothing"
    figures["kill -9 of the only server"] = (
        f"{verdict.jobs} jobs, {kills} kills, ready again after {max(outages):.1f} s at most,"
        f" {verdict.lost_leases} leases lost, {verdict.ran_twice} jobs ran twice"
    )


async def test_another_server_takes_over_from_a_killed_owner(
    house: House, figures: dict[str, str]
) -> None:
    await house.open(servers=2, workers=2)
    kills, seconds = 2, []
    async with house.load() as load:
        for _ in range(kills):
            await load.has_accepted(30)
            owner, other, term = await _owner_and_other(house)
            killed_at = time.time()
            await owner.kill()
            first = await _first_end(house, since=killed_at, term_above=term)
            assert first.writer == other.name
            seconds.append(first.at - killed_at)
            await house.restart(owner).ready()
    verdict = await house.check(load.accepted)
    assert max(seconds) < 5, seconds
    figures["take-over from a killed owner"] = (
        f"first job finished after {', '.join(f'{s:.1f}' for s in seconds)} s;"
        f" {verdict.jobs} jobs, {verdict.lost_leases} leases lost, {verdict.ran_twice} ran twice"
    )


async def test_an_owner_that_was_frozen_past_its_term_writes_nothing(
    house: House, figures: dict[str, str]
) -> None:
    await house.open(servers=2, workers=2)
    async with house.load() as load:
        await load.has_accepted(40)
        owner, other, term = await _owner_and_other(house)
        frozen_at = time.time()
        owner.send(signal.SIGSTOP)
        first = await _first_end(house, since=frozen_at, term_above=term, within_seconds=15)
        await asyncio.sleep(max(0.0, 3 - (time.time() - frozen_at)))
        owner.send(signal.SIGCONT)
        await load.has_accepted(60)  # through both doors: the old owner is a standby now
        body = {"type": "nap", "pool": "short", "payload": {}}
        passed = await house.call("POST", "/v1/jobs", url=owner.url, json=body)
        assert passed.status_code == 202, "the standby accepts nothing"
        load.accepted.append(passed.json()["id"])
    verdict = await house.check(load.accepted)
    changes = await house.book.changes()
    written = [c for c in changes if c.writer == owner.name and c.before is not None]
    assert all(change.term <= term for change in written), "the old owner wrote in another's term"
    assert max(change.at for change in written) < first.at
    await _takes_over(house, owner, other)
    figures["take-over from a frozen owner"] = (
        f"first job finished after {first.at - frozen_at:.1f} s; {verdict.jobs} jobs,"
        f" {verdict.lost_leases} leases lost, {verdict.ran_twice} ran twice"
    )


async def _takes_over(house: House, owner: Server, other: Server) -> None:
    """The server that was frozen works as any standby does: it follows when the owner dies."""
    await other.kill()
    house.servers.remove(other)
    job = await house.post("nap", "short")
    assert (await house.finished(job, within_seconds=6))["state"] == "succeeded"
    assert (await house.book.owner())[1] == owner.url


async def _owner_and_other(house: House) -> tuple[Server, Server, int]:
    term, url = await house.book.owner()
    (owner,) = [server for server in house.servers if server.url == url]
    (other,) = [server for server in house.servers if server.url != url]
    return owner, other, term


async def _first_end(
    house: House, *, since: float, term_above: int, within_seconds: float = 10.0
) -> Change:
    """The first job that ended after a moment, under a later term."""
    began = time.monotonic()
    while time.monotonic() - began < within_seconds:
        for change in await house.book.changes():
            if change.at > since and change.term > term_above and change.after == 3:
                return change
        await asyncio.sleep(0.1)
    raise AssertionError(f"no job ended within {within_seconds} s: {_tails(house.programs)}")


def _tails(programs: list[Program]) -> str:
    return "\n".join(f"{program.log.name}:\n{program.said[-800:]}" for program in programs)
