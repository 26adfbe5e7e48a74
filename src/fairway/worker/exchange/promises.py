"""What a worker has promised to each owner that it serves: pure bookkeeping of slots by pool.

An owner may give out as many jobs at once as it was offered. An offer that shrinks counts only
when the owner has answered a call that says so: until then it may give out by the older one. So a
slot is taken from one owner first and offered to the next when that is certain. Calls overtake each
other; owners heed the newest offer by the number of its call, and so is it counted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairway.worker.exchange.slot_sharing import OwnerNeed, reserve_of, share_slots

DOUBT_TURNS_MAX = 8  # a turn is a quarter of a second
NEAR_PART = 8  # of the slots: an owner may have so many more or fewer than its part


class Promises:
    """To one owner."""

    def __init__(self, slots: Mapping[str, int], *, is_known: bool = True) -> None:
        self.offer: dict[str, int] = dict.fromkeys(slots, 0)  # replaced when it changes
        self._slots = slots
        self._said = self.offer  # the last that went out
        self._under_way: dict[int, dict[str, int]] = {}  # call → what it offers
        self._answered = dict(self.offer if is_known else slots)
        self.in_use: Mapping[str, int] = {}  # as the owner counts
        self._weights: dict[str, int] = {}
        self._waiting: Mapping[str, int] = {}
        # pool → of work that was said to wait, and was not for us: for how many turns it is not
        # believed, and for how many the next time
        self._doubts: dict[str, int] = {}
        self._next_doubts: dict[str, int] = {}

    @property
    def is_doubted(self) -> bool:
        """Whether the owner is not believed for now that work waits."""
        return bool(self._doubts)

    def turn(self) -> None:
        """A turn is over: who is not believed is, one day."""
        self._doubts = {pool: turns - 1 for pool, turns in self._doubts.items() if turns > 1}

    @property
    def is_news(self) -> bool:
        """Whether the owner was not told yet what it may give out."""
        return self.offer != self._said

    def say(self, number: int) -> dict[str, int]:
        """The offer, as it goes out with the call of this number."""
        self._said = self._under_way[number] = self.offer
        return self.offer

    def answered(self, number: int, in_use: Mapping[str, int], waiting: Mapping[str, int]) -> None:
        """The owner heard that call; it counts so many runs, and for so much weight it has none."""
        if number not in self._under_way:
            return  # a newer one was answered before it
        self._answered = self._under_way[number]
        self._judge(in_use)
        self._under_way = {at: one for at, one in self._under_way.items() if at > number}
        self.in_use, self._waiting = in_use, waiting
        self._weights |= waiting

    def _judge(self, in_use: Mapping[str, int]) -> None:
        """Work may wait that this worker does not run: a slot given for it is not used, goes back,
        and would be asked for again with the next reply."""
        for pool, offered in self._answered.items():
            used, before = in_use.get(pool, 0), self.in_use.get(pool, 0)
            if used > before:
                self._doubts.pop(pool, None)
                self._next_doubts.pop(pool, None)
            elif self._waiting.get(pool) and used < offered:
                turns = self._doubts[pool] = self._next_doubts.get(pool, 1)
                self._next_doubts[pool] = min(2 * turns, DOUBT_TURNS_MAX)

    def lost(self, running: Mapping[str, int]) -> None:
        """No call is under way any more: nothing can come but what is here."""
        self._under_way.clear()
        self.offer = self._said = self._answered = dict.fromkeys(self._slots, 0)
        self.in_use, self._waiting = running, {}
        self._doubts, self._next_doubts = {}, {}

    def promised(self, pool: str) -> int:
        """The owner may have so many runs here now, or after replies that are on their way."""
        offers = [one[pool] for one in self._under_way.values()]
        return max(self._answered[pool], self.in_use.get(pool, 0), self.offer[pool], *offers)

    def need(self, pool: str) -> OwnerNeed:
        is_waiting = self._waiting.get(pool, 0) > 0 and pool not in self._doubts
        return OwnerNeed(self.in_use.get(pool, 0), is_waiting, max(self._weights.get(pool, 1), 1))

    def set_offer(self, pool: str, slots: int) -> None:
        self.offer = {**self.offer, pool: slots}


def review(slots: Mapping[str, int], owners: Sequence[Promises], turn: int = 0) -> set[int]:
    """Change what is offered to whom; answers which of them should be told at once."""
    return set().union(*(_review_pool(pool, most, owners, turn) for pool, most in slots.items()))


def go_round(slots: Mapping[str, int], owners: Sequence[Promises]) -> bool:
    """Whether work waits at more owners than some pool has slots: then these take turns."""
    return any(
        most < sum(one.need(pool).is_waiting for one in owners) for pool, most in slots.items()
    )


def _review_pool(pool: str, most: int, owners: Sequence[Promises], turn: int) -> set[int]:
    needs = [one.need(pool) for one in owners]
    targets = share_slots(most, needs, turn)
    is_wanted = any(need.is_waiting for need in needs)
    soon = set()
    # Where nothing waits, an offer that is about right stays: each change of one costs a call.
    near = 0 if is_wanted else most // NEAR_PART
    for number, (one, target) in enumerate(zip(owners, targets, strict=True)):
        slack = 0 if needs[number].is_waiting else max(reserve_of(most) // 2, near)
        if target < one.offer[pool] - slack:
            one.set_offer(pool, target)
            if is_wanted:
                soon.add(number)
    free = most - sum(one.promised(pool) for one in owners)
    for number, (one, target) in enumerate(zip(owners, targets, strict=True)):
        before = one.promised(pool)
        wanted = min(target, before + max(free, 0))
        has_room = one.offer[pool] >= needs[number].in_use + reserve_of(most)
        if wanted > one.offer[pool] + (near if has_room else 0):
            one.set_offer(pool, wanted)
            free -= max(wanted - before, 0)
            if needs[number].is_waiting:
                soon.add(number)
    return soon
