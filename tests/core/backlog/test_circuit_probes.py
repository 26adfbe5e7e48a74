"""Probes of a half-open circuit: a few jobs out of what is held, and nothing behind them."""

from __future__ import annotations

import pytest
from tests.core.backlog.test_backlog import POOL, make
from tests.core.timed_backlog import TimedBacklog

from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.streams import Stream, WindowLimits, key_of
from fairway.core.ids import ShardId, TenantId, TypeId

CIRCUIT = Hold(tenant=TenantId(1), type=TypeId(1), reason="circuit_open")
JOBS = [make(number, ms=number) for number in range(5)]


@pytest.fixture
def held() -> TimedBacklog:
    """Jobs of one type, in the store alone for the circuit's sake."""
    backlog = TimedBacklog(WindowLimits())
    backlog.runnable.set_holds(Holds([CIRCUIT]))
    backlog.noticed(key_of(JOBS[0]), JOBS[0].id)
    return backlog


def begun(backlog: TimedBacklog) -> Stream:
    (stream,) = backlog.probes.begin(CIRCUIT, [POOL])
    return stream


def test_only_the_probes_start(held: TimedBacklog) -> None:
    assert held.probes.end(begun(held), JOBS[:2], ()) == JOBS[:2]
    taken = [held.take(POOL, 1, {TypeId(1)}, ()) for _ in range(3)]
    assert taken == [*JOBS[:2], None]


def test_what_runs_or_is_under_way_is_no_probe(held: TimedBacklog) -> None:
    held.underway.inserting_ids.add(JOBS[1].id)
    stream = begun(held)
    assert held.probes.end(stream, JOBS[:3], {JOBS[0].id}) == [JOBS[2]]
    assert held.probes.end(begun(held), JOBS[2:4], ()) == [JOBS[3]], "each comes once"


def test_a_stream_that_is_paused_too_starts_not_even_a_probe(held: TimedBacklog) -> None:
    held.runnable.set_holds(Holds([CIRCUIT, Hold(tenant=TenantId(1))]))
    while held.runnable.is_reviewing:
        held.runnable.review()
    assert held.probes.begin(CIRCUIT, [POOL]) == []


def test_what_is_read_already_is_not_read_again(held: TimedBacklog) -> None:
    begun(held)
    assert held.probes.begin(CIRCUIT, [POOL]) == []


def test_a_shard_that_went_meanwhile_gives_no_probe(held: TimedBacklog) -> None:
    stream = begun(held)
    held.forget_shard(ShardId(0))
    assert held.probes.end(stream, JOBS[:1], ()) == []
    assert held.windows.jobs_held == 0
