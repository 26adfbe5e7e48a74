"""Hooks: around a run they are a part of it; elsewhere they look on and change nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from fairway import App, Ctx, Enqueueing, Fail, JobDeath, JobFailed, RunFailure
from fairway.testing import inline


@pytest.fixture
def app() -> App:
    return App("hooked")


def test_around_a_run_in_order(app: App) -> None:
    told: list[str] = []

    @app.around_run
    def outer(ctx: Ctx) -> Iterator[None]:
        told.append(f"outer {ctx.type}")
        yield
        told.append("outer out")

    @app.around_run
    def inner(ctx: Ctx) -> Iterator[None]:
        told.append(f"inner {Ctx.current().attempt}")
        yield
        told.append("inner out")

    @app.job(name="async", pool="short")
    async def coroutine() -> int:
        told.append("runs")
        return 1

    @app.job(name="sync", pool="short", mode="loop", timeout="5s")
    def plain() -> int:
        told.append("runs")
        return 2

    with inline():
        for job, result in ((coroutine, 1), (plain, 2)):
            told.clear()
            assert job.enqueue().result() == result
            assert told == [
                f"outer {job.name}", "inner 1", "runs", "inner out", "outer out"
            ]  # fmt: skip


def test_around_a_run_is_a_part_of_it(app: App) -> None:
    seen: list[BaseException] = []

    @app.around_run
    def guard(ctx: Ctx) -> Iterator[None]:
        if ctx.type == "kept.out":
            raise Fail("not today")
        try:
            yield
        except ValueError as error:
            seen.append(error)  # and says nothing

    @app.job(name="kept.out", pool="short")
    async def kept_out() -> None: ...

    @app.job(name="swallowed", pool="short", attempts=1)
    async def swallowed() -> None:
        raise ValueError("mine")

    with inline():
        with pytest.raises(JobFailed, match="not today"):
            kept_out.enqueue().result()
        with pytest.raises(JobFailed, match="mine"):
            swallowed.enqueue().result()
    assert [str(error) for error in seen] == ["mine"]


def test_failures_and_deaths_are_told(app: App, caplog: pytest.LogCaptureFixture) -> None:
    told: list[object] = []

    @app.on_failure
    def broken(failure: RunFailure) -> None:
        raise OSError("the pager is off")

    @app.on_failure
    def failed(failure: RunFailure) -> None:
        told.append((failure.ctx.attempt, repr(failure.error)))

    @app.on_death
    def died(death: JobDeath) -> None:
        told.append((death.type, death.attempt, death.failure, death.error["type"]))

    @app.job(name="doomed", pool="short", attempts=2)
    async def doomed() -> None:
        raise KeyError("x")

    with inline(), caplog.at_level(logging.ERROR), pytest.raises(JobFailed):
        doomed.enqueue().result()
    assert told == [
        (1, "KeyError('x')"),
        (2, "KeyError('x')"),
        ("doomed", 2, "app_error", "KeyError"),
    ]
    assert "the pager is off" in caplog.text


def test_around_enqueue_changes_nothing(app: App, caplog: pytest.LogCaptureFixture) -> None:
    told: list[object] = []

    @app.around_enqueue
    def broken(call: Enqueueing) -> Iterator[None]:
        raise OSError("no tracer")
        yield

    @app.around_enqueue
    def traced(call: Enqueueing) -> Iterator[None]:
        told.append([one.type for one in call.requests])
        yield
        told.append("done")
        raise OSError("cannot flush")

    @app.job(name="add", pool="short")
    async def add(number: int) -> int:
        return number + 1

    with inline(), caplog.at_level(logging.ERROR):
        assert add.enqueue(1).result() == 2
        assert len(add.enqueue_many([(1,), (2,)])) == 2
    assert told == [["add"], "done", ["add", "add"], "done"]
    assert "no tracer" in caplog.text
    assert "cannot flush" in caplog.text
