"""Regions as values: names and numbers, whose word counts, and what an answer means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import COUNTER_MAX, RANDOM_BITS, REGION_BITS, JobId, ShardId, ids_from
from fairway.core.regions.hand_over import (
    HomeAnswer,
    home_answer,
    in_doubt_here,
    is_final_refusal,
    said_of,
)
from fairway.core.regions.homes import (
    ALONE_SECONDS,
    STALE_SECONDS,
    Acquaintance,
    DirectoryClaim,
    DirectoryTerm,
    Home,
    HomeTerm,
    Meant,
    leading,
    version_of,
    will_take_none,
)
from fairway.core.regions.region_map import (
    REGIONS_MAX,
    RegionMap,
    StoreSigns,
    parsed_regions,
    region_map,
    region_number_of,
    unfit_store,
    wrong_regions,
)
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import JobIdFactory

TWO = "eu=http://a:1,http://b:2/;us=https://c"
SECRET = "0123456789abcdef"
SECOND = 1_000_000


def test_a_list_of_regions_is_read_as_it_is_written() -> None:
    found = parsed_regions(TWO)
    assert found["eu"].urls == ("http://a:1", "http://b:2")
    assert [one.number for one in found.values()] == [1, 2]
    here = region_map("us", TWO)
    assert here is not None
    assert (here.first, here.others, here.number, here.named(1)) == ("eu", ["eu"], 2, "eu")
    assert region_map("", "") is None
    assert wrong_regions("", "", "") == []
    assert wrong_regions("eu", TWO, SECRET) == []


@pytest.mark.parametrize(
    ("here", "text", "secret"),
    [
        ("eu", "EU=http://a:1", SECRET),
        ("eu", "eu=a:1", SECRET),
        ("eu", "eu=", SECRET),
        ("eu", "eu=http://a;eu=http://b", SECRET),
        ("asia", TWO, SECRET),
        ("eu", TWO, "short"),
        ("eu", TWO, f"{SECRET}\n"),
        ("eu", TWO, "gleiches Geheimnis für alle"),
        ("", TWO, SECRET),
        ("r1", ";".join(f"r{n}=http://a:{n}" for n in range(1, REGIONS_MAX + 2)), SECRET),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(here: str, text: str, secret: str) -> None:
    (sentence,) = wrong_regions(here, text, secret)
    assert sentence.startswith("FAIRWAY_REGION")


@given(number=st.integers(1, REGIONS_MAX), count=st.integers(1, 50))
def test_an_id_says_where_its_job_was_accepted(number: int, count: int) -> None:
    ids = JobIdFactory(SystemClock(), number).make(ShardId(7), count)
    assert {region_number_of(one) for one in ids} == {number}
    assert ids_from(ids[0], count) == ids
    assert COUNTER_MAX > 0
    assert RANDOM_BITS > REGION_BITS


claims = st.builds(
    DirectoryClaim, st.integers(0, 5).map(DirectoryTerm), st.sampled_from(["eu", "us", "asia"])
)


@given(st.lists(claims, min_size=1))
def test_all_follow_the_same_directory_in_whatever_order_they_hear(
    heard: list[DirectoryClaim],
) -> None:
    assert leading(heard) == leading(heard[::-1])
    assert leading(heard).term == max(one.term for one in heard)


def test_what_a_cut_off_directory_said_loses() -> None:
    moved_by_the_lost_one = Home("eu", HomeTerm(9), DirectoryTerm(1))
    assert Home("us", HomeTerm(2), DirectoryTerm(2)).is_newer_than(moved_by_the_lost_one)
    assert not moved_by_the_lost_one.is_newer_than(moved_by_the_lost_one)


def test_nothing_is_dispatched_before_the_homes_are_known() -> None:
    one = Acquaintance()
    assert one.is_stale(0)
    assert not one.may_dispatch(0)
    one.looked(0, SECOND, is_told=False)
    assert not one.may_dispatch(SECOND)
    one.looked(SECOND, 2 * SECOND, is_told=True)
    assert one.may_dispatch(2 * SECOND)
    one.looked(3 * SECOND, 4 * SECOND, is_told=False)
    assert one.may_dispatch(4 * SECOND), "a peer that is away later stops nobody"


def test_who_was_stopped_and_resumed_asks_again() -> None:
    one = Acquaintance()
    one.looked(0, SECOND, is_told=True)
    resumed = SECOND + round((STALE_SECONDS + 1) * SECOND)
    assert not one.may_dispatch(resumed)
    one.looked(resumed, resumed + SECOND, is_told=False)
    assert not one.may_dispatch(resumed + SECOND), "what it was told before may be old"


def test_a_look_that_takes_long_and_moves_on_stops_nobody() -> None:
    one = Acquaintance()
    one.looked(0, SECOND, is_told=True)
    for at_us in range(2 * SECOND, 20 * SECOND, SECOND):
        one.goes_on(at_us)
        assert one.may_dispatch(at_us)
    one.looked(2 * SECOND, 20 * SECOND, is_told=True)
    assert one.may_dispatch(20 * SECOND)


def test_who_was_stopped_within_a_look_asks_again() -> None:
    one = Acquaintance()
    one.looked(0, SECOND, is_told=True)
    resumed = SECOND + round((STALE_SECONDS + 1) * SECOND)
    one.goes_on(resumed)
    assert not one.may_dispatch(resumed)
    one.looked(2 * SECOND, resumed, is_told=True)
    assert not one.may_dispatch(resumed), "the answers may have come before it was stopped"
    one.looked(resumed, resumed + SECOND, is_told=True)
    assert one.may_dispatch(resumed + SECOND)


def test_who_hears_nobody_for_long_goes_on_alone() -> None:
    one = Acquaintance()
    alone_us = round(ALONE_SECONDS * SECOND)
    for at_us in range(0, alone_us, SECOND):
        one.looked(at_us, at_us + 1, is_told=False)
        assert not one.may_dispatch(at_us + 1)
    one.looked(alone_us, alone_us + 1, is_told=False)
    assert one.may_dispatch(alone_us + 1)


def test_an_answer_is_a_yes_another_job_or_a_refusal() -> None:
    first, second = JobIdFactory(SystemClock()).make(ShardId(0), 2)
    other = JobId("0198c5a4-0000-7000-8000-000000000000")
    assert said_of(first, 2, None) is None
    assert said_of(first, 2, [[first, False], [second, True]]) is None
    assert said_of(first, 2, [[first, False], [other, True]]) == ["", other]
    refused = {"code": "NOT_UNIQUE", "detail": "another is there"}
    assert said_of(first, 2, [[first, False], refused]) == ["", refused]
    assert is_final_refusal(refused)
    assert not is_final_refusal({"code": "OVERLOADED"})
    assert not is_final_refusal({"code": "TENANT_RATE_LIMIT_EXCEEDED"})


def test_what_is_turned_away_for_now_is_sent_again() -> None:
    first, second = JobIdFactory(SystemClock()).make(ShardId(0), 2)
    made, for_good = [first, False], {"code": "NOT_UNIQUE"}
    away, not_known, no_pool = ({"code": code} for code in ("NOT_OWNER", "UNAVAILABLE", "NO_POOL"))
    assert home_answer(first, 2, None) == HomeAnswer()
    for said in (away, no_pool):  # a pool may be made there yet
        assert home_answer(first, 2, said) == HomeAnswer(waits=said)
    for said in (away, not_known):
        assert home_answer(first, 1, [said]) == HomeAnswer(waits=said), "the only job of a call"
        part = home_answer(first, 2, [made, said])
        assert part == HomeAnswer(waits=said, left={1: None}), "what was taken is not sent again"
    assert home_answer(first, 2, for_good) == HomeAnswer(told=for_good)
    assert home_answer(first, 2, [made, for_good]) == HomeAnswer(told=["", for_good])
    other = [second, True]
    assert home_answer(first, 3, [other, for_good, away]) == HomeAnswer(
        waits=away, left={0: second, 1: for_good, 2: None}
    )
    assert home_answer(first, 1, for_good, is_job=True) == HomeAnswer(waits=for_good)


@given(st.lists(st.sampled_from(["made", "other", "over", "later"]), min_size=1, max_size=8))
def test_every_job_of_a_call_is_there_or_remembered_or_sent_again(kinds: list[str]) -> None:
    ids = JobIdFactory(SystemClock()).make(ShardId(0), len(kinds))
    says: dict[str, Any] = {"over": {"code": "NOT_UNIQUE"}, "later": {"code": "NOT_OWNER"}}
    says["other"] = ["0198c5a4-0000-7000-8000-000000000000", True]
    answer = [says.get(kind, [id_, False]) for kind, id_ in zip(kinds, ids, strict=True)]
    found = home_answer(ids[0], len(kinds), answer)
    if found.waits and not found.left:
        assert {*kinds} == {"later"}
        return
    told = found.told or [""] * len(kinds)
    for place, kind in enumerate(kinds):
        said = found.left.get(place, told[place])
        assert (said is None) == (kind == "later")
        assert bool(said) == (kind in ("other", "over"))


def test_what_was_sent_by_an_older_word_than_is_known_is_not_meant() -> None:
    first = Home("us", HomeTerm(1), DirectoryTerm(1))
    back = Home("us", HomeTerm(3), DirectoryTerm(1))  # it was in another region between the two
    under_another = Home("us", HomeTerm(1), DirectoryTerm(2))
    for newer in (back, under_another):
        assert Meant("acme", first).is_outdated(newer)
        assert not Meant("acme", newer).is_outdated(first), "we shall hear of that"
        assert not Meant("acme", newer).is_outdated(newer)
    assert Meant("acme", None).is_outdated(first)
    assert not Meant("acme", None).is_outdated(None)
    assert not Meant("acme", first).is_outdated(None)


def test_a_store_that_no_server_of_the_region_may_serve() -> None:
    first, second = region_map("eu", TWO), region_map("us", TWO)
    assert "several shards" in _unfit(first, StoreSigns(None, has_parts=True, has_tenants=True))
    assert "is the region 'us'" in _unfit(first, StoreSigns("us"))
    assert "is the region 'eu': set FAIRWAY_REGION" in _unfit(None, StoreSigns("eu"))
    assert "Give 'us' a new database" in _unfit(second, StoreSigns(None, has_tenants=True))
    for here, signs in (
        (first, StoreSigns("eu", has_tenants=True)),
        (first, StoreSigns(None, has_tenants=True)),  # what others join
        (second, StoreSigns(None)),
        (second, StoreSigns("us", has_tenants=True)),
        (None, StoreSigns(None, has_parts=True, has_tenants=True)),
    ):
        assert unfit_store(here, signs) is None


def _unfit(here: RegionMap | None, signs: StoreSigns) -> str:
    why = unfit_store(here, signs)
    assert why is not None
    return why


@given(st.permutations(["asia", "eu"]))
def test_of_two_that_leave_a_job_to_each_other_one_keeps_it(names: list[str]) -> None:
    """Each holds it and has offered it to the other, wherever the home is by now."""
    one, two = names
    drops = [in_doubt_here(here, asker) is None for here, asker in ((one, two), (two, one))]
    assert sorted(drops) == [False, True]
    assert in_doubt_here(one, one) == one, "held is not arrived"


HOMES = st.builds(
    Home,
    st.sampled_from(["eu", "us"]),
    st.integers(1, 3).map(HomeTerm),
    st.integers(1, 3).map(DirectoryTerm),
)


@given(HOMES | st.none(), st.lists(HOMES | st.none(), min_size=1))
def test_who_says_that_it_takes_none_takes_none_ever_after(
    sent_by: Home | None, heard: list[Home | None]
) -> None:
    """`heard` in turn, by the region `us`, which keeps the newest. (One version is one home.)"""
    sent, known, has_said = Meant("acme", sent_by), None, False
    by_version = {version_of(one): one for one in (sent_by, *heard)}
    for home in heard:
        if version_of(home) >= version_of(known):
            known = by_version[version_of(home)]
        is_home = known is not None and known.region == "us"
        takes = is_home and not sent.is_outdated(known)
        assert not (has_said and takes)
        has_said |= will_take_none(version_of(sent_by), version_of(known), is_home=is_home)
        assert not (has_said and takes)
