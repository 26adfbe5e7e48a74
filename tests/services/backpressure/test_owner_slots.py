"""Places: nobody takes them all, nobody waits for ever, nothing is left over."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from fairway.core.errors import Unavailable
from fairway.services.backpressure.owner_slots import OwnerSlots


async def test_one_owner_cannot_take_the_places_of_another() -> None:
    places = OwnerSlots("carts are on the road", per_owner=2, in_all=4, wait_seconds=0.05)
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(places.held("greedy"))
        with pytest.raises(Unavailable) as refused:
            await stack.enter_async_context(places.held("greedy"))
        assert refused.value.code == "OVERLOADED"
        assert refused.value.message == "Too many carts are on the road; try again shortly."
        for _ in range(2):
            await stack.enter_async_context(places.held("modest"))
        with pytest.raises(Unavailable):  # all are taken by now
            await stack.enter_async_context(places.held("third"))
        await stack.enter_async_context(places.held("third", is_small=True))
    assert places._owners == {}


async def test_many_take_turns() -> None:
    places = OwnerSlots("carts", per_owner=2, in_all=3)
    at_once: dict[str, int] = {"all": 0}
    most: dict[str, int] = {}

    async def carry(owner: str) -> None:
        async with places.held(owner):
            for name in (owner, "all"):
                at_once[name] = at_once.get(name, 0) + 1
                most[name] = max(most.get(name, 0), at_once[name])
            await asyncio.sleep(0)
            for name in (owner, "all"):
                at_once[name] -= 1

    await asyncio.gather(*(carry(owner) for owner in "abcd" * 10))
    assert most["all"] == 3
    assert max(most[owner] for owner in "abcd") <= 2
    assert places._owners == {}
