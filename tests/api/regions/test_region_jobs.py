"""Jobs for another region name their pools: each region has numbers of its own."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from fairway.api.passed_jobs import PassedJobs, RegionJobs, decode_region_calls, encode
from fairway.api.region_lines import NoAnswer, _with_doubt
from fairway.api.regions.inlet import RegionInlet
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.ids import JobId, PoolId, TenantId
from fairway.core.pools import BUILT_IN, PoolTable
from fairway.services.submit.submission_group import Accepted, NewJob

FIRST = JobId("0198c5a4-0000-7000-8000-000000000000")


def call_with(**pools: int) -> RegionJobs:
    jobs = [NewJob("work", PoolId(number), 5, None, b"{}") for number in pools.values()]
    names = {PoolId(number): name for name, number in pools.items()}
    return RegionJobs(TenantId(1), len(jobs), False, 0, FIRST, None, jobs, names)


def test_pools_are_found_by_name_at_the_home() -> None:
    table = PoolTable([*BUILT_IN, replace(BUILT_IN[0], name="gpu", number=PoolId(9))])
    platform: Any = SimpleNamespace(directory=SimpleNamespace(pools=table))
    inlet = RegionInlet(platform, cast(Any, None), cast(Any, None))
    (call,) = decode_region_calls(encode([call_with(gpu=4, short=1)]))
    assert [new.pool for new in inlet._in_own_pools(call)] == [9, 1]
    with pytest.raises(InvalidRequest, match="no pool 'tape'"):
        inlet._in_own_pools(call_with(tape=4))


def test_what_is_held_is_read_as_any_call() -> None:
    held = msgspec.msgpack.decode(encode(call_with(short=1)), type=PassedJobs)
    assert (held.first, [new.type for new in held.jobs]) == (FIRST, ["work"])


def test_who_took_nothing_does_not_speak_for_a_server_that_hangs() -> None:
    not_home = Unavailable(code="NOT_HOME")
    assert _with_doubt(True, not_home) == NoAnswer(is_open=True)
    assert _with_doubt(False, not_home) is not_home
    assert _with_doubt(True, [Accepted(FIRST)]) == [Accepted(FIRST)]
