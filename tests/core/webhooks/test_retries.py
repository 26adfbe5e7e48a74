"""When a delivery is tried again, and when a webhook is given up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.webhooks.retries import (
    ATTEMPTS_MAX,
    DISABLED_AFTER,
    FAILURES_MIN,
    RETRY_AFTER_MAX_SECONDS,
    Answer,
    disabled_because,
    pause_seconds,
    rest_seconds,
    retry_after_seconds,
    verdict_of,
)
from fairway.core.webhooks.webhook import DeliveryState

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CHANCES = st.floats(0, 1, exclude_max=True)
STATUSES = st.integers(100, 999)
ANSWERS = st.builds(Answer, STATUSES) | st.just(Answer(None, "No answer."))


@given(st.lists(CHANCES, min_size=ATTEMPTS_MAX, max_size=ATTEMPTS_MAX))
def test_tries_go_on_for_about_three_days_at_growing_pauses(chances: list[float]) -> None:
    pauses = [pause_seconds(n + 1, chance) for n, chance in enumerate(chances)]
    assert pauses[-1] is None
    steps = [pause for pause in pauses[:-1] if pause is not None]
    assert len(steps) == ATTEMPTS_MAX - 1
    assert steps == sorted(steps)
    assert 2.9 <= sum(steps) / 86400 <= 3.6


@given(ANSWERS, st.integers(1, ATTEMPTS_MAX + 5), CHANCES)
def test_every_delivery_ends(answer: Answer, attempts: int, chance: float) -> None:
    verdict = verdict_of(answer, attempts, chance)
    assert (verdict.state == DeliveryState.WAITING) == (verdict.next_in_seconds is not None)
    assert (verdict.state == DeliveryState.DELIVERED) == answer.is_success == (not verdict.error)
    if attempts >= ATTEMPTS_MAX or answer.status == 410:
        assert verdict.state != DeliveryState.WAITING


@given(st.integers(0, 100_000), ANSWERS, st.text(max_size=40), CHANCES)
def test_a_rest_is_bounded_whatever_a_receiver_asks(
    failures: int, answer: Answer, asked: str, chance: float
) -> None:
    rest = rest_seconds(failures, answer._replace(retry_after=asked), NOW, chance)
    assert 0 <= rest <= RETRY_AFTER_MAX_SECONDS
    assert (rest == 0) == (failures == 0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120), (" 7 ", 7), ("Sat, 31 Jan 2026 12:00:30 GMT", 30), ("", 0), ("soon", 0),
        ("-5", 0), ("Sat, 31 Jan 2026 11:00:00 GMT", 0), ("9" * 400, 999_999_999), ("١٢", 0),
        ("Sat, 31 Jan 2026 12:00:30", 0),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(text: str, seconds: float) -> None:
    assert retry_after_seconds(text, NOW) == seconds


def test_what_a_receiver_asks_for_is_obeyed_within_bounds() -> None:
    assert rest_seconds(1, Answer(429, retry_after="90"), NOW, 0.0) == 90
    assert rest_seconds(1, Answer(429, retry_after="999999"), NOW, 0.0) == 3600
    assert rest_seconds(1, Answer(500), NOW, 0.0) == 5


def test_a_receiver_that_is_gone_is_not_asked_again() -> None:
    assert "410" in disabled_because(Answer(410), 1, NOW, NOW)
    assert verdict_of(Answer(410), 1, 0.0).state == DeliveryState.FAILED


@given(st.integers(0, 50), st.integers(0, 10 * 24))
def test_one_that_fails_for_days_is_given_up(failures: int, hours: int) -> None:
    since = NOW - timedelta(hours=hours)
    because = disabled_because(Answer(500), failures, since, NOW)
    is_long = failures >= FAILURES_MIN and timedelta(hours=hours) >= DISABLED_AFTER
    assert bool(because) == is_long
    assert disabled_because(Answer(500), failures, None, NOW) == ""
