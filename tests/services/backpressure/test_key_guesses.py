"""Wrong keys by address: some at once, a few a second, and a table that does not grow."""

from __future__ import annotations

import pytest

from fairway.runtime.clock import ManualClock
from fairway.runtime.telemetry import Instruments, Metrics
from fairway.services.backpressure import key_guesses as module
from fairway.services.backpressure.key_guesses import GUESSES_AT_ONCE, GUESSES_PER_SECOND, Guesses


def test_an_address_that_guesses_waits_and_no_other_does() -> None:
    clock = ManualClock()
    guesses = Guesses(Instruments(clock, Metrics()))
    for _ in range(GUESSES_AT_ONCE + 1):
        assert guesses.wait_seconds("here") == 0
        guesses.failed("here")
    wait_seconds = guesses.wait_seconds("here")
    assert wait_seconds == pytest.approx(1 / GUESSES_PER_SECOND)
    assert guesses.wait_seconds("there") == 0
    clock.advance(wait_seconds)
    assert guesses.wait_seconds("here") == 0


def test_the_table_is_bounded_and_forgets_who_guessed_longest_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ADDRESSES_MAX", 3)
    guesses = Guesses(Instruments(ManualClock(), Metrics()))
    for address in "abcad":
        guesses.failed(address)
    assert list(guesses._buckets) == ["c", "a", "d"]
