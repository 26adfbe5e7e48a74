"""Growing pauses: doubled, never longer than the longest, and no outage is too long for them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backoff import (
    DOUBLINGS_MAX,
    KINDS_MAX,
    TOLD_AGAIN_US,
    Outage,
    Over,
    RestartPauses,
    ToldElsewhere,
    backoff_seconds,
)

TRIES = st.lists(
    st.tuples(st.integers(0, TOLD_AGAIN_US), st.none() | st.sampled_from("abcdefghijkl")),
    max_size=60,
)


def test_a_pause_doubles_until_it_is_the_longest() -> None:
    assert [backoff_seconds(0.1, n, 1.0) for n in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(st.integers(0, 10**9))
def test_an_outage_of_any_length_has_a_pause(doublings: int) -> None:
    assert 0.1 <= backoff_seconds(0.1, doublings, 5.0) <= 5.0
    assert backoff_seconds(1.0, doublings, float("inf")) <= 2.0**DOUBLINGS_MAX


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40))
def test_short_lives_wait_ever_longer_and_a_long_one_is_forgiven(lives: list[float]) -> None:
    pauses, before = RestartPauses(0.2, 10.0, 30.0), 0.0
    for lived_seconds in lives:
        pause = pauses.after(lived_seconds)
        assert 0.2 <= pause <= 10.0
        expected = 0.2 if lived_seconds >= 30.0 or not before else min(before * 2, 10.0)
        assert pause == expected
        before = pause


def test_what_is_told_elsewhere_is_not_told_twice() -> None:
    outage = Outage()
    no, perhaps, yes = ToldElsewhere.NO, ToldElsewhere.PERHAPS, ToldElsewhere.YES
    assert not outage.failed("OSError", 0, perhaps), "it is just being looked at"
    assert not outage.failed("OSError", 1, yes)
    assert not outage.failed("OSError", 1 + TOLD_AGAIN_US, yes)
    assert outage.worked(2 + TOLD_AGAIN_US) == Over(3, 300.000002, is_told_elsewhere=True)
    assert not outage.failed("OSError", 0, perhaps)
    assert outage.worked(1_000_000) == Over(1, 1.0), "nobody else told of that"
    assert not outage.failed("OSError", 0, perhaps)
    assert outage.failed("OSError", 1, perhaps), "nor of this, it seems"
    assert not outage.failed("OSError", 2, yes)
    assert outage.failed("ValueError", 3, no)
    assert outage.worked(4) == Over(4, 0.000004)


@given(TRIES)
def test_every_outage_begins_and_ends_with_a_line_and_counts_all(
    tries: list[tuple[int, str | None]],
) -> None:
    outage, now_us = Outage(), 0
    failed, told, began_us, last_us = 0, list[str](), 0, 0
    for passed_us, kind in tries:
        now_us += passed_us
        if kind is None:
            over = outage.worked(now_us)
            assert over == (Over(failed, (now_us - began_us) / 1e6) if failed else None)
            failed, told = 0, []
            continue
        began_us = began_us if failed else now_us
        is_first = kind not in told and len(set(told)) < KINDS_MAX
        is_told = outage.failed(kind, now_us)
        assert is_told == (is_first or now_us - last_us >= TOLD_AGAIN_US)
        failed += 1
        assert outage.failures == failed
        if is_told:
            last_us = now_us
            told += [kind] if is_first else []
