"""One submission, judged: compile, run every test until one fails, say the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypedDict

from examples.judge import places
from examples.judge.languages import COMPILING, Language
from examples.judge.places import Place
from examples.judge.sandbox import Sandbox, Task
from examples.judge.verdicts import Limits, Ran, Verdict, verdict_of

COMPILER_WORDS_MAX = 4000


class Trial(NamedTuple):
    input: bytes
    expected: bytes


class Judged(TypedDict):
    verdict: str
    detail: str
    passed: int
    tests: int
    cpu_seconds: float
    memory_mb: float
    sandbox: str


def judge(
    sandbox: Sandbox,
    language: Language,
    source: bytes,
    tests: Sequence[Trial],
    limits: Limits,
    on_test: Callable[[int, int], None] = lambda done, total: None,
) -> Judged:
    """Raises SandboxUnavailable when the host is at fault, never for what the program does."""
    with places.opened() as place:
        _furnish(place, language, source)
        failure = _compile(sandbox, language, place)
        if failure is not None:
            return _judged(sandbox, Verdict.COMPILE_ERROR, failure, tests)
        worst = Ran(0, 0.0, 0, b"", b"")
        for number, test in enumerate(tests):
            on_test(number, len(tests))
            ran = sandbox.run(_task(language, place, limits, test.input))
            worst = worst._replace(
                cpu_seconds=max(worst.cpu_seconds, ran.cpu_seconds),
                memory_bytes=max(worst.memory_bytes, ran.memory_bytes),
            )
            verdict, detail = verdict_of(ran, test.expected, limits)
            if verdict is not Verdict.ACCEPTED:
                return _judged(sandbox, verdict, detail, tests, passed=number, worst=worst)
        return _judged(sandbox, Verdict.ACCEPTED, "", tests, passed=len(tests), worst=worst)


def _furnish(place: Place, language: Language, source: bytes) -> None:
    """The account that compiles and runs may read it; the folder is closed to everybody else."""
    file = place.folder / language.source
    file.write_bytes(source)
    file.chmod(0o644)


def _compile(sandbox: Sandbox, language: Language, place: Place) -> str | None:
    """None when it compiled, else what the compiler said."""
    if not language.compile:
        return None
    ran = sandbox.run(
        Task(language.compile, place, COMPILING, may_write=True, gently=True,
             own_memory=language.own_memory)
    )  # fmt: skip
    if ran.exit_code == 0 and not ran.was_stopped:
        return None
    if ran.was_stopped or ran.was_out_of_memory:
        return "the compiler took too long or too much"
    return ran.stderr.decode(errors="replace")[:COMPILER_WORDS_MAX]


def _task(language: Language, place: Place, limits: Limits, stdin: bytes) -> Task:
    wide = limits._replace(processes=limits.processes + language.extra_processes)
    words = language.run_words(limits)
    return Task(words, place, wide, stdin, own_memory=language.own_memory)


def _judged(
    sandbox: Sandbox,
    verdict: Verdict,
    detail: str,
    tests: Sequence[Trial],
    passed: int = 0,
    worst: Ran | None = None,
) -> Judged:
    return Judged(
        verdict=verdict.value,
        detail=detail,
        passed=passed,
        tests=len(tests),
        cpu_seconds=round(worst.cpu_seconds, 3) if worst else 0.0,
        memory_mb=round(worst.memory_bytes / (1 << 20), 1) if worst else 0.0,
        sandbox=sandbox.level,
    )
