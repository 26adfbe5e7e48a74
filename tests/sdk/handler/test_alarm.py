"""The alarm: rings in the middle of a plain function, and leaves everything as it was."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from fairway.sdk.handler.alarm import alarm

pytestmark = pytest.mark.filterwarnings("error")


class Late(Exception):
    """The time is up."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Without the alarm that ends a test that hangs, which is the same one."""
    left, every = signal.setitimer(signal.ITIMER_REAL, 0)
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, left, every)


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_it_rings_in_the_middle_and_is_over_afterwards() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Late), alarm(0.02, Late()):
        spin(10)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_who_is_done_in_time_hears_nothing() -> None:
    with alarm(0.02, Late()):
        pass
    spin(0.05)


@pytest.mark.parametrize("in_main", [True, False])
def test_without_a_limit_or_elsewhere_nothing_is_set(in_main: bool) -> None:
    found: list[tuple[float, float]] = []

    def look() -> None:
        with alarm(None if in_main else 10.0, Late()):
            found.append(signal.getitimer(signal.ITIMER_REAL))

    if in_main:
        look()
    else:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == [(0, 0)]


def test_an_alarm_of_somebody_else_still_rings() -> None:
    rung: list[float] = []
    signal.signal(signal.SIGALRM, lambda number, frame: rung.append(time.monotonic()))
    began = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with alarm(10, Late()):
        spin(0.05)
    assert not rung
    while not rung and time.monotonic() < began + 5:
        time.sleep(0.01)
    assert rung[0] - began >= 0.1
