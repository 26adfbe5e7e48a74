"""When a run is ended from outside: what was asked for first, then what it did wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.run.outcome import FailureClass, OutcomeKind
from fairway.core.run.process_limits import (
    KILL_GRACE_MS,
    RUNAWAY_CPU_MS,
    UNLIMITED,
    RunLimits,
    Usage,
    Watched,
    runaway_after_ms,
    verdict,
)

amounts = st.integers(0, 10**12)
limits = st.none() | st.integers(1, 10**12)
run_limits = st.builds(
    RunLimits, memory_bytes=limits, cpu_ms=limits, file_bytes=limits, open_files=limits,
    processes=limits,
)  # fmt: skip
usages = st.builds(Usage, amounts, amounts, amounts)
runs = st.builds(
    Watched, ran_ms=amounts, usage=usages, limits=run_limits, timeout_ms=limits,
    cancelled_ms=st.none() | amounts, cancel_grace_ms=amounts, idle_cpu_ms=amounts,
    runaway_cpu_ms=limits,
)  # fmt: skip


def over(used: int, limit: int | None) -> bool:
    return limit is not None and used > limit


def is_over_a_limit(run: Watched) -> bool:
    used, held = run.usage, run.limits
    return (
        over(used.memory_bytes, held.memory_bytes)
        or over(used.cpu_ms, held.cpu_ms)
        or over(used.processes, held.processes)
    )


@given(runs)
def test_the_verdict_names_the_first_reason_that_holds(run: Watched) -> None:
    found = verdict(run)
    if run.cancelled_ms is not None and run.cancelled_ms >= run.cancel_grace_ms:
        assert found is not None
        assert (found.kind, found.failure) == (OutcomeKind.CANCELLED, None)
    elif run.timeout_ms is not None and run.ran_ms >= run.timeout_ms + KILL_GRACE_MS:
        assert found is not None
        assert found.failure is FailureClass.TIMEOUT
    elif is_over_a_limit(run):
        assert found is not None
        assert found.failure is FailureClass.RESOURCE
    elif run.runaway_cpu_ms is not None and run.idle_cpu_ms >= run.runaway_cpu_ms:
        assert found is not None
        assert (found.failure, found.type) == (FailureClass.RUNAWAY, "Runaway")
    else:
        assert found is None


@given(runs)
def test_a_run_without_limits_and_wishes_goes_on(run: Watched) -> None:
    free = run._replace(limits=UNLIMITED, timeout_ms=None, cancelled_ms=None, runaway_cpu_ms=None)
    assert verdict(free) is None


@given(runs, amounts)
def test_more_use_never_saves_a_run(run: Watched, more: int) -> None:
    later = run._replace(
        ran_ms=run.ran_ms + more,
        usage=run.usage._replace(memory_bytes=run.usage.memory_bytes + more),
        idle_cpu_ms=run.idle_cpu_ms + more,
    )
    assert verdict(run) is None or verdict(later) is not None


@given(run_limits, run_limits)
def test_the_ceiling_is_never_passed_and_nothing_else_is_taken_away(
    own: RunLimits, ceiling: RunLimits
) -> None:
    held = own.within(ceiling)
    for name in ("memory_bytes", "cpu_ms", "file_bytes", "open_files", "processes"):
        asked, most, got = getattr(own, name), getattr(ceiling, name), getattr(held, name)
        assert got in (asked, most)
        assert got is not None or (asked is None and most is None)
        assert got is None or got <= min(x for x in (asked, most) if x is not None)
    assert held == ceiling.within(own)


def test_runaways_are_those_that_nothing_else_bounds() -> None:
    assert runaway_after_ms(None, None) == RUNAWAY_CPU_MS
    assert runaway_after_ms(None, 5_000) is None, "a time limit bounds it"
    assert runaway_after_ms(0, None) is None, "the job type said never"
    assert runaway_after_ms(700, 5_000) == 700
