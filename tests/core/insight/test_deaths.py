"""Whose jobs died of late: all of them counted, some of them named, and those of long ago gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.ids import TenantId, TypeId
from fairway.core.insight.activity import OTHER_TYPE, JobCounts
from fairway.core.insight.deaths import MINUTES, RecentDeaths
from fairway.core.insight.minutes import NO_POOL, ActivityLine, LineKind
from fairway.core.insight.sight import DEATHS_MAX, Levels

ends = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 3), st.integers(0, 9), st.integers(0, 9)),
    max_size=40,
)


def lines_of(minute: list[tuple[int, int, int, int]]) -> list[ActivityLine]:
    """Of each tenant one line, and of each pair of tenant and type."""
    found: dict[tuple[LineKind, int, int], JobCounts] = {}
    for tenant, type_, dead, well in minute:
        for key in ((LineKind.TENANT, OTHER_TYPE, tenant), (LineKind.TENANT_TYPE, type_, tenant)):
            counts = found.setdefault(key, JobCounts())
            counts.dead += dead
            counts.ended += dead + well
    return [
        ActivityLine(kind, (NO_POOL, TypeId(type_), TenantId(tenant)), counts, Levels())
        for (kind, type_, tenant), counts in found.items()
    ]


@tried(30)
@given(st.lists(ends, max_size=2 * MINUTES))
def test_the_last_minutes_are_told(minutes: list[list[tuple[int, int, int, int]]]) -> None:
    deaths = RecentDeaths()
    for minute in minutes:
        deaths.minute_was(lines_of(minute))
    recent = [one for minute in minutes[-MINUTES:] for one in minute]
    dead = sum(one[2] for one in recent)
    assert deaths.totals() == (dead, dead + sum(one[3] for one in recent))
    told = deaths.by_tenant(lambda type_: f"type {type_}")
    assert len(told) <= DEATHS_MAX
    for one in told:
        mine = [end for end in recent if end[0] == one.tenant]
        assert (one.dead, one.ended) == (sum(e[2] for e in mine), sum(e[2] + e[3] for e in mine))
        by_type = {t: sum(e[2] for e in mine if e[1] == t) for t in (1, 2, 3)}
        assert by_type[int(one.type.split()[1])] == max(by_type.values())
    assert TenantId(0) not in {one.tenant for one in told}, "the smallest together are nobody"
