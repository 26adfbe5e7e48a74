"""Alarms as data: what is looked at, from where on it is too much, for how long, and what helps.

`judge` is a pure function of what was known, what is seen and when. It has patience in both
directions: a threshold must be crossed for `hold_seconds` on end before an alarm is raised, and be
kept for `clear_seconds` on end before it is over, so a value that swings about its threshold makes
one alarm and not a hundred. One that was raised several times within an hour comes and goes: it
stays until all has been well for longer, so nobody is called for every swing. What cannot be seen
is None: it raises nothing, ends nothing, and proves nothing about the time between.

What each alarm looks at in the facts: `alarm_readings.py`; the same for Prometheus:
`prometheus_rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from fairway.core.insight import alarm_readings as of
from fairway.core.insight.alarm_readings import AlarmFacts, AlarmReading, Read, Readings

Severity = Literal["warning", "critical"]

TENANT_TIMES = 10.0  # its usual hour
SUBJECTS_MAX = 100  # of one alarm at a time: a bad day must not fill memory and pages
LOOKS_APART_SECONDS_MAX = 30.0  # what was between two looks further apart than this is not known
FLAPS = 3  # raised so often
FLAP_SECONDS = 3600.0  # within so long, an alarm comes and goes,
FLAP_CLEAR_SECONDS = 900.0  # and is over when it has been well for so long


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One thing that people are told of. Raised above `threshold`, in units of its reading."""

    name: str
    severity: Severity
    threshold: float
    hold_seconds: float
    clear_seconds: float
    read: Read
    means: str
    runbook: str  # one line: what to look at first, and what helps
    link: str  # the page of the dashboard that shows it
    covers: str = ""  # a lesser alarm about the same: where this one is shown, that one is not


ALARMS = (
    Alarm(
        name="OLDEST_AGE_OVER_SLO",
        severity="warning",
        threshold=1.0,
        hold_seconds=60,
        clear_seconds=60,
        read=of.oldest_age,
        means="Jobs that could run wait longer than their pool promises.",
        runbook="`fairway top`: slots all in use, start workers for the pool; slots free, look"
        " for limits with `fairway jobs why ID`.",
        link="/ui/pools",
    ),
    Alarm(
        name="OLDEST_AGE_FAR_OVER_SLO",
        severity="critical",
        threshold=10.0,
        hold_seconds=120,
        clear_seconds=60,
        read=of.oldest_age,
        means="Jobs that could run wait ten times as long as their pool promises.",
        runbook="`fairway doctor`; start workers for the pool, or hold back who floods it with"
        " `fairway pause tenant=NAME`.",
        link="/ui/pools",
        covers="OLDEST_AGE_OVER_SLO",
    ),
    Alarm(
        name="PROMOTER_LAG",
        severity="warning",
        threshold=30.0,
        hold_seconds=60,
        clear_seconds=60,
        read=of.promoter_lag,
        means="Scheduled jobs are due and have not been queued.",
        runbook="A herd due at one second drains by itself, watch it shrink; else look for"
        " `loop failed` and slow statements in the server's log.",
        link="/ui/schedules",
    ),
    Alarm(
        name="DEAD_LETTER_RATE",
        severity="warning",
        threshold=of.DEAD_SHARE_MAX,
        hold_seconds=60,
        clear_seconds=300,
        read=of.dead_letters,
        means="Too many of the jobs that end are dead.",
        runbook="About one tenant: tell it. About the platform: `fairway dead groups --tenant NAME`"
        " names the causes; mend the first, then `fairway dead replay --all --tenant NAME`.",
        link="/ui/failures",
    ),
    Alarm(
        name="CIRCUIT_OPEN",
        severity="warning",
        threshold=0.0,
        hold_seconds=60,
        clear_seconds=60,
        read=of.circuits,
        means="A dependency is away, and the jobs that need it are parked.",
        runbook="`fairway restraints` names it: bring it back; probes find out by themselves,"
        " and parked jobs use no attempts.",
        link="/ui/restraints",
    ),
    Alarm(
        name="SHARD_WITHOUT_OWNER",
        severity="critical",
        threshold=0.0,
        hold_seconds=30,
        clear_seconds=15,
        read=of.shards,
        means="No server gives out the jobs of some shards.",
        runbook="`fairway check` on each server: start one, or mend its way to the database;"
        " another takes over within a term.",
        link="/ui/",
    ),
    Alarm(
        name="REGION_AWAY",
        severity="critical",
        threshold=0.0,
        hold_seconds=15,
        clear_seconds=15,
        read=of.regions,
        means="Another region gives no answer here: jobs for its tenants are held.",
        runbook="`fairway region ls` says whether it runs and refuses our secret; bring it back,"
        " or its network. If it is lost: `fairway region failover NAME --to HERE`.",
        link="/ui/fleet",
    ),
    Alarm(
        name="WORKERS_LOST",
        severity="warning",
        threshold=0.0,
        hold_seconds=0,
        clear_seconds=60,
        read=of.leases_lost,
        means="Workers died or fell silent with jobs in hand.",
        runbook="`fairway worker ls`; look for memory (`dmesg`) and the network on their"
        " machines. Their jobs run again by themselves.",
        link="/ui/workers",
    ),
    Alarm(
        name="POOL_WITHOUT_WORKERS",
        severity="critical",
        threshold=0.0,
        hold_seconds=60,
        clear_seconds=30,
        read=of.unserved,
        means="Jobs wait in a pool that no worker serves.",
        runbook="Start one: `fairway worker module:app --pool NAME`.",
        link="/ui/workers",
    ),
    Alarm(
        name="NO_WORKER_FOR_TYPE",
        severity="warning",
        threshold=0.0,
        hold_seconds=300,
        clear_seconds=60,
        read=of.without_worker,
        means="Jobs wait whose type no worker runs.",
        runbook="A type of your own: deploy it, `fairway worker ls` shows what runs. Else its"
        " tenant misspelt it or its worker is away: tell it; `fairway top` counts them.",
        link="/ui/jobs?state=queued",
    ),
    Alarm(
        name="AUTOSCALE_AT_MAXIMUM",
        severity="warning",
        threshold=0.0,
        hold_seconds=60,
        clear_seconds=60,
        read=of.autoscale,
        means="A pool has as many workers as it may have, and needs more.",
        runbook="`fairway autoscale decisions` says why; allow more with `fairway autoscale set"
        " POOL maximum_workers=N`, or hold back who floods it. Nothing is spilt into other pools.",
        link="/ui/fleet",
    ),
    Alarm(
        name="ALARM_WEBHOOK_OFF",
        severity="warning",
        threshold=0.0,
        hold_seconds=0,
        clear_seconds=15,
        read=of.webhooks,
        means="Alarms are sent to one receiver no more: it failed for days, or said to stop.",
        runbook="`fairway alarms webhooks ls` says why; mend the receiver, then `fairway alarms"
        " webhooks enable ID`, or delete it.",
        link="/ui/alarms",
    ),
    Alarm(
        name="TENANT_OVER_BASELINE",
        severity="warning",
        threshold=TENANT_TIMES,
        hold_seconds=300,
        clear_seconds=600,
        read=of.tenants,
        means="A tenant hands in ten times as many jobs as in its usual hour.",
        runbook="Others keep their shares. Ask the tenant; bound it with"
        " `fairway tenants set NAME rate_per_second=50`, or pause it.",
        link="/ui/tenants",
    ),
    Alarm(
        name="DISK_LOW",
        severity="warning",
        threshold=0.85,
        hold_seconds=60,
        clear_seconds=300,
        read=of.disk,
        means="The disk of the data folder fills up.",
        runbook="`df -h`; make it larger, or keep less: `FAIRWAY_RETENTION_DAYS`.",
        link="/ui/",
    ),
    Alarm(
        name="DISK_NEARLY_FULL",
        severity="critical",
        threshold=0.95,
        hold_seconds=15,
        clear_seconds=300,
        read=of.disk,
        means="The disk of the data folder is nearly full: soon no job can be accepted.",
        runbook="Free room at once (old logs, other programs), then make the disk larger.",
        link="/ui/",
        covers="DISK_LOW",
    ),
)

Key = tuple[str, str]  # the alarm's name, and whom it is about


class Standing(NamedTuple):
    """How it stands with one alarm about one subject."""

    is_over: bool  # beyond its threshold when last seen
    turned_ms: int  # since when that has been so without a break
    seen_ms: int  # when that was last known
    reading: AlarmReading  # the last that was over
    raised_ms: int | None = None  # since when there was trouble, once it is raised
    raises: tuple[int, ...] = ()  # when it was raised of late


class Raised(NamedTuple):
    alarm: Alarm
    subject: str
    since_ms: int
    reading: AlarmReading
    comes_and_goes: bool = False

    @property
    def key(self) -> Key:
        return self.alarm.name, self.subject

    @property
    def threshold(self) -> float:
        return self.alarm.threshold * self.reading.scale

    @property
    def text(self) -> str:
        """What was seen, for people."""
        if not self.comes_and_goes:
            return self.reading.text
        minutes = FLAP_CLEAR_SECONDS / 60
        return f"{self.reading.text} It comes and goes: over after {minutes:.0f} min without it."


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered between two looks."""

    standings: Mapping[Key, Standing] = field(default_factory=lambda: MappingProxyType({}))

    def raised(self) -> list[Raised]:
        """What people should know now, the worst first and of those the oldest."""
        found = [
            Raised(alarm, subject, one.raised_ms, one.reading, len(one.raises) >= FLAPS)
            for alarm in ALARMS
            for (name, subject), one in self.standings.items()
            if name == alarm.name and one.raised_ms is not None
        ]
        return sorted(found, key=lambda one: (one.alarm.severity != "critical", one.since_ms))

    def adopting(self, known: Iterable[Raised], now_ms: int) -> Watch:
        """With what was raised before this began to look: it is over when that is seen."""
        mine = dict(self.standings)
        for one in known:
            was = mine.get(one.key)
            if was is None or was.raised_ms is None:
                mine[one.key] = Standing(True, now_ms, now_ms, one.reading, one.since_ms)
        return Watch(MappingProxyType(mine))


def worth_telling(raised: Iterable[Raised]) -> list[Raised]:
    """Without those that a graver one about the same says already."""
    found = list(raised)
    said = {(one.alarm.covers, one.subject) for one in found}
    return [one for one in found if one.key not in said]


class AlarmNews(NamedTuple):
    watch: Watch
    raised: list[Raised]  # by this look
    cleared: list[Raised]


def judge(watch: Watch, facts: AlarmFacts, now_ms: int) -> AlarmNews:
    """One look: what is remembered from now on, and which alarms began and ended with it."""
    after = Watch(MappingProxyType(dict(_standings(watch.standings, facts, now_ms))))
    was = {one.key: one for one in watch.raised()}
    now = {one.key: one for one in after.raised()}
    return AlarmNews(
        after,
        [one for key, one in now.items() if key not in was],
        [one for key, one in was.items() if key not in now],
    )


def _standings(
    known: Mapping[Key, Standing], facts: AlarmFacts, now_ms: int
) -> Iterator[tuple[Key, Standing]]:
    for alarm in ALARMS:
        mine = {key[1]: one for key, one in known.items() if key[0] == alarm.name}
        readings = alarm.read(facts)
        for subject in _subjects(alarm, mine, readings):
            one = mine.get(subject)
            if readings is not None and not _is_unseen(readings, subject):
                one = _next(alarm, one, readings.get(subject), now_ms)
            if one is not None:
                yield (alarm.name, subject), one


def _is_unseen(readings: Readings, subject: str) -> bool:
    return subject in readings and readings[subject] is None


def _subjects(alarm: Alarm, mine: Mapping[str, Standing], readings: Readings | None) -> list[str]:
    """Who is spoken of: those in trouble that are known first, then the worst, then those whose
    trouble is over and remembered."""
    troubled = [one for one, how in mine.items() if how.is_over or how.raised_ms is not None]
    over = [
        (subject, reading.value - alarm.threshold * reading.scale)
        for subject, reading in (readings or {}).items()
        if subject not in mine and reading is not None and _is_over(alarm, reading)
    ]
    worst = sorted(over, key=lambda one: (-one[1], one[0]))
    new = [subject for subject, _ in worst]
    return list(dict.fromkeys([*troubled, *new, *mine]))[:SUBJECTS_MAX]


def _next(
    alarm: Alarm, one: Standing | None, reading: AlarmReading | None, now_ms: int
) -> Standing | None:
    """No reading: a pool or tenant that is gone has no trouble."""
    if one is not None and not _is_near(one.seen_ms, now_ms):
        one = one._replace(turned_ms=now_ms)  # what has to hold begins to hold now
    if reading is not None and _is_over(alarm, reading):
        return _over(alarm, one, reading, now_ms)
    return None if one is None else _within(alarm, one, now_ms)


def _is_near(seen_ms: int, now_ms: int) -> bool:
    """Not so when nobody could look for a while, or the clock jumped."""
    return 0 <= now_ms - seen_ms <= LOOKS_APART_SECONDS_MAX * 1000


def _over(alarm: Alarm, one: Standing | None, reading: AlarmReading, now_ms: int) -> Standing:
    turned_ms = one.turned_ms if one is not None and one.is_over else now_ms
    raised_ms = None if one is None else one.raised_ms
    raises = () if one is None else _recent(one.raises, now_ms)
    if raised_ms is None and now_ms - turned_ms >= alarm.hold_seconds * 1000:
        raised_ms, raises = turned_ms, (*raises, now_ms)[-FLAPS:]
    return Standing(True, turned_ms, now_ms, reading, raised_ms, raises)


def _within(alarm: Alarm, one: Standing, now_ms: int) -> Standing | None:
    """What was raised is over once it has been well for long enough; that it was is remembered for
    a while."""
    turned_ms = now_ms if one.is_over else one.turned_ms
    raised_ms, raises = one.raised_ms, _recent(one.raises, now_ms)
    flaps = len(one.raises) >= FLAPS
    clear_seconds = max(alarm.clear_seconds, FLAP_CLEAR_SECONDS if flaps else 0.0)
    if now_ms - turned_ms >= clear_seconds * 1000:
        raised_ms = None
    if raised_ms is None and not raises:
        return None
    if raised_ms is not None:
        raises = one.raises  # how long it takes to be over is not changed on the way
    return Standing(False, turned_ms, now_ms, one.reading, raised_ms, raises)


def _recent(raises: tuple[int, ...], now_ms: int) -> tuple[int, ...]:
    """A clock that was set back makes none of them old, and one of the future is none."""
    return tuple(one for one in raises if 0 <= now_ms - one <= FLAP_SECONDS * 1000)


def _is_over(alarm: Alarm, reading: AlarmReading) -> bool:
    return reading.value > alarm.threshold * reading.scale
