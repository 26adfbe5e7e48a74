"""How long reports wait for company: the more runs, the longer, and never long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.worker.exchange import report_delay
from fairway.worker.exchange.report_delay import BUSY_JOBS, LastWords, patience

COUNTS = st.integers(0, 2 * BUSY_JOBS)


@given(running=COUNTS, begun=COUNTS)
def test_jobs_that_may_end_at_once_report_in_the_call_that_listens(
    running: int, begun: int
) -> None:
    """Only while all that runs came with the last reply; else a call is held open at once."""
    terms = patience(running, begun)
    assert (terms.listen_seconds > 0) == (running <= begun)


@given(running=COUNTS, begun=COUNTS)
def test_many_runs_bring_company_sooner_than_they_cost_time(running: int, begun: int) -> None:
    terms, more = patience(running, begun), patience(running + 1, begun)
    assert terms.linger_seconds <= more.linger_seconds <= 0.01
    assert terms.listen_seconds <= terms.linger_seconds, "it listens before it speaks"


def test_who_is_busy_lingers_longer() -> None:
    assert patience(BUSY_JOBS - 1, 0).linger_seconds == report_delay.LINGER_SECONDS
    assert patience(BUSY_JOBS, 0).linger_seconds == report_delay.LINGER_BUSY_SECONDS


SECONDS = st.floats(0, 1000)


@given(spent=SECONDS, silent=SECONDS, heavy=SECONDS)
def test_last_words_end_in_time_and_with_whoever_listens(
    spent: float, silent: float, heavy: float
) -> None:
    words = LastWords(spent, silent, heavy, is_hurried=False)
    assert words.are_over == (
        silent >= report_delay.SILENCE_SECONDS_MAX
        or spent >= report_delay.LAST_WORDS_SECONDS + heavy
    )
    hurried = words._replace(is_hurried=True)
    assert hurried.are_over or not words.are_over, "a hurry makes nothing longer"
    assert hurried.are_over or spent < report_delay.HURRIED_SECONDS
