"""Judging as a job, one job type a language. `fairway worker examples.judge.jobs:app` runs them.

The job carries references; source and tests come from object storage. A verdict is the job's
result. A host that cannot hold the program, or a store that is away, is not the author's fault:
that is raised, and the platform tries again.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from examples.judge import files, judging
from examples.judge.judging import Judged
from examples.judge.languages import LANGUAGES
from examples.judge.sandbox import Sandbox
from examples.judge.settings import load
from examples.judge.verdicts import Limits
from msgspec import Meta

from fairway import CTX, App, Ctx, Job, Retry

app = App("judge", patience="5s")

#: Whoever has a key may submit these jobs, not only the service.
CpuSeconds: TypeAlias = Annotated[float, Meta(gt=0, le=10)]
MemoryMb: TypeAlias = Annotated[int, Meta(ge=16, le=1024)]
Tests: TypeAlias = Annotated[list[tuple[str, str]], Meta(min_length=1, max_length=100)]

#: A host in trouble often is so for a minute; the author is not to blame for any of it.
RETRY = Retry(10, backoff=("1s", "5s", "15s", "60s"))


def run(
    language: str,
    source: str,
    tests: list[tuple[str, str]],
    cpu_seconds: float,
    memory_mb: int,
    ctx: Ctx,
) -> Judged:
    store = files.open_store(load().store)
    cases = [
        judging.Trial(files.get(store, given), files.get(store, expected))
        for given, expected in tests
    ]
    return judging.judge(
        _sandbox(ctx),
        LANGUAGES[language],
        files.get(store, source),
        cases,
        Limits(cpu_seconds=cpu_seconds, memory_bytes=memory_mb << 20),
        lambda done, total: ctx.progress(done, total, f"test {done + 1} of {total}"),
    )


@app.job(name="judge.python", pool="python", mode="thread", timeout="5m", retry=RETRY)
def judge_python(
    source: str, tests: Tests, cpu_seconds: CpuSeconds, memory_mb: MemoryMb, ctx: Ctx = CTX
) -> Judged:
    return run("python", source, tests, cpu_seconds, memory_mb, ctx)


@app.job(name="judge.c", pool="c", mode="thread", timeout="5m", retry=RETRY)
def judge_c(
    source: str, tests: Tests, cpu_seconds: CpuSeconds, memory_mb: MemoryMb, ctx: Ctx = CTX
) -> Judged:
    return run("c", source, tests, cpu_seconds, memory_mb, ctx)


@app.job(name="judge.cpp", pool="cpp", mode="thread", timeout="5m", retry=RETRY)
def judge_cpp(
    source: str, tests: Tests, cpu_seconds: CpuSeconds, memory_mb: MemoryMb, ctx: Ctx = CTX
) -> Judged:
    return run("cpp", source, tests, cpu_seconds, memory_mb, ctx)


@app.job(name="judge.java", pool="java", mode="thread", timeout="5m", retry=RETRY)
def judge_java(
    source: str, tests: Tests, cpu_seconds: CpuSeconds, memory_mb: MemoryMb, ctx: Ctx = CTX
) -> Judged:
    return run("java", source, tests, cpu_seconds, memory_mb, ctx)


JOBS: dict[str, Job[..., Judged]] = {
    "python": judge_python,
    "c": judge_c,
    "cpp": judge_cpp,
    "java": judge_java,
}


_found: list[Sandbox] = []


def _sandbox(ctx: Ctx) -> Sandbox:
    """Found once in each runner; the worker's log says which."""
    if not _found:
        _found.append(Sandbox.find(load().sandbox))
        ctx.log.info("programs run in: %s", _found[0].level)
    return _found[0]
