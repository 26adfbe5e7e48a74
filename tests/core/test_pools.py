"""Pools as data: by name, by number, by duration; one that nobody told of has careful terms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairway.core.errors import InvalidRequest
from fairway.core.ids import PoolId
from fairway.core.pools import BUILT_IN, LONG, MEDIUM, SHORT, PoolTable, missing_labels

GPU = replace(LONG, number=PoolId(9), name="gpu", labels=("gpu", "eu"), fits_seconds=None)


def test_a_table_is_learnt_and_its_maps_stay_the_same() -> None:
    table = PoolTable()
    by_name, by_number = table.by_name, table.by_number
    table.learn([GPU, replace(SHORT, slots_default=7)])
    assert by_name is table.by_name
    assert by_number is table.by_number
    assert (by_name["gpu"], by_number[PoolId(9)]) == (GPU, GPU)
    assert by_number[SHORT.number].slots_default == 7


def test_pools_of_duration_come_fastest_first() -> None:
    table = PoolTable([LONG, GPU, SHORT, MEDIUM])
    assert table.of_duration() == [SHORT, MEDIUM, LONG]


def test_a_pool_that_nobody_told_of_is_leased_with_care_and_kept_nowhere() -> None:
    table = PoolTable()
    unknown = table.by_number[PoolId(77)]
    assert (unknown.number, unknown.lease_mode, unknown.slots_default) == (77, "durable", 1)
    assert 77 not in table.by_number


def test_a_wrong_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidRequest, match="there are short, medium, long") as told:
        PoolTable().named("x" * 1000, "/pool")
    assert (told.value.code, told.value.field) == ("UNKNOWN_POOL", "/pool")
    assert len(told.value.message) < 200
    assert PoolTable().named("medium", "/pool") is MEDIUM


def test_what_a_worker_lacks_is_named() -> None:
    assert missing_labels(GPU, ["gpu", "fast"]) == ["eu"]
    assert missing_labels(GPU, ["eu", "gpu"]) == []
    assert missing_labels(SHORT, []) == []


def test_leases_of_plain_pools_say_nothing_beyond_the_job() -> None:
    assert [pool.name for pool in BUILT_IN if pool.is_plain] == ["short"]
