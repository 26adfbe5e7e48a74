"""The stack that a job shows: the handler's frames, and nothing of the machine they ran on."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import msgspec
import pytest

import fairway
from fairway import App, Ctx
from fairway.core.run.outcome import Outcome
from fairway.sdk.handler.context import RunFacts
from fairway.sdk.handler.stacks import place_of, stack_of
from fairway.sdk.run import run_job

app = App("stacks")
PACKAGE = str(Path(fairway.__file__).parent)


@app.job
async def in_the_loop() -> None:
    raise ValueError("no")


@app.job(timeout="10s")
async def in_the_loop_with_a_limit() -> None:
    await asyncio.sleep(0)
    raise ValueError("no")


@app.job(mode="thread")
def in_a_thread() -> None:
    json.loads("{")


@app.job
async def by_way_of_asyncio() -> None:
    await asyncio.gather(failing())


@app.job
async def chained() -> None:
    try:
        await failing()
    except ValueError as error:
        raise KeyError("k") from error


@app.job
async def with_arguments(number: int) -> None:
    return


async def failing() -> None:
    raise ValueError("no")


async def stack(name: str, payload: bytes = b"{}") -> str:
    job = next(job for full, job in app.jobs.items() if full.endswith(name))
    facts = RunFacts("j1", job.name, timeout_seconds=job.timeout_seconds)
    return told(await run_job(job, payload, Ctx(facts)))


def told(end: Outcome) -> str:
    error: dict[str, str] = msgspec.json.decode(end.error or b"{}")
    return error["stack"]


JOBS = ["in_the_loop", "in_the_loop_with_a_limit", "in_a_thread", "by_way_of_asyncio", "chained"]


@pytest.mark.parametrize("name", JOBS)
async def test_it_begins_with_the_handler_and_names_no_folder_of_a_machine(name: str) -> None:
    shown = await stack(name)
    first, *_ = [line for line in shown.splitlines() if line.startswith("  File ")]
    assert first.startswith('  File "tests/sdk/handler/test_stacks.py", line ')
    assert first.endswith(f", in {name}")
    assert "fairway/" not in shown
    assert PACKAGE not in shown
    assert os.sep + "python3" not in shown
    assert 'File "/' not in shown


async def test_what_the_handler_calls_is_shown_with_its_lines() -> None:
    shown = await stack("in_a_thread")
    assert '  File "json/decoder.py", line ' in shown
    assert '    json.loads("{")' in shown, "the line of source, whatever the file is called"
    assert (await stack("chained")).count("tests/sdk/handler/test_stacks.py") == 3


async def test_arguments_that_do_not_fit_show_one_frame_of_ours_at_most() -> None:
    shown = await stack("with_arguments", b'{"number":"x"}')
    assert shown.count("  File ") <= 1
    assert PACKAGE not in shown


def test_a_syntax_error_names_no_folder_either(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError) as caught:
        compile("a b", str(tmp_path / "broken.py"), "exec")
    shown = stack_of(caught.value, 1000)
    assert 'File "broken.py", line 1' in shown
    assert str(tmp_path) not in shown


def test_an_error_that_was_never_raised_has_no_frames() -> None:
    assert stack_of(ValueError("x"), 1000) == "ValueError: x\n"


def test_a_file_is_named_as_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/", "/srv/app", "/srv/app/plugins"])
    monkeypatch.chdir(tmp_path)
    place_of.cache_clear()
    try:
        assert place_of("/srv/app/shop/mail.py") == "shop/mail.py"
        assert place_of("/srv/app/plugins/mail.py") == "mail.py"
        assert place_of("/srv/application/mail.py") == "mail.py", "another folder"
        assert place_of("/opt/secret/project/mail.py") == "mail.py"
        assert place_of(str(tmp_path / "jobs" / "a.py")) == "jobs/a.py"
        assert place_of("<string>") == "<string>"
    finally:
        place_of.cache_clear()
