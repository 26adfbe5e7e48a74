"""How shards are spread: evenly, by as few moves as can be, and by nobody's flapping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.ids import ShardId
from fairway.core.shard_spread import (
    LiveServer,
    Spread,
    SpreadPlan,
    is_awaited,
    moves_at_once,
    plan,
    quotas,
)

NAMES = "abcdefgh"
names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=8, unique=True)
owned_or_free = st.lists(st.none() | st.sampled_from(NAMES), min_size=1, max_size=70)
Shards = Mapping[ShardId, str]


def there(names: Sequence[str], **late: bool) -> list[LiveServer]:
    return [LiveServer(name, is_settled=True, is_prompt=not late.get(name)) for name in names]


def spread_of(servers: Sequence[LiveServer], owners: Sequence[str | None]) -> Spread:
    """Whoever is not there owns nothing."""
    live = {one.name for one in servers}
    owned = {ShardId(n): name for n, name in enumerate(owners) if name is not None and name in live}
    return Spread(servers, owned, [n for n in map(ShardId, range(len(owners))) if n not in owned])


def done(spread: Spread, planned: SpreadPlan) -> Spread:
    """After everybody did its part: what was given is open at its new owner."""
    owned = dict(spread.owned) | planned.take | planned.give
    return spread._replace(owned=owned, free=[one for one in spread.free if one not in owned])


def settle(spread: Spread) -> tuple[Spread, Counter[ShardId]]:
    """Round for round until nothing is left to do; and how often each shard was given away."""
    moved = Counter[ShardId]()
    for _ in range(500):
        planned = plan(spread)
        if planned == ({}, {}):
            return spread, moved
        assert all(spread.owned[shard] != name for shard, name in planned.give.items())
        assert len(planned.give) <= moves_at_once(len(spread.owned) + len(spread.free))
        moved.update(planned.give.keys())
        spread = done(spread, planned)
    raise AssertionError("shards move for ever")


def most_and_least(spread: Spread) -> tuple[int, int]:
    held = Counter(spread.owned.values())
    counts = [held[one.name] for one in spread.servers if not one.is_leaving]
    return max(counts), min(counts)


@tried(200)
@given(names=names, owners=owned_or_free)
def test_in_the_end_all_hold_their_even_part_and_nothing_moves(
    names: list[str], owners: list[str | None]
) -> None:
    begun = spread_of(there(names), owners)
    ended, moved = settle(begun)
    most, least = most_and_least(ended)
    assert (most - least <= 1, most) == (True, -(-len(owners) // len(names)))
    assert not ended.free
    assert set(moved.values()) <= {1}, "no shard moves twice"
    held = Counter(begun.owned.values())
    allowed = quotas(names, held, len(owners))
    assert moved.total() == sum(max(held[name] - allowed[name], 0) for name in names)


@tried(200)
@given(names=names, shards=st.integers(1, 70))
def test_one_that_joins_or_leaves_moves_no_more_than_its_own_part(
    names: list[str], shards: int
) -> None:
    assume(len(names) > 1)
    before, _ = settle(spread_of(there(names[1:]), [None] * shards))
    joined, moved = settle(before._replace(servers=there(names)))
    assert moved.total() == Counter(joined.owned.values())[names[0]] == shards // len(names)
    leaves = Spread(
        there(names[1:]),
        {shard: name for shard, name in joined.owned.items() if name != names[0]},
        [shard for shard, name in joined.owned.items() if name == names[0]],
    )
    left, moved = settle(leaves)
    assert not moved, "those that stay keep what they have"
    assert most_and_least(left)[0] - most_and_least(left)[1] <= 1


@tried(200)
@given(names=names, shards=st.integers(1, 70), late=st.sampled_from(NAMES))
def test_who_flaps_or_is_late_by_a_round_moves_nothing(
    names: list[str], shards: int, late: str
) -> None:
    spread, _ = settle(spread_of(there(names), [None] * shards))
    new = LiveServer("new", is_settled=False, is_prompt=True)
    for servers in ([*there(names), new], there(names, **{late: True})):
        assert plan(spread._replace(servers=servers)) == ({}, {})


@tried(200)
@given(names=names, owners=owned_or_free, late=st.sets(st.sampled_from(NAMES)))
def test_who_is_late_gets_nothing_more(
    names: list[str], owners: list[str | None], late: set[str]
) -> None:
    planned = plan(spread_of(there(names, **dict.fromkeys(late, True)), owners))
    assert late.isdisjoint(planned.take.values())
    assert late.isdisjoint(planned.give.values())


def test_whoever_is_alone_takes_all_of_them() -> None:
    for is_settled in (True, False):
        alone = LiveServer("a", is_settled, is_prompt=True)
        assert len(plan(spread_of([alone], [None] * 64)).take) == 64


def test_shards_of_one_that_stops_are_shared_out_among_those_that_stay() -> None:
    leaving = LiveServer("a", is_settled=True, is_prompt=True, is_leaving=True)
    owners = ["b", "b", "c", "c", None, None, "a", "a"]
    planned = plan(spread_of([leaving, *there("bc")], owners))
    assert Counter(planned.take.values()) == {"b": 1, "c": 1}
    assert planned.give == {}, "it lets its own go by itself"


def test_nothing_is_let_go_while_an_owner_is_not_known() -> None:
    """One of a build before this one says nothing of itself, and takes whatever is free."""
    spread = spread_of(there("ab"), ["a"] * 7)
    unknown: Shards = {**spread.owned, ShardId(7): "old"}
    assert plan(spread._replace(owned=unknown)).give == {}
    assert plan(spread).give


def test_few_shards_are_on_their_way_at_a_time() -> None:
    spread = spread_of(there("ab"), ["a"] * 64)
    assert len(plan(spread).give) == 4
    assert len(plan(spread._replace(moving=3)).give) == 1
    assert plan(spread._replace(moving=4)).give == {}


@tried(200)
@given(names=names, owners=owned_or_free, is_new=st.booleans())
def test_an_owner_stays_for_those_that_own_nothing_yet_and_not_for_long(
    names: list[str], owners: list[str | None], is_new: bool
) -> None:
    """Once all are settled and the shards are spread, whoever is to go may go."""
    name, *others = names
    servers = [one._replace(is_settled=not is_new or one.name == name) for one in there(names)]
    spread = spread_of(servers, owners)
    held = Counter(spread.owned.values())
    assert is_awaited(spread, name) == (bool(others) and held.keys() == {name} and held[name] > 1)
    spread, _ = settle(spread._replace(servers=there(names)))
    assert not is_awaited(spread, name)


def test_nobody_stays_for_one_that_leaves_too_or_is_late() -> None:
    for other in (LiveServer("b", True, True, is_leaving=True), LiveServer("b", True, False)):
        spread = spread_of([LiveServer("a", True, True), other], ["a"] * 4)
        assert not is_awaited(spread, "a")


def grouped(names: Sequence[str], busy: Mapping[str, int]) -> list[LiveServer]:
    """Three processes of one server, two of another, and the rest by themselves."""
    groups = dict(zip(NAMES, ("first", "first", "first", "second", "second"), strict=False))
    return [
        one._replace(group=groups.get(one.name, ""), busy_per_mille=busy.get(one.name, 0))
        for one in there(names)
    ]


busy_of_names = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 1000))


@tried(200)
@given(names=names, owners=owned_or_free, busy=busy_of_names)
def test_processes_share_their_even_part_among_as_few_as_the_work_needs(
    names: list[str], owners: list[str | None], busy: dict[str, int]
) -> None:
    servers = grouped(names, busy)
    ended, moved = settle(spread_of(servers, owners))
    assert not ended.free
    held = Counter(ended.owned.values())
    even = quotas(names, held, len(owners))
    for group in {one.group for one in servers}:
        ours = [one for one in servers if one.group == group]
        together = sum(even[one.name] for one in ours)
        assert sum(held[one.name] for one in ours) == together, "of a server, however many it has"
        counts = [held[one.name] for one in ours if held[one.name] or not group]
        assert not counts or max(counts) - min(counts) <= 1
        used = sum(one.busy_per_mille for one in ours if held[one.name])
        if group and used == 0 and together:
            assert len(counts) == 1, "the others stand by"
    if not any(busy.values()):
        assert all(count <= 2 for count in moved.values())


def test_one_process_owns_what_little_there_is_and_the_next_joins_when_it_is_busy() -> None:
    spread, moved = settle(spread_of(grouped("abc", {}), [None] * 64))
    assert len(set(spread.owned.values())) == 1
    owner = spread.owned[ShardId(0)]
    busy, _ = settle(spread._replace(servers=grouped("abc", {owner: 900})))
    assert sorted(Counter(busy.owned.values()).values()) == [32, 32]
    quiet, _ = settle(busy._replace(servers=grouped("abc", {})))
    assert len(set(quiet.owned.values())) == 1
    assert not moved


@tried(200)
@given(owners=st.lists(st.sampled_from("abc"), min_size=8, max_size=70), busy=busy_of_names)
def test_what_one_process_gives_its_sibling_takes_and_nobody_else(
    owners: list[str], busy: dict[str, int]
) -> None:
    """Between the two it is nobody's, which must not look like more to do."""
    spread = spread_of(grouped("abc", busy), owners)
    given = plan(spread).give
    left = {shard: name for shard, name in spread.owned.items() if shard not in given}
    planned = plan(spread._replace(owned=left, free=sorted(given)))
    takers = {(spread.owned[shard], name) for shard, name in planned.take.items()}
    held = Counter(left.values())
    if given and all(held.values()) and held.keys() == set(owners):
        assert all(giver != taker for giver, taker in takers)


def test_when_the_only_owner_leaves_a_sibling_gets_its_first_shards_while_it_still_grants() -> None:
    servers = grouped("abc", {})
    going = [one._replace(is_leaving=one.name == "a") for one in servers]
    spread = spread_of(going, ["a"] * 64)
    assert is_awaited(spread, "a")
    first = plan(spread)
    (taker,) = set(first.give.values())
    assert taker in "bc"
    spread = done(spread, first)
    assert is_awaited(spread._replace(closed=first.give.keys()), "a"), "nobody grants from them yet"
    assert not is_awaited(spread, "a")
    assert plan(spread).give == {}, "it lets all others go at once"
    gone = Spread(
        servers[1:], dict(first.give), [s for s in map(ShardId, range(64)) if s not in first.give]
    )
    assert set(plan(gone).take.values()) == {taker}


def test_the_first_shards_are_spread_over_all_servers() -> None:
    """Tenants fill shards by their numbers: a few of them must not all be one server's."""
    spread = spread_of(there("a"), ["a"] * 64)
    for servers in ("ab", "abc", "abcd"):
        spread, _ = settle(spread._replace(servers=there(servers)))
        for tenants in (8, 16, 32):
            held = Counter(spread.owned[ShardId(shard)] for shard in range(1, tenants + 1))
            assert set(held) == set(servers)
            assert max(held.values()) <= -(-tenants // len(servers)) + 1
