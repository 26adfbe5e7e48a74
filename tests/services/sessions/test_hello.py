"""A hello's job types: what is read of them, and that others go on meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from fairway.core.ids import PoolId, TypeId
from fairway.core.job_type import TypeFacts
from fairway.runtime import loops
from fairway.services.sessions.hello import Hello, read_greeting


def hello(*names: str, **asked: dict[str, int]) -> Hello:
    return Hello(dict.fromkeys(names, TypeFacts()), {}, retry_bounds=asked)


async def test_limits_that_are_asked_for_and_facts_that_are_said() -> None:
    facts = TypeFacts(pool=PoolId(2))
    said = hello("a", "b", b={"attempts_max": 5, "resources_max": 0})
    said.types["c"] = facts
    found = await read_greeting(said, {"a": TypeId(1), "b": TypeId(2), "c": TypeId(3)})
    assert found.types == {1, 2, 3}
    assert found.policies == {2: {"attempts_max": 5, "resources_max": 0}}
    assert found.facts == [(3, facts)]


async def test_a_type_without_a_number_is_left_out() -> None:
    found = await read_greeting(
        hello("a", "b", a={"attempts_max": 5}, b={"attempts_max": 5}), {"b": TypeId(2)}
    )
    assert (found.types, found.policies) == ({2}, {2: {"attempts_max": 5}})


async def test_others_have_their_turns_while_very_many_types_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "PART_SECONDS", 0.0)
    monkeypatch.setattr(loops, "SLICE_REST_SECONDS", 0.0)
    turns, names = 0, {f"t{number}": TypeId(number) for number in range(200)}
    reading = asyncio.ensure_future(read_greeting(hello(*names), names))
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= len(names)
    assert len((await reading).types) == len(names)
