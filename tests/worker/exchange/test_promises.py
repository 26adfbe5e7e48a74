"""Slots offered to several owners, over calls and replies that overtake each other."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.worker.exchange.promises import Promises, review
from fairway.worker.exchange.slot_sharing import reserve_of

POOL = "short"


class Owner:
    """A server as far as a worker's slots go: the newest offer holds, by the number of its call."""

    def __init__(self, queued: int) -> None:
        self.queued, self.running, self.offered, self.heard = queued, 0, 0, 0

    def hear(self, number: int, offer: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        if number > self.heard:
            self.heard, self.offered = number, offer[POOL]
        self.start()
        is_full = self.running >= self.offered
        return {POOL: self.running}, {POOL: 1} if self.queued and is_full else {}

    def start(self) -> None:
        """What comes while a call is held starts at once."""
        started = max(min(self.offered - self.running, self.queued), 0)
        self.running, self.queued = self.running + started, self.queued - started


class World:
    def __init__(self, slots: int, queued: list[int]) -> None:
        self.slots, self.turn, self.number = {POOL: slots}, 0, 0
        self.owners = [Owner(jobs) for jobs in queued]
        self.promises = [Promises(self.slots) for _ in queued]
        self.calls: list[tuple[int, int, dict[str, int]]] = []  # owner, number, offer
        self.replies: list[tuple[int, int, dict[str, int], dict[str, int]]] = []

    def call(self, owner: int) -> None:
        self.number += 1
        self.calls.append((owner, self.number, self.promises[owner].say(self.number)))

    def arrive(self, which: int) -> None:
        if self.calls:
            owner, number, offer = self.calls.pop(which % len(self.calls))
            self.replies.append((owner, number, *self.owners[owner].hear(number, offer)))

    def answer(self, which: int) -> None:
        if self.replies:
            owner, number, in_use, waiting = self.replies.pop(which % len(self.replies))
            self.promises[owner].answered(number, in_use, waiting)

    def end(self, owner: int) -> None:
        self.owners[owner].running = max(self.owners[owner].running - 1, 0)

    def review(self) -> None:
        self.turn += 1
        for one in self.promises:
            one.turn()
        review(self.slots, self.promises, self.turn)

    def settle(self) -> None:
        """Nothing is under way any more, and everybody was heard."""
        for owner in range(len(self.owners)):
            self.call(owner)
        while self.calls or self.replies:
            self.arrive(0)
            self.answer(0)

    @property
    def running(self) -> int:
        return sum(one.running for one in self.owners)


STEPS = 250


def step(world: World, chance: random.Random) -> None:
    number = chance.randrange(1000)
    owner = number % len(world.owners)
    match chance.choice("ccaaaarrrreewj"):
        case "c":
            world.call(owner)
        case "a":
            world.arrive(number)
        case "e":
            world.end(owner)
        case "r":
            world.answer(number)
        case "j":
            world.owners[owner].queued += number % 30
            world.owners[owner].start()
        case "w":
            world.review()


@pytest.mark.parametrize("seed", range(30))
def test_no_more_runs_than_slots_and_no_slot_idle_while_work_waits(seed: int) -> None:
    chance = random.Random(seed)
    slots, owners = chance.randint(1, 40), chance.randint(1, 5)
    world = World(slots, [chance.choice((0, 0, chance.randint(0, 60))) for _ in range(owners)])
    for _ in range(STEPS):
        step(world, chance)
        assert world.running <= slots, "a slot was promised twice"
    for _ in range(12):
        world.settle()
        world.review()
    world.settle()
    kept = reserve_of(slots) * sum(not one.queued for one in world.owners)
    if sum(one.queued for one in world.owners):
        assert world.running >= slots - kept, "work waits, and slots are idle"


@given(st.integers(1, 12), st.lists(st.integers(1, 9), min_size=2, max_size=6))
def test_all_work_is_done_however_few_the_slots(slots: int, queued: list[int]) -> None:
    world = World(slots, queued)
    for _ in range(4 * sum(queued)):
        world.settle()
        world.review()
        for owner in range(len(queued)):
            world.end(owner)
    assert not any(one.queued for one in world.owners)


def test_work_that_is_for_other_workers_gets_no_slots_again_and_again() -> None:
    """One owner has jobs that this worker does not run; with slots given back it asks anew."""
    slots, number, calls = {POOL: 12}, 0, [0, 1]
    owners, used = [Promises(slots), Promises(slots)], [0, 0]
    while calls:
        owner, *calls = calls
        number += 1
        offered = owners[owner].say(number)[POOL]
        used[owner] = offered * owner  # all, or none
        is_full = used[owner] >= offered
        owners[owner].answered(number, {POOL: used[owner]}, {POOL: 1} if is_full else {})
        calls += [one for one in review(slots, owners) if one not in calls]
        assert number < 20, "they go to and fro"
    assert used == [0, 12]
    assert owners[0].is_doubted
    owners[0].turn()
    assert review(slots, owners) == {1}, "it may have something for us by now"


def test_owners_for_whom_nothing_waits_are_not_told_of_every_run_elsewhere() -> None:
    """A new offer is a call that is answered at once: as many as there are replies."""
    world = World(800, [0, 0, 0, 0])
    for _ in range(2):
        world.review()
        world.settle()
    for running in (90, 10, 60, 0, 100):
        world.owners[0].queued = max(running - world.owners[0].running, 0)
        world.owners[0].running = min(world.owners[0].running, running)
        world.call(0)
        world.arrive(0)
        world.answer(0)
        world.review()
        assert [one.is_news for one in world.promises] == [False] * 4
    world.owners[0].queued = 500
    for _ in range(4):
        world.settle()
        world.review()
    assert world.owners[0].running == 600, "where work waits, slots go there"
