"""What stands in a worker's log, and what a job shows of the machine that it ran on."""

from __future__ import annotations

import json

from tests.acceptance.house import House
from tests.acceptance.processes import ROOT

NOISES = (
    "UserWarning: an old way", "of a library", "of the handler", "a thread ends", "not in here",
    "nobody waits for me", "and then it fails",
)  # fmt: skip


async def test_every_line_is_json_whoever_wrote_it(house: House) -> None:
    (worker,) = await house.open(app="tests.acceptance.noisy_jobs:app")
    view = await house.finished(await house.post("noise", "short"))
    assert view["state"] == "dead"
    (server,) = house.servers
    await server.kill()
    await house.restart(server).ready()
    await house.finished(await house.post("calm", "short"), within_seconds=30)
    lines = [json.loads(line) for line in worker.said.splitlines()]
    for noise in NOISES:
        assert any(noise in str(line.values()) for line in lines), noise
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    stack = view["error"]["stack"]
    assert 'File "tests/acceptance/noisy_jobs.py", line ' in stack
    assert str(ROOT) not in json.dumps(view), "where the worker keeps its programs"
    assert "fairway/sdk" not in stack
