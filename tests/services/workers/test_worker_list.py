"""What people are told of workers."""

from __future__ import annotations

from fairway.cli.workers import COLUMNS
from fairway.core.pools import LONG, MEDIUM, SHORT
from fairway.services.workers.exchange import HEARTBEATS_PER_LEASE, WAIT_MAX_SECONDS
from fairway.services.workers.worker_list import is_silent


def test_a_worker_is_silent_when_it_is_later_than_its_pools_ask_for() -> None:
    """A call of an idle one is held for as long as its pools allow, and that is no silence."""
    for pool in (SHORT, MEDIUM, LONG):
        beat_seconds = pool.lease_seconds / HEARTBEATS_PER_LEASE
        usual_seconds = min(beat_seconds, WAIT_MAX_SECONDS)
        heartbeat_ms = round(beat_seconds * 1000)
        assert not is_silent(usual_seconds + 1, heartbeat_ms)
        assert is_silent(2 * usual_seconds + 5, heartbeat_ms)


def test_a_list_says_what_the_server_says() -> None:
    (state,) = [column for column in COLUMNS if column.title == "state"]
    one = {"draining": False, "silent_seconds": 19.0, "silent": False}
    assert callable(state.value)
    assert state.value(one) == "ok"
    assert state.value(one | {"silent": True}) == "silent"
    assert state.value(one | {"closed_seconds": 90.0}) == "closed 90 s"
    assert state.value(one | {"closed_seconds": 90.0, "draining": True}) == "draining"
