"""Several server processes behind one port: one that dies or is restarted turns nobody away."""

from __future__ import annotations

import json
import re
import signal
import time

from tests.acceptance.house import House, Server
from tests.acceptance.processes import is_alive, send, tree, until
from tests.acceptance.producers import Producers

TERM_SECONDS = 6.0  # long: nobody waits for its end
UP = re.compile(r'^fairway_server_process_up\{process="(\d)"\} 1\.0$', re.MULTILINE)
READY = re.compile(
    r'"server": "[0-9a-f]+-(\d)\.(\d+)", .*"event": "server ready"|'
    r'"event": "server ready", .*"server": "[0-9a-f]+-(\d)\.(\d+)"'
)


def ready_processes(server: Server) -> list[int]:
    """Of all lives so far, in the order in which they were ready."""
    return [int(found[1] or found[3]) for found in READY.findall(server.said)]


async def jobs_go_on_after_a_kill(house: House, server: Server) -> list[str]:
    """Whoever was connected to it hears of it; all others notice nothing.

    It owned all shards, and the other stood by: that knows at once that it is dead, and goes on.
    """
    first, second = ready_processes(server)
    async with house.load(rate=60) as load:
        await load.has_accepted(20)
        killed = time.monotonic()
        send(first, signal.SIGKILL)
        await server.says("shards taken at once: their process died")
        assert time.monotonic() - killed < TERM_SECONDS / 2, "its terms were not waited for"
        await until(lambda: len(ready_processes(server)) == 3, 60, "another in its place")
        await load.has_accepted(20)
    assert is_alive(second)
    assert load.answers.total() - load.answers["202"] <= 10, load.answers
    return load.accepted


async def nobody_is_turned_away_by_a_rolling_restart(
    house: House, server: Server, figures: dict[str, str]
) -> list[str]:
    before, began = await house.metric("fairway_jobs_accepted_total"), time.monotonic()
    load = house.load(rate=100, clients=12, first=10_000)
    load.call_seconds_max = 30  # who gives up sooner does not see whether it would be answered
    producers = Producers(house, 6)
    async with load, producers:
        await load.has_accepted(20)
        await producers.has_accepted(60)
        server.send(signal.SIGHUP)
        await server.says('"servers restarted"')
        await load.has_accepted(20)
        await producers.has_accepted(60)
    assert set(load.answers) == {"202"}, load.answers
    await producers.check()
    assert not producers.others
    handed = await house.metric("fairway_connections_handed_total")
    assert handed >= 3, "producers went to who owns their jobs"
    old, new = ready_processes(server)[1:3], ready_processes(server)[3:]
    assert [is_alive(pid) for pid in (*old, *new)] == [False, False, True, True]
    counted = await house.metric("fairway_jobs_accepted_total") - before
    accepted = [*load.accepted, *producers.accepted.values()]
    assert counted == len(accepted), "the processes' counts add up, over their lives"
    figures["rolling restart of two server processes"] = (
        f"{time.monotonic() - began:.1f} s, {len(load.accepted)} jobs, none refused,"
        f" longest call {load.longest_seconds:.2f} s;"
        f" {len(producers.accepted)} in pipelines, {handed:.0f} connections handed over"
    )
    return accepted


async def test_two_processes_behind_one_port(house: House, figures: dict[str, str]) -> None:
    more = {"FAIRWAY_SERVER_PROCESSES": "2", "FAIRWAY_TERM_SECONDS": str(TERM_SECONDS)}
    house.settings = house.settings | more
    await house.open()
    server = house.servers[0]
    await server.says('"servers ready"')
    accepted = await jobs_go_on_after_a_kill(house, server)
    metrics = (await house.call("GET", "/metrics")).text
    assert UP.findall(metrics) == ["1", "2"]
    some = (await house.call("GET", "/metrics?name[]=fairway_server_process_up")).text
    assert UP.findall(some) == ["1", "2"]
    assert some.count("# TYPE") == 1
    accepted += await nobody_is_turned_away_by_a_rolling_restart(house, server, figures)
    await house.check(accepted)
    started = tree(server.pid)
    server.send(signal.SIGTERM)
    assert await server.ended(30) == 0, server.said
    assert not [pid for pid in started if is_alive(pid)], "something was left running"
    lines = [json.loads(line) for line in server.said.splitlines()]  # each is whole
    assert {one["server"].split("-")[1][0] for one in lines if "server" in one} == {"1", "2"}
