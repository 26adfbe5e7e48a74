"""Alarms: raised once, when it has held; cleared, when it has been over; in between, silence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.insight import alarm_readings as of
from fairway.core.insight.alarm_readings import (
    TYPES_NAMED_MAX,
    AlarmFacts,
    DiskRoom,
    OtherRegion,
    PoolAtMaximum,
    PoolWait,
    TenantDeaths,
    TenantPace,
    TypeParked,
    WebhookOff,
    circuits,
)
from fairway.core.insight.alarms import (
    ALARMS,
    FLAP_CLEAR_SECONDS,
    FLAP_SECONDS,
    FLAPS,
    LOOKS_APART_SECONDS_MAX,
    SUBJECTS_MAX,
    Alarm,
    Watch,
    judge,
    worth_telling,
)

BY_NAME = {alarm.name: alarm for alarm in ALARMS}
UNKNOWN = AlarmFacts()
START_MS = 1_800_000_000_000


def of_pool(
    age_seconds: float | None = 0.0, *, queued: int = 0, slots: int = 8, name: str = "short"
) -> AlarmFacts:
    return AlarmFacts(pools=(PoolWait(name, queued, slots, age_seconds, 0.5),))


def of_tenant(jobs: float, usual: float = 200.0) -> AlarmFacts:
    return AlarmFacts(tenants=(TenantPace("acme", jobs, usual),))


def unserved(jobs: int, slots: int = 8) -> AlarmFacts:
    wait = PoolWait("short", 5, slots, 0.0, 0.5, jobs, ("a.b of acme",))
    return AlarmFacts(pools=(wait,))


def parked(*types_of: int) -> AlarmFacts:
    """Tenants with so many types whose circuits are open, as the store tells of them."""
    found = [
        TypeParked(f"t{tenant}", f"a.{place}", "mail", 1, types, place)
        for tenant, types in enumerate(types_of)
        for place in range(1, min(types, TYPES_NAMED_MAX) + 1)
    ]
    return AlarmFacts(parked=tuple(found))


#: Alarm → facts with the least that is too much, and with the most that is not.
EDGES: dict[str, tuple[AlarmFacts, AlarmFacts]] = {
    "OLDEST_AGE_OVER_SLO": (of_pool(0.51), of_pool(0.5)),
    "OLDEST_AGE_FAR_OVER_SLO": (of_pool(5.1), of_pool(5.0)),
    "PROMOTER_LAG": (
        AlarmFacts(promoter_lag_seconds=30.1),
        AlarmFacts(promoter_lag_seconds=30.0),
    ),
    "DEAD_LETTER_RATE": (
        AlarmFacts(dead_per_second=0.11, ended_per_second=2.0),
        AlarmFacts(dead_per_second=0.1, ended_per_second=2.0),
    ),
    "CIRCUIT_OPEN": (parked(1), AlarmFacts(parked=())),
    "ALARM_WEBHOOK_OFF": (
        AlarmFacts(webhooks_off=(WebhookOff("1", "https://a/…", "It is gone."),)),
        AlarmFacts(webhooks_off=()),
    ),
    "SHARD_WITHOUT_OWNER": (
        AlarmFacts(shards_owned=15, shards_total=16),
        AlarmFacts(shards_owned=16, shards_total=16),
    ),
    "REGION_AWAY": (
        AlarmFacts(regions=(OtherRegion("eu", answers=False, held_here=7),)),
        AlarmFacts(regions=(OtherRegion("eu", answers=True, held_here=0),)),
    ),
    "WORKERS_LOST": (AlarmFacts(leases_lost=1), AlarmFacts(leases_lost=0)),
    "POOL_WITHOUT_WORKERS": (of_pool(queued=1, slots=0), of_pool(queued=9, slots=1)),
    "NO_WORKER_FOR_TYPE": (unserved(1), unserved(0)),
    "AUTOSCALE_AT_MAXIMUM": (
        AlarmFacts(at_maximum=(PoolAtMaximum("short", 1, 4),)),
        AlarmFacts(at_maximum=(PoolAtMaximum("short", 0, 4),)),
    ),
    "TENANT_OVER_BASELINE": (of_tenant(2001), of_tenant(2000)),
    "DISK_LOW": (AlarmFacts(disk=DiskRoom(14, 100)), AlarmFacts(disk=DiskRoom(16, 100))),
    "DISK_NEARLY_FULL": (AlarmFacts(disk=DiskRoom(4, 100)), AlarmFacts(disk=DiskRoom(6, 100))),
}

every_alarm = pytest.mark.parametrize("alarm", ALARMS, ids=lambda alarm: alarm.name)


class Seen:
    """A watch over one alarm, looked at step by step; what it said, with the seconds."""

    def __init__(self, alarm: Alarm) -> None:
        self.alarm, self.watch, self.now_seconds = alarm, Watch(), 0.0
        self.over, self.within = EDGES[alarm.name]
        self.said: list[tuple[str, float]] = []

    def look(self, facts: AlarmFacts, step_seconds: float = 5.0) -> None:
        self.now_seconds += step_seconds
        news = judge(self.watch, facts, START_MS + round(self.now_seconds * 1000))
        self.watch = news.watch
        for word, changes in (("raised", news.raised), ("cleared", news.cleared)):
            if any(one.alarm is self.alarm for one in changes):
                self.said.append((word, self.now_seconds))

    def look_for(self, facts: AlarmFacts, seconds: float) -> None:
        ends = self.now_seconds + seconds
        while self.now_seconds < ends:
            self.look(facts)

    @property
    def is_raised(self) -> bool:
        return any(one.alarm is self.alarm for one in self.watch.raised())


@every_alarm
def test_an_alarm_is_raised_when_it_has_held_and_no_sooner(alarm: Alarm) -> None:
    seen = Seen(alarm)
    seen.look_for(seen.within, 30)
    seen.look(seen.over)
    began = seen.now_seconds
    seen.look_for(seen.over, alarm.hold_seconds + 60)
    assert [word for word, _ in seen.said] == ["raised"], "once, however long it lasts"
    waited = seen.said[0][1] - began
    assert alarm.hold_seconds <= waited < alarm.hold_seconds + 5
    (found,) = [one for one in seen.watch.raised() if one.alarm is alarm]
    assert found.since_ms == START_MS + began * 1000, "since there was trouble"
    assert found.reading.value > found.threshold
    assert found.reading.text


@every_alarm
def test_an_alarm_is_cleared_when_it_has_been_over_and_no_sooner(alarm: Alarm) -> None:
    seen = Seen(alarm)
    seen.look_for(seen.over, alarm.hold_seconds + 10)
    seen.look(seen.within)
    began = seen.now_seconds
    assert seen.is_raised
    seen.look_for(seen.within, alarm.clear_seconds + 60)
    assert [word for word, _ in seen.said] == ["raised", "cleared"]
    assert alarm.clear_seconds <= seen.said[1][1] - began < alarm.clear_seconds + 5
    for _ in range(round(FLAP_SECONDS / 25)):
        seen.look(seen.within, 25.0)
    assert alarm.name not in {name for name, _ in seen.watch.standings}, "all is forgotten"


@every_alarm
def test_a_value_that_swings_about_its_threshold_makes_one_alarm(alarm: Alarm) -> None:
    seen = Seen(alarm)
    seen.look_for(seen.over, alarm.hold_seconds + 10)
    (before,) = [one for one in seen.watch.raised() if one.alarm is alarm]
    for _ in range(50):
        seen.look(seen.within)
        seen.look(seen.over)
    (after,) = [one for one in seen.watch.raised() if one.alarm is alarm]
    assert [word for word, _ in seen.said] == ["raised"]
    assert after.since_ms == before.since_ms


@every_alarm
def test_what_cannot_be_seen_raises_nothing_and_ends_nothing(alarm: Alarm) -> None:
    seen = Seen(alarm)
    seen.look_for(UNKNOWN, alarm.hold_seconds + 60)
    assert seen.said == []
    seen.look_for(seen.over, alarm.hold_seconds + 10)
    seen.look_for(UNKNOWN, alarm.clear_seconds + 60)
    assert seen.is_raised


looks = st.lists(
    st.tuples(st.sampled_from(["over", "within", "unknown"]), st.floats(0.1, 45)), max_size=60
)


@tried(200)
@given(st.sampled_from(ALARMS), looks)
def test_nothing_flaps_whatever_happens(alarm: Alarm, steps: list[tuple[str, float]]) -> None:
    """Raised and cleared take turns, and never follow each other faster than was promised."""
    seen = Seen(alarm)
    facts = {"over": seen.over, "within": seen.within, "unknown": UNKNOWN}
    blind_seconds = 0.0
    for word, step_seconds in steps:
        before = len(seen.said)
        seen.look(facts[word], step_seconds)
        blind_seconds += step_seconds
        if len(seen.said) > before:  # said for what is seen, and only with eyes open until then
            said = seen.said[-1][0]
            assert word == ("over" if said == "raised" else "within")
            patience = alarm.hold_seconds if said == "raised" else alarm.clear_seconds
            assert blind_seconds < LOOKS_APART_SECONDS_MAX + 0.01 or not patience
        if word != "unknown":
            blind_seconds = 0.0
    words = [word for word, _ in seen.said]
    assert words == (["raised", "cleared"] * len(words))[: len(words)]
    for (_, earlier), (word, later) in zip(seen.said, seen.said[1:], strict=False):
        least = alarm.hold_seconds if word == "raised" else alarm.clear_seconds
        assert later - earlier >= least - 0.002  # by milliseconds


@tried(50)
@given(st.sampled_from(ALARMS), looks)
def test_whatever_was_before_trouble_is_told_and_its_end_too(
    alarm: Alarm, steps: list[tuple[str, float]]
) -> None:
    seen = Seen(alarm)
    facts = {"over": seen.over, "within": seen.within, "unknown": UNKNOWN}
    for word, step_seconds in steps:
        seen.look(facts[word], step_seconds)
    seen.look_for(seen.over, alarm.hold_seconds + 10)
    assert seen.is_raised
    for _ in range(round(max(alarm.clear_seconds, FLAP_CLEAR_SECONDS) / 25) + 2):
        seen.look(seen.within, 25.0)
    assert not seen.is_raised


swings = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 14)), min_size=5, max_size=30
)  # looks over, and within


@tried(50)
@given(st.sampled_from(ALARMS), swings)
def test_what_comes_and_goes_calls_nobody_at_every_swing(
    alarm: Alarm, steps: list[tuple[int, int]]
) -> None:
    seen = Seen(alarm)
    for over, within in steps:
        for facts in [seen.over] * over + [seen.within] * within:
            seen.look(facts, 25.0)
    raised = [when for word, when in seen.said if word == "raised"]
    most = FLAPS + FLAP_SECONDS / FLAP_CLEAR_SECONDS
    for when in raised:
        within_an_hour = [one for one in raised if when <= one < when + FLAP_SECONDS]
        assert len(within_an_hour) <= most, "whatever it does"
    texts = [one.text for one in seen.watch.raised() if one.alarm is alarm]
    assert all(("comes and goes" in text) <= (len(raised) >= FLAPS) for text in texts)


@every_alarm
def test_what_was_raised_before_this_began_to_look_goes_on(alarm: Alarm) -> None:
    before = Seen(alarm)
    before.look_for(before.over, alarm.hold_seconds + 10)
    (known,) = [one for one in before.watch.raised() if one.alarm is alarm]
    seen = Seen(alarm)
    seen.now_seconds = before.now_seconds
    seen.watch = seen.watch.adopting([known], START_MS + round(seen.now_seconds * 1000))
    seen.look_for(seen.over, 60)
    (found,) = [one for one in seen.watch.raised() if one.alarm is alarm]
    assert (found.since_ms, seen.said) == (known.since_ms, []), "it is told of no second time"
    assert seen.watch.adopting([known], 0).standings == seen.watch.standings
    seen.look_for(seen.within, alarm.clear_seconds + 60)
    assert [word for word, _ in seen.said] == ["cleared"]


def test_a_graver_alarm_about_the_same_speaks_for_both() -> None:
    seen = Seen(BY_NAME["OLDEST_AGE_OVER_SLO"])
    one, other = of_pool(6.0).pools or (), of_pool(0.6, name="long").pools or ()
    seen.look_for(AlarmFacts(pools=(*one, *other)), 150)
    raised = seen.watch.raised()
    assert len(raised) == 3
    assert [one.key for one in worth_telling(raised)] == [
        ("OLDEST_AGE_FAR_OVER_SLO", "pool short"),
        ("OLDEST_AGE_OVER_SLO", "pool long"),
    ]
    assert {one.covers for one in ALARMS} - {""} <= BY_NAME.keys()


counts = st.tuples(st.integers(0, 100), st.integers(0, 1000)).map(lambda n: (n[0], n[0] + n[1]))


@given(st.lists(counts, min_size=1, max_size=5))
def test_one_tenant_alone_is_no_trouble_of_the_platforms(tenants: list[tuple[int, int]]) -> None:
    dead, ended = (sum(one[place] for one in tenants) for place in (0, 1))
    worst = max(tenants)
    facts = AlarmFacts(
        dead_per_second=dead / 300,
        ended_per_second=ended / 300,
        recently_dead=dead,
        recently_ended=ended,
        worst_of_dead=TenantDeaths("acme", *worst, "mail.send") if worst[0] else None,
    )
    readings = of.dead_letters(facts)
    assert readings is not None
    over = {subject for subject, one in readings.items() if one and one.value > of.DEAD_SHARE_MAX}
    is_much = (
        ended > 0 and dead / ended > of.DEAD_SHARE_MAX and dead / 300 >= of.DEAD_PER_SECOND_MIN
    )
    rest_dead, rest_ended = dead - worst[0], ended - worst[1]
    is_others = rest_ended > 0 and rest_dead / rest_ended > of.DEAD_SHARE_MAX
    assert over == (({"platform"} if is_others else {"tenant acme"}) if is_much else set())
    for subject in over:
        reading = readings[subject]
        assert reading is not None
        assert "acme's, of the type mail.send" in reading.text
        assert ("without those there would be no alarm" in reading.text) == (not is_others)


def test_a_pool_without_workers_is_not_told_of_twice() -> None:
    seen = Seen(BY_NAME["NO_WORKER_FOR_TYPE"])
    seen.look_for(unserved(5, slots=0), 400)
    assert [one.alarm.name for one in seen.watch.raised()] == ["POOL_WITHOUT_WORKERS"]
    seen.look_for(unserved(5), 400)
    (found,) = seen.watch.raised()
    assert found.subject == "type a.b of acme"
    assert found.text == ("Jobs of the type a.b of acme wait in the pool short: no worker runs it.")


def test_a_second_type_without_a_worker_is_told_of() -> None:
    seen = Seen(BY_NAME["NO_WORKER_FOR_TYPE"])
    seen.look_for(unserved(5), 400)
    wait = PoolWait("short", 5, 8, 0.0, 0.5, 5, ("a.b of acme", "c.d of acme"))
    seen.look_for(AlarmFacts(pools=(wait,)), 400)
    subjects = [one.subject for one in seen.watch.raised()]
    assert subjects == ["type a.b of acme", "type c.d of acme"]
    assert [word for word, _ in seen.said] == ["raised"] * 2
    nameless = wait._replace(types_without_worker=())
    seen.look_for(AlarmFacts(pools=(nameless,)), 400)
    assert [one.subject for one in seen.watch.raised()] == ["pool short"]


@given(st.lists(st.integers(1, 9), max_size=6))
def test_every_tenant_with_open_circuits_is_told_of_and_none_fills_the_page(
    types_of: list[int],
) -> None:
    readings = circuits(parked(*types_of))
    assert readings is not None
    for tenant, types in enumerate(types_of):
        mine = [subject for subject in readings if subject.endswith(f" t{tenant}")]
        assert len(mine) == min(types, TYPES_NAMED_MAX + 1)
        assert len(set(mine)) == len(mine)


@every_alarm
@pytest.mark.parametrize("jump_seconds", [-3600.0, 3600.0])
def test_a_clock_that_jumps_or_a_watch_that_slept_proves_nothing(
    alarm: Alarm, jump_seconds: float
) -> None:
    seen = Seen(alarm)
    if alarm.hold_seconds:
        seen.look_for(seen.over, 10)
        seen.look(seen.over, jump_seconds)
        assert not seen.is_raised
    seen.look_for(seen.over, alarm.hold_seconds + 10)
    seen.look(seen.within)
    seen.look(seen.within, jump_seconds)
    assert seen.is_raised
    seen.look_for(seen.within, alarm.clear_seconds + 10)
    assert not seen.is_raised


def test_a_pool_that_is_gone_has_no_trouble_and_one_unseen_keeps_its() -> None:
    seen = Seen(BY_NAME["OLDEST_AGE_OVER_SLO"])
    seen.look_for(seen.over, 90)
    seen.look_for(of_pool(None), 90)
    assert seen.is_raised
    seen.look_for(AlarmFacts(pools=()), 90)
    assert not seen.is_raised


def test_a_bad_day_is_bounded_and_those_that_are_told_stay() -> None:
    seen = Seen(BY_NAME["POOL_WITHOUT_WORKERS"])
    many = [PoolWait(f"p{number}", number + 1, 0, 0.0, 1.0) for number in range(150)]
    seen.look_for(AlarmFacts(pools=tuple(many)), 90)
    told = {one.subject for one in seen.watch.raised()}
    assert len(told) == SUBJECTS_MAX
    assert "pool p149" in told, "the worst are told"
    others = [one._replace(queued=1000 - one.queued) for one in many]
    seen.look_for(AlarmFacts(pools=tuple(others)), 90)
    assert {one.subject for one in seen.watch.raised()} == told
    assert len(seen.watch.standings) == SUBJECTS_MAX


def test_the_worst_stands_first_and_of_those_the_oldest() -> None:
    seen = Seen(BY_NAME["CIRCUIT_OPEN"])
    seen.look_for(parked(1), 70)
    seen.look_for(replace(parked(1), shards_owned=0, shards_total=1), 70)
    names = [one.alarm.name for one in seen.watch.raised()]
    assert names == ["SHARD_WITHOUT_OWNER", "CIRCUIT_OPEN"]


def test_small_numbers_are_no_alarm() -> None:
    few = AlarmFacts(dead_per_second=0.01, ended_per_second=0.01)
    newcomer = of_tenant(900, usual=0)
    for facts in (few, newcomer, of_pool(queued=0, slots=0)):
        seen = Seen(ALARMS[0])
        seen.look_for(facts, 700)
        assert seen.watch.standings == {}


@every_alarm
def test_an_alarm_says_what_it_means_and_what_helps(alarm: Alarm) -> None:
    assert alarm.means.endswith(".")
    assert alarm.runbook.endswith(".")
    assert "\n" not in alarm.runbook
    assert alarm.link.startswith("/ui/")
    assert alarm.hold_seconds >= 0 < alarm.clear_seconds
    assert alarm.name in EDGES
