"""Sign-ins by whose they are: some at once, one a second, and a table that does not grow."""

from __future__ import annotations

import pytest

from fairway.core.errors import LimitReached
from fairway.runtime.clock import ManualClock
from fairway.services.backpressure import sign_in_pace as module
from fairway.services.backpressure.sign_in_pace import SIGN_INS_AT_ONCE, SignInPace


def test_who_keeps_signing_in_waits_and_no_other_does() -> None:
    clock = ManualClock()
    pace = SignInPace(clock.now_us)
    for _ in range(SIGN_INS_AT_ONCE):
        pace.take("here")
    with pytest.raises(LimitReached) as refused:
        pace.take("here")
    assert refused.value.code == "TOO_MANY_SIGN_INS"
    assert refused.value.retry_after_seconds == pytest.approx(1)
    pace.take("there")
    clock.advance(1.0)
    pace.take("here")
    with pytest.raises(LimitReached):
        pace.take("here")


def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OWNERS_MAX", 3)
    pace = SignInPace(ManualClock().now_us)
    for owner in "abcad":
        pace.take(owner)
    assert list(pace._buckets) == ["c", "a", "d"]
