"""What jobs say is with them: in every run mode, by attempt, bounded, live, and in nobody's way."""

from __future__ import annotations

import asyncio
import signal

from tests.acceptance.house import House
from tests.acceptance.processes import ROOT
from tests.worker.platform import fact

from fairway import App, Handle, LogLine
from fairway.core.run.run_log import LINES_MAX, RUN_BYTES_MAX


async def test_what_jobs_say(house: House) -> None:
    """One server and one worker for all of it: what each part looks at is of jobs of its own."""
    await house.open(app="tests.acceptance.talking_jobs:app", more=["--log-format", "text"])
    talking = App("asking", url=house.urls[0], api_key=house.api_key)
    await in_every_run_mode_and_by_attempt(house, talking)
    await a_flood_is_bounded_and_its_end_is_kept(house, talking)
    await live_by_the_command_line_and_the_sdk(house, talking)
    await hooks_are_called_around_runs_and_at_their_ends(house)
    await talking.aclose()


async def lines_of(talking: App, job: str) -> list[LogLine]:
    """All but what a hook said, which may come or not: the run is over."""
    found = [line async for line in Handle.from_id(talking, job).alogs()]
    return [line for line in found if not line.text.startswith("a hook failed")]


async def in_every_run_mode_and_by_attempt(house: House, talking: App) -> None:
    said = {"talk.inline": "of a plain function", "talk.thread": "in a thread"}
    jobs = {kind: await house.post(kind, "short") for kind in ("talk.loop", *said)}
    said["talk.process"] = "in a process"
    jobs["talk.process"] = await house.post("talk.process", "long")
    for kind, text in said.items():
        await house.finished(jobs[kind])
        assert [(one.level, one.text) for one in await lines_of(talking, jobs[kind])] == [
            ("info", text)
        ]
    await house.finished(jobs["talk.loop"])
    found = await lines_of(talking, jobs["talk.loop"])
    assert [(one.attempt, one.level, one.text) for one in found] == [
        (1, "info", "attempt 1"), (1, "warning", "below the handler"),
        (2, "info", "attempt 2"), (2, "warning", "below the handler"),
    ]  # fmt: skip
    assert [one.at for one in found] == sorted(one.at for one in found)
    log = house.programs[-1].said
    job = jobs["talk.loop"]
    assert f"attempt 1                      job={job} type=talk.loop tenant=acme" in log
    assert log.count("ValueError: not yet") == 2, "once in its line, once in its traceback"
    assert '    raise ValueError("not yet")' in log


async def hooks_are_called_around_runs_and_at_their_ends(house: House) -> None:
    """The last: it ends the worker."""
    noted = house.ledger.path.with_suffix(".jsonl.hooks")
    before = len(noted.read_text().splitlines())
    for kind, state in (("talk.inline", "succeeded"), ("talk.doomed", "dead")):
        assert (await house.finished(await house.post(kind, "short")))["state"] == state
    view = await house.finished(await house.post("talk.loop", "short"))
    assert (view["state"], view["attempts"]) == ("succeeded", 2), "a hook that fails is no harm"
    await fact(lambda: "died" in noted.read_text())
    house.programs[-1].send(signal.SIGTERM)
    await house.programs[-1].ended(20)
    lines = noted.read_text().splitlines()
    assert "start" in lines[:before]
    lines = lines[before:]
    for line in (
        "in talk.inline", "out talk.inline", "in talk.doomed", "out talk.doomed", "stop",
        "failed talk.doomed 1 KeyError('for good')", "died talk.doomed 1 app_error 'for good'",
        "failed talk.loop 1 ValueError('not yet')",
    ):  # fmt: skip
        assert line in lines, (line, lines)
    assert lines.count("in talk.loop") == 2
    assert not [line for line in lines if line.startswith("died talk.loop")]
    assert "a hook that fails itself" in house.programs[-1].said


async def a_flood_is_bounded_and_its_end_is_kept(house: House, talking: App) -> None:
    job = await house.post("talk.flood", "short")
    view = await house.finished(job)
    assert view["state"] == "succeeded"
    found = await lines_of(talking, job)
    assert 100 < len(found) <= LINES_MAX
    assert sum(len(one.text) for one in found) <= RUN_BYTES_MAX
    assert [one.level for one in found[-2:]] == ["warning", "error"]
    assert found[-1].text == "and then it was over"
    assert sum(one.dropped for one in found) + len(found) - 1 == 5001
    await house.programs[-1].says("lines of jobs dropped")
    log = house.programs[-1].said
    assert log.count("talk.flood") < 200, "its flood is not the worker's"


async def live_by_the_command_line_and_the_sdk(house: House, talking: App) -> None:
    dying = await house.post("talk.die", "long")
    job = await house.post("talk.slowly", "short")
    program = await asyncio.create_subprocess_exec(
        ROOT / ".venv/bin/fairway", "jobs", "logs", "-f", job, stdout=asyncio.subprocess.PIPE,
        env={"FAIRWAY_URL": house.urls[0], "FAIRWAY_API_KEY": house.api_key},
    )  # fmt: skip
    assert program.stdout is not None
    heard = []
    while text := await program.stdout.readline():
        heard.append(text.decode().split("#1 ")[1].strip())
    assert await program.wait() == 0
    assert heard == ["step 0", "step 1", "step 2"]
    async for line in Handle.from_id(talking, dying).alogs(follow=True):
        assert line.text == "last words", "said before it was killed"
        break
