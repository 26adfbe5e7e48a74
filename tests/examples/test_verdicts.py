"""Verdicts as a table: how a run ended → what its author hears."""

from __future__ import annotations

import signal

import pytest
from examples.judge.verdicts import Limits, Ran, Verdict, verdict_of
from hypothesis import given
from hypothesis import strategies as st

LIMITS = Limits(cpu_seconds=1.0, memory_bytes=100 << 20, output_bytes=1000)
FINE = Ran(exit_code=0, cpu_seconds=0.1, memory_bytes=5 << 20, stdout=b"42\n", stderr=b"")


@pytest.mark.parametrize(
    ("ran", "verdict"),
    [
        (FINE, Verdict.ACCEPTED),
        (FINE._replace(stdout=b"42"), Verdict.ACCEPTED),
        (FINE._replace(stdout=b"  42  \n\n\n"), Verdict.ACCEPTED),
        (FINE._replace(stdout=b"43\n"), Verdict.WRONG_ANSWER),
        (FINE._replace(stdout=b"4 2\n"), Verdict.WRONG_ANSWER),
        (FINE._replace(stdout=b"\n42\n"), Verdict.WRONG_ANSWER),
        (FINE._replace(stdout=b""), Verdict.WRONG_ANSWER),
        (FINE._replace(exit_code=1), Verdict.RUNTIME_ERROR),
        (FINE._replace(exit_code=-signal.SIGSEGV), Verdict.RUNTIME_ERROR),
        (FINE._replace(exit_code=-signal.SIGXFSZ), Verdict.RUNTIME_ERROR),
        (FINE._replace(stdout=b"4" * 1001), Verdict.RUNTIME_ERROR),
        (FINE._replace(exit_code=-signal.SIGXCPU), Verdict.TIME_LIMIT),
        (FINE._replace(exit_code=-signal.SIGKILL, was_stopped=True), Verdict.TIME_LIMIT),
        (FINE._replace(cpu_seconds=1.01), Verdict.TIME_LIMIT),
        (FINE._replace(exit_code=-signal.SIGKILL, was_out_of_memory=True), Verdict.MEMORY_LIMIT),
        (FINE._replace(exit_code=1, stderr=b"MemoryError\n"), Verdict.MEMORY_LIMIT),
        (FINE._replace(exit_code=-signal.SIGSEGV, memory_bytes=99 << 20), Verdict.MEMORY_LIMIT),
        # An exit status is not a signal, whatever a shell would make of it.
        (FINE._replace(exit_code=128 + signal.SIGXCPU), Verdict.RUNTIME_ERROR),
        # A runtime with memory of its own may be larger than the program's limit.
        (FINE._replace(exit_code=1, memory_bytes=150 << 20), Verdict.RUNTIME_ERROR),
        # Near the limit is not over it.
        (FINE._replace(memory_bytes=99 << 20), Verdict.ACCEPTED),
        (FINE._replace(stderr=b"MemoryError is handled\n"), Verdict.ACCEPTED),
    ],
)
def test_how_a_run_ended_is_what_its_author_hears(ran: Ran, verdict: Verdict) -> None:
    assert verdict_of(ran, b"42\n", LIMITS)[0] is verdict


def test_a_runtime_error_says_how_it_ended_and_its_last_words() -> None:
    ran = FINE._replace(exit_code=1, stderr=b"Traceback\nZeroDivisionError: division by zero\n")
    assert verdict_of(ran, b"", LIMITS)[1] == "exit status 1: ZeroDivisionError: division by zero"
    assert verdict_of(FINE._replace(exit_code=134), b"", LIMITS)[1] == "exit status 134"
    assert verdict_of(FINE._replace(exit_code=-40), b"", LIMITS)[1] == "ended by signal 40"
    assert "SIGSEGV" in verdict_of(FINE._replace(exit_code=-signal.SIGSEGV), b"", LIMITS)[1]


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=5), max_size=5))
def test_blanks_at_the_ends_of_lines_never_decide(lines: list[list[int]]) -> None:
    tidy = "\n".join(" ".join(map(str, line)) for line in lines)
    untidy = "".join("  ".join(map(str, line)) + "  \r\n" for line in lines) + "\n"
    ran = FINE._replace(stdout=untidy.encode())
    assert verdict_of(ran, tidy.encode(), Limits())[0] is Verdict.ACCEPTED
