"""The doctor's judgement: nothing wrong is nothing said, the worst stands first, all has a help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.diagnosis import DeadGroup, Pain, PoolLoad, Signs, ailments

words = st.text("abc", min_size=1, max_size=5)
some = st.lists(words, max_size=3).map(tuple)
counts = st.integers(0, 1000)

signs = st.builds(
    Signs,
    is_answering=st.booleans(),
    failing_checks=st.lists(st.sampled_from(["database", "shards_open", "new"])).map(tuple),
    gone_servers=st.dictionaries(words, st.floats(0, 1e4)),
    owners=some,
    unowned_shards=counts,
    pools=st.dictionaries(words, st.builds(PoolLoad, counts, counts, counts, st.floats(0, 1e6))),
    workers=st.none() | counts,
    silent_workers=some,
    draining_workers=some,
    waiting=st.dictionaries(
        words, st.tuples(counts, st.sampled_from(["no_worker", "slot", "labels", "paused"]))
    ),
    pauses=some,
    capped=some,
    suspended=some,
    moving=st.lists(st.tuples(words, words)).map(tuple),
    usage_aside=counts,
    regions_away=some,
    region_troubles=st.dictionaries(words, words),
    held_jobs=counts,
    held_in_doubt=counts,
    circuits=st.lists(st.tuples(words, words)).map(tuple),
    quarantines=some,
    restraints=st.dictionaries(words, counts),
    dead=st.lists(
        st.builds(DeadGroup, words, st.integers(1, 9), words, words, st.floats(0, 1e6))
    ).map(tuple),
    depth=st.none() | st.tuples(counts, st.integers(1, 1000)),
    disk=st.none() | st.tuples(st.integers(0, 1 << 40), st.integers(1, 1 << 41)),
)


@given(signs)
def test_the_worst_stands_first_and_everything_has_a_help(seen: Signs) -> None:
    found = ailments(seen)
    assert [one.pain for one in found] == sorted(one.pain for one in found)
    assert all(one.what and one.helps for one in found)
    if not seen.is_answering:
        assert [one.pain for one in found] == [Pain.DOWN]


def test_of_a_platform_that_is_well_nothing_is_said() -> None:
    load = PoolLoad(queued=5, running=50, slots=50, oldest_seconds=0.2)
    assert ailments(Signs(workers=1, pools={"short": load}, depth=(5, 100))) == []


IDLE = PoolLoad(0, 0, 0, 0.0)
BEHIND = PoolLoad(7, 0, 0, 90.0)


@pytest.mark.parametrize(
    ("seen", "pain", "part"),
    [
        (Signs(failing_checks=("database",)), Pain.DOWN, "database does not answer"),
        (Signs(workers=0, pools={"short": BEHIND}), Pain.DOWN, "no worker, with 7 jobs"),
        (Signs(workers=0, pools={"short": IDLE}), Pain.NOTE, "There is no worker."),
        (Signs(workers=1, pools={"gpu": BEHIND}), Pain.STUCK, "no worker serves it"),
        (Signs(waiting={"a.b": (1, "no_worker")}), Pain.STUCK, "1 job of a.b waiting: no live"),
        (Signs(circuits=(("a.b", "smtp"),)), Pain.STUCK, "smtp is away"),
        (Signs(quarantines=("a.b",)), Pain.FAILING, "quarantine"),
        (Signs(restraints={"circuits": 2}), Pain.FAILING, "2 circuits"),
        (Signs(disk=(1 << 20, 1 << 40)), Pain.DOWN, "1 MB left"),
        (Signs(depth=(95, 100)), Pain.STUCK, "429"),
        (Signs(capped=("acme",)), Pain.STUCK, "no more jobs start: acme."),
        (Signs(suspended=("acme", *"abcdef")), Pain.NOTE, "acme, a, b, c, d and 2 more."),
        (Signs(moving=(("acme", "1 runs."),)), Pain.STUCK, "acme stands still: it is being moved"),
        (
            Signs(gone_servers={"a": 20.0}, owners=("b",)),
            Pain.NOTE,
            "Server a stopped answering 20 s ago without having left; its shards are with b.",
        ),
        (Signs(gone_servers={"a": 9.0}, owners=("b", "c")), Pain.NOTE, "; others took its shards."),
        (
            Signs(gone_servers={"a": 1.0}, owners=("b",), unowned_shards=3),
            Pain.STUCK,
            "without having left; 3 shards have no owner now.",
        ),
        (
            Signs(gone_servers={"a": 300.0, "d": 20.0}, owners=("b",)),
            Pain.NOTE,
            "Servers d, a stopped answering, the last 20 s ago, without having left; their shards"
            " are with b.",
        ),
        (Signs(failing_checks=("shards_open",)), Pain.DOWN, "No server gives out the jobs"),
        (Signs(regions_away=("eu",)), Pain.STUCK, "No server of the region answers: eu."),
        (
            Signs(regions_away=("eu",), region_troubles={"eu": "runs, and refuses us"}),
            Pain.STUCK,
            "The region eu runs, and refuses us.",
        ),
        (Signs(region_troubles={"eu": "does not name ap"}), Pain.NOTE, "eu does not name ap."),
        (
            Signs(regions_away=("eu",), held_jobs=2),
            Pain.STUCK,
            "answers: eu. 2 jobs for tenants of other regions are held here.",
        ),
        (Signs(held_jobs=1), Pain.SLOW, "1 job held here for other regions"),
        (Signs(held_in_doubt=1), Pain.STUCK, "1 job in doubt"),
        (Signs(usage_aside=2), Pain.NOTE, "2 rows of usage could not be booked"),
        (Signs(clock_skew_seconds=-3), Pain.SLOW, "clocks"),
        (Signs(dead=(DeadGroup("a", 1, "f", "E", 60.0),)), Pain.FAILING, "1 dead letter of a"),
        (Signs(dead=(DeadGroup("a", 2, "f", "E", 9e4),)), Pain.NOTE, "2 dead letters of a"),
    ],
)
def test_what_hurts_how_much(seen: Signs, pain: Pain, part: str) -> None:
    (one,) = ailments(seen)
    assert (one.pain, part in one.what) == (pain, True), one


def test_of_servers_that_are_there_nothing_is_said() -> None:
    assert ailments(Signs(owners=("a", "b"), unowned_shards=0)) == []


def test_a_type_that_only_waits_its_turn_is_well() -> None:
    assert ailments(Signs(waiting={"a": (100, "slot"), "b": (1, "fair_share")})) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "400 ms ago"),
        (119, "119 s ago"),
        (120, "2 min ago"),
        (9e3, "2 h ago"),
        (9e5, "10 d ago"),
    ],
)
def test_how_long_ago_is_told_in_a_unit_that_fits(seconds: float, words: str) -> None:
    (one,) = ailments(Signs(dead=(DeadGroup("a", 1, "f", "E", seconds),)))
    assert f"the last {words}" in one.what
