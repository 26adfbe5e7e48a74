"""Recorded work: read as the API tells it, refused with its line; and whom a change helps."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway import FairwayError
from fairway.core.pools import SHORT
from fairway.simulate import replay, replay_report
from fairway.simulate.usage_log import read

HOUR = "2026-11-17T10:00:00Z"


def usage(tenant: str, jobs: int, seconds: float) -> bytes:
    """As GET /v1/usage?by=hour&group=pool,type answers."""
    sums = {"jobs": jobs, "attempts": jobs, "billed_us": round(jobs * seconds * 1e6)}
    line = {"period": HOUR, "pool": "short", "type": "work", **sums, "unbilled_us": 0}
    answer = {
        "tenant": tenant, "since": HOUR, "before": HOUR, "by": "hour", "lines": [line],
        "total": {**sums, "unbilled_us": 0},
    }  # fmt: skip
    return msgspec.json.encode(answer)


def one(tenant: str, at: float, seconds: float = 1.0) -> bytes:
    return msgspec.json.encode({"at": at, "tenant": tenant, "seconds": seconds})


def test_answers_of_the_api_and_single_jobs_are_understood() -> None:
    terms = b'{"tenants":[{"name":"acme","tier":"pro","weight":100,"cap":7,"id":3}]}'
    recorded = read([terms, usage("acme", 50, 0.2), b"", usage("globex", 10, 2.0)])
    acme, globex = recorded.tenants["acme"], recorded.tenants["globex"]
    assert (acme.tier, acme.weight, acme.cap, acme.floor_share) == ("pro", 100, 7, 10)
    assert (globex.tier, globex.weight) == ("standard", 10)
    runs = [a.run_us for a in recorded.arrivals if a.tenant == acme.id]
    assert runs == [200_000] * 50
    assert 0 <= recorded.arrivals[0].at_us <= recorded.arrivals[-1].at_us <= 3_600_000_000


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"not json", "Line 1"),
        (b'{"at":1,"tenant":"a","seconds":1,"colour":"red"}', "colour"),
        (usage("a", 1, 1.0).replace(b'"by":"hour"', b'"by":"day"'), "by=hour"),
        (usage("a", 6_000_000, 1.0), "fewer hours"),
        (b"", "no jobs"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(line: bytes, said: str) -> None:
    with pytest.raises(FairwayError, match=said):
        read([line])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 30)), min_size=1, max_size=30))
@tried(25)
def test_without_a_change_nobody_gains_or_loses(jobs: list[tuple[str, float]]) -> None:
    recorded = read([one(tenant, at) for tenant, at in jobs])
    slots = {SHORT.number: 2}
    before = replay.replay(recorded, recorded.tenants, slots)
    after = replay.replay(recorded, recorded.tenants, slots)
    assert {effect.verdict for effect in replay.effects(before, after)} == {"same"}
    assert sum(waits.jobs for waits in before.values()) == len(jobs)


def test_who_weighs_more_gains_and_the_others_lose() -> None:
    lines = [one(tenant, n / 10) for tenant in ("acme", "globex", "initech") for n in range(60)]
    recorded = read(lines)
    slots = replay.parse_slots("short=5")
    heavier = [replay.parse_change("weight", "acme=100")]
    before = replay.replay(recorded, recorded.tenants, slots)
    after = replay.replay(recorded, replay.changed(recorded.tenants, heavier), slots)
    found = replay.effects(before, after)
    assert {effect.tenant: effect.verdict for effect in found} == {
        "acme": "gains",
        "globex": "loses",
        "initech": "loses",
    }
    assert found[0].tenant == "acme"
    report = replay_report.report(recorded, heavier, slots, found)
    assert report.found == "Of 3 tenants 1 gains, 2 lose and 0 notice nothing."
    assert report.word == "found", "there was no aim that could hold"
    assert replay_report.lines(found)[1].startswith("acme")


def test_a_cap_slows_its_tenant_and_a_tier_gives_its_terms() -> None:
    recorded = read([one("acme", n / 10, 0.5) for n in range(20)])
    slots = replay.usual_slots(recorded)
    capped = replay.changed(recorded.tenants, [replay.parse_change("cap", "acme=1")])
    before = replay.replay(recorded, recorded.tenants, slots)["acme"]
    after = replay.replay(recorded, capped, slots)["acme"]
    assert after.mean > 2 * before.mean
    free = replay.changed(recorded.tenants, [replay.parse_change("tier", "acme=free")])["acme"]
    assert (free.weight, free.fair_group) == (1, "free")


@pytest.mark.parametrize("text", ["acme", "=3", "acme="])
def test_a_change_that_is_not_said_right_is_refused(text: str) -> None:
    with pytest.raises(FairwayError, match="tenant=value"):
        replay.parse_change("weight", text)


@pytest.mark.parametrize(
    ("term", "text"), [("weight", "acme=0"), ("tier", "acme=gold"), ("cap", "nobody=3")]
)
def test_a_change_that_cannot_be_made_is_refused(term: str, text: str) -> None:
    recorded = read([one("acme", 0)])
    with pytest.raises(FairwayError):
        replay.changed(recorded.tenants, [replay.parse_change(term, text)])
