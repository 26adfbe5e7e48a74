"""The judge on a real platform: every verdict right, pools apart, nothing lost when workers die."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from examples.judge import cgroups
from examples.judge.languages import installed
from examples.judge.pools import declare
from examples.judge.walls import Level
from tests.acceptance.processes import RUNNER, command_of, is_alive, name_of, send, tree
from tests.acceptance.processes import Program as Process
from tests.examples.conftest import Town, answering, town
from tests.examples.hostile_bombs import BOMBS
from tests.examples.programs import CPP, EVERY, PYTHON, C, Program
from tests.examples.test_sandbox import SANDBOX

from fairway.rig.quantile import quantile

pytestmark = pytest.mark.skipif(SANDBOX is None, reason="no sandbox level works on this host")

POOLS = ["python=2", "c=1", "cpp=1", "java=1", "contest=1"]
LEVEL = SANDBOX.level if SANDBOX is not None else ""
CONTAINED = [one for one in EVERY if one.language in installed()]


class Judge:
    def __init__(self, here: Town, http: httpx2.AsyncClient, worker: Process) -> None:
        self.here, self.http, self.worker = here, http, worker

    async def hand_in(self, program: Program, **more: Any) -> str:
        reply = await self.http.post(f"{self.here.at}/submissions", json=program.submission(**more))
        assert reply.status_code == 202, reply.text
        return str(reply.json()["id"])

    async def judged(self, submission: str, within_seconds: float = 120.0) -> dict[str, Any]:
        """Followed by events, to the verdict."""
        url = f"{self.here.at}/submissions/{submission}/events"
        async with asyncio.timeout(within_seconds), self.http.stream("GET", url) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data:"):
                    view: dict[str, Any] = msgspec.json.decode(line[5:])
                    if view["status"] == "judged":
                        return view
                    assert view["status"] in ("queued", "scheduled", "running"), view
        raise AssertionError("the events ended without a verdict")

    async def judged_at_last(self, submission: str) -> dict[str, Any]:
        """Asked again as long as the service is away."""
        async with asyncio.timeout(120):
            while True:
                try:
                    return await self.judged(submission)
                except (httpx2.HTTPError, AssertionError):
                    await asyncio.sleep(0.2)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Where the worker makes its places: a folder that submissions' accounts may pass through."""
    with tempfile.TemporaryDirectory(prefix="judged-", dir="/tmp") as name:
        os.chmod(name, 0o711)
        yield Path(name)


@pytest.fixture
async def judge(
    request: pytest.FixtureRequest, tmp_path: Path, scratch: Path, http: httpx2.AsyncClient
) -> AsyncIterator[Judge]:
    """At the strongest level, or at the one that a test asks for."""
    environment = {
        "JUDGE_STORE": str(tmp_path / "store"),
        "JUDGE_SANDBOX": getattr(request, "param", ""),
        "FAIRWAY_LEASE_SECONDS": "short=2,medium=3,long=3",
    }
    with town(tmp_path, ["--no-worker", "--beside", "examples.judge"], environment) as here:
        await answering(f"{here.at}/languages")
        keys = msgspec.json.decode((tmp_path / "data" / "client.json").read_bytes())
        declare(keys["url"], keys["operator_key"])
        words = ["examples.judge.jobs:app", "--pool", *POOLS, "--grace", "1"]
        worker = here.worker("worker", words, environment | {"TMPDIR": str(scratch)})
        try:
            await worker.says("worker ready", 60)
            yield Judge(here, http, worker)
        finally:
            worker.bury()


async def test_verdicts_come_live_with_the_level_that_held_the_program(judge: Judge) -> None:
    wanted = [one for one in CONTAINED if one.name in ("right", "wrong", "fork bomb", "no C")]
    handed_in = [(one, await judge.hand_in(one)) for one in wanted]
    for program, submission in handed_in:
        view = await judge.judged(submission)
        assert (program.name, view["verdict"]) == (program.name, program.verdict)
        assert view["sandbox"] == LEVEL
    await judge.worker.says(f"programs run in: {LEVEL}")
    assert (await judge.http.get(f"{judge.here.at}/languages")).json()["sandbox"] == LEVEL
    reply = await judge.http.get(f"{judge.here.at}/submissions/{handed_in[0][1]}")
    assert reply.json()["status"] == "judged"
    await _bad_input(judge)
    await _waiting(judge)


@pytest.mark.parametrize("judge", [Level.ROOMS.value], indirect=True)
async def test_a_level_by_its_name_is_in_force(judge: Judge) -> None:
    view = await judge.judged(await judge.hand_in(PYTHON[0]))
    assert (view["verdict"], view["sandbox"]) == ("accepted", Level.ROOMS.value)
    assert (judge.here.folder / "store").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("judge", ["none"], indirect=True)
async def test_without_a_sandbox_nothing_is_judged_and_the_page_says_why(judge: Judge) -> None:
    told = (await judge.http.get(f"{judge.here.at}/languages")).json()
    assert told["sandbox"] is None
    assert "JUDGE_SANDBOX" in told["reason"]
    submission = await judge.hand_in(PYTHON[0])
    await judge.worker.says("SandboxUnavailable")
    view = (await judge.http.get(f"{judge.here.at}/submissions/{submission}")).json()
    assert view["status"] in ("queued", "scheduled", "running")


async def _bad_input(judge: Judge) -> None:
    fine = PYTHON[0].submission()
    changes: list[dict[str, Any]] = [
        {"language": "cobol"}, {"tests": []}, {"source": ""}, {"memory_mb": 1 << 20},
    ]  # fmt: skip
    for change in changes:
        reply = await judge.http.post(f"{judge.here.at}/submissions", json=fine | change)
        assert reply.status_code == 422, change
    assert (await judge.http.get(f"{judge.here.at}/submissions/nobody")).status_code == 404
    assert (await judge.http.get(f"{judge.here.at}/service.py")).status_code == 404
    assert "Judge" in (await judge.http.get(judge.here.at)).text


async def _waiting(judge: Judge) -> None:
    """A long line says where one stands in it."""
    slow = Program("slow", "c", C[0].source, "accepted")
    line = [await judge.hand_in(slow) for _ in range(8)]
    view = (await judge.http.get(f"{judge.here.at}/submissions/{line[-1]}")).json()
    assert view["status"] == "queued"
    assert view["position"] > 1
    assert {(await judge.judged(one))["verdict"] for one in line} == {"accepted"}


@pytest.mark.parametrize(
    "victim",
    [
        "PostgreSQL",
        *(pytest.param(part, marks=pytest.mark.slow) for part in ("runner", "platform")),
    ],
)
async def test_killing_anything_loses_no_submission(judge: Judge, victim: str) -> None:
    programs = [PYTHON[0], PYTHON[1]] * 8
    handed_in = [(one, await judge.hand_in(one)) for one in programs]
    await judge.judged(handed_in[0][1])
    if victim == "runner":
        runners = [pid for pid in tree(judge.worker.pid) if name_of(pid) == RUNNER]
        send(runners[0], signal.SIGKILL)  # in the middle of whatever it judges
    elif victim == "PostgreSQL":
        send(judge.here.postmaster, signal.SIGKILL)
    else:
        await judge.here.restart()
    for program, submission in handed_in:
        assert (await judge.judged_at_last(submission))["verdict"] == program.verdict


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_two_hundred_mixed_submissions_get_their_verdicts(
    judge: Judge, scratch: Path
) -> None:
    dice = random.Random(7)
    programs = CONTAINED + dice.choices(CONTAINED, k=200 - len(CONTAINED))
    dice.shuffle(programs)
    handed_in = [(one, await judge.hand_in(one)) for one in programs]
    wrong = []
    for program, submission in handed_in:
        view = await judge.judged(submission, 900)
        if view["verdict"] != program.verdict:
            wrong.append((program.language, program.name, view))
    assert wrong == []
    assert left(judge, scratch) == []


def left(judge: Judge, scratch: Path) -> list[str]:
    """Whatever submissions left behind: processes, zombies, cages, files."""
    below = tree(judge.worker.pid)
    sandboxes = ("judge-warden", "bwrap", "python3")
    processes = [pid for pid in below if not is_alive(pid) or name_of(pid) in sandboxes]
    cages = [
        path
        for pid in below
        for pattern in (f"{cgroups.NAME}/{pid}-*", f"*/{cgroups.NAME}-{pid}-*")
        for path in cgroups.ROOT.glob(pattern)
    ]
    return [*map(command_of, processes), *map(str, cages), *os.listdir(scratch)]


def many(count: int) -> list[Program]:
    """Mostly plain ones, and every fifth one that would leave something."""
    dice = random.Random(11)
    kinds = {"leftovers", "signals", "descriptors"}
    rude = [
        Program(one.name, one.language, one.source, one.verdicts[0], one.cpu_seconds)
        for one in BOMBS
        if one.kind in kinds and one.verdicts != ("time limit",) and "@" not in one.source
    ]
    names = {"right", "wrong", "silent", "broken", "exit 3", "leaves a child behind"}
    plain = [one for one in PYTHON if one.name in names]
    programs = [dice.choice(plain if n % 5 else rude) for n in range(count)]
    return [one for one in programs if one.language in installed()]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("judge", [LEVEL, Level.ROOMS.value], indirect=True)
async def test_nothing_is_left_after_a_thousand_submissions(judge: Judge, scratch: Path) -> None:
    began = time.monotonic()
    handed_in = [(one, await judge.hand_in(one)) for one in many(1000)]
    views = [(one, await judge.judged(submission, 1500)) for one, submission in handed_in]
    assert [(one, view) for one, view in views if view["verdict"] != one.verdict] == []
    assert left(judge, scratch) == []
    seconds = time.monotonic() - began
    logging.getLogger(__name__).info("%s submissions in %.0f s", len(views), seconds)


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_a_compile_storm_delays_neither_python_nor_a_contest(judge: Judge) -> None:
    """Quiet, then under a storm: the waits of Python and contest submissions, p99 against p99."""
    quiet = await _waits(judge)
    storm = [await judge.hand_in(CPP[0]) for _ in range(60)]
    noisy = await _waits(judge)
    assert (await judge.judged(storm[-1], 600))["verdict"] == "accepted"
    logging.getLogger(__name__).info("p99 quiet %s, in the storm %s", quiet, noisy)
    for name, wait in noisy.items():
        # A tenth of a second on top, for a machine that is not alone.
        assert wait <= 1.3 * quiet[name] + 0.1, (quiet, noisy)


async def _waits(judge: Judge) -> dict[str, float]:
    """p99 from handing in to verdict, one submission at a time, of each kind."""
    waits: dict[str, list[float]] = {"python": [], "contest": []}
    for _ in range(60):
        for name, contest in (("python", False), ("contest", True)):
            began = time.monotonic()
            await judge.judged(await judge.hand_in(PYTHON[0], contest=contest))
            waits[name].append(time.monotonic() - began)
    return {name: quantile(found, 0.99) for name, found in waits.items()}
