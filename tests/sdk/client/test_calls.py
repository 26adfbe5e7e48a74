"""Many jobs at once: each with a key of its own, so that a batch can be made safe by its caller."""

from __future__ import annotations

import pytest
from tests.sdk.tiny_server import TinyServer

from fairway import App, Job
from fairway.testing import manual


@pytest.fixture
def add(app: App) -> Job[[int, int], int]:
    @app.job
    def add(first: int, second: int = 0) -> int:
        return first + second

    return add


AddJob = Job[[int, int], int]


async def test_keys_of_their_own_hold_in_whatever_batch(add: AddJob, server: TinyServer) -> None:
    first = await add.aenqueue_many([add.call(1, 2).keyed("one"), (2, 2)])
    again = await add.aenqueue_many([(2, 2), add.call(1, 2).keyed("one"), {"first": 3}])
    assert again[1].id == first[0].id
    assert len(server.jobs) == 4
    alone = await add.options(idempotency_key="one").aenqueue(1, 2)
    assert alone.id == first[0].id


async def test_a_key_of_the_batch_covers_each_by_its_place(add: AddJob, server: TinyServer) -> None:
    server.batch_max = 2  # it is cut in halves, as large ones are
    batch = add.options(idempotency_key="import-7")
    calls = [(n, n) for n in range(5)]
    first = await batch.aenqueue_many(calls)
    again = await batch.aenqueue_many(calls)
    assert [one.id for one in first] == [one.id for one in again]
    assert len(server.jobs) == 5


async def test_without_keys_the_door_makes_one_up(add: AddJob, server: TinyServer) -> None:
    for _ in range(2):
        await add.aenqueue_many([(1, 1)])
    assert len(server.jobs) == 2


def test_under_test_keys_hold_too(add: AddJob) -> None:
    with manual() as mode:
        for _ in range(2):
            add.enqueue_many([add.call(1, 2).keyed("one"), add.call(5, 5).keyed("five")])
        assert [one.args["first"] for one in mode.enqueued] == [1, 5]


def test_a_key_that_is_none_is_told_at_once(add: AddJob) -> None:
    with pytest.raises(ValueError, match="1 to 255 printable ASCII"):
        add.call(1, 2).keyed("ä")
