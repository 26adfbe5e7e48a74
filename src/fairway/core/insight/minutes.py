"""A minute of one server, as lines to be kept: by pool, job type, tenant, and a tenant's types.

So many lines of a kind at most, those with the most to tell; all others are one line more. Of the
types of tenants each tenant's busiest comes first, then each one's next: none fills all lines. Of
types, those that are mostly one tenant's stand behind others' once they are a quarter of the lines.
What is kept of an hour is the sum of its minutes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from enum import IntEnum
from heapq import heappush, heappushpop
from itertools import chain
from typing import NamedTuple, TypeAlias

from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.insight.activity import OTHER_TENANT, OTHER_TYPE, Cells, JobCounts
from fairway.core.insight.sight import Levels
from fairway.core.time_slices import in_steps

LINES_MAX = 200  # of job types, and of tenants
TENANT_TYPES_MAX = 100
TYPES_OF_ONE_MAX = LINES_MAX // 4  # lines of types that are mostly one tenant's, before others'


class LineKind(IntEnum):
    """What a line is about; the numbers are what the store keeps."""

    POOL = 1
    TYPE = 2
    TENANT = 3
    TENANT_TYPE = 4


#: Pool, type, tenant; 0 where a line is not about one.
Subject: TypeAlias = tuple[PoolId, TypeId, TenantId]
NO_POOL = PoolId(0)
OTHER: Subject = (NO_POOL, OTHER_TYPE, OTHER_TENANT)
WORK = 10  # adding up a line is as much as looking at so many streams
MOST = {
    LineKind.TYPE: LINES_MAX,
    LineKind.TENANT: LINES_MAX,
    LineKind.TENANT_TYPE: TENANT_TYPES_MAX,
}


class ActivityLine(NamedTuple):
    kind: LineKind
    subject: Subject
    counts: JobCounts
    levels: Levels


class Minute:
    """What was counted, added up by what it is about."""

    def __init__(self) -> None:
        self.sums: dict[LineKind, dict[Subject, JobCounts]] = {kind: {} for kind in LineKind}
        self.of_tenant: dict[tuple[TenantId, PoolId], JobCounts] = {}

    def adding(self, cells: Cells) -> Iterator[None]:
        """Add these, a step at a time."""
        return in_steps(self._add(subject, cell) for subject, cell in cells.items())

    def _add(self, subject: Subject, cell: JobCounts) -> int:
        pool, type_, tenant = subject
        _sum(self.sums[LineKind.POOL], (pool, OTHER_TYPE, OTHER_TENANT)).add(cell)
        _sum(self.sums[LineKind.TYPE], (NO_POOL, type_, OTHER_TENANT)).add(cell)
        _sum(self.sums[LineKind.TENANT], (NO_POOL, OTHER_TYPE, tenant)).add(cell)
        if type_ != OTHER_TYPE:
            _sum(self.sums[LineKind.TENANT_TYPE], (NO_POOL, type_, tenant)).add(cell)
        mine = self.of_tenant.get((tenant, pool))
        if mine is None:
            mine = self.of_tenant[tenant, pool] = JobCounts()
        mine.add(cell)
        return WORK

    def telling(
        self, levels: Mapping[tuple[LineKind, Subject], Levels], found: list[ActivityLine]
    ) -> Iterator[None]:
        """Add its lines, with what waited and ran at its end where that is known; in steps."""
        return in_steps(chain.from_iterable(self._tell(kind, levels, found) for kind in LineKind))

    def _tell(
        self,
        kind: LineKind,
        levels: Mapping[tuple[LineKind, Subject], Levels],
        found: list[ActivityLine],
    ) -> Iterator[int]:
        """The most active; the rest is one line, of nobody's. Of pairs it is left out."""
        sums, most = self.sums[kind], MOST.get(kind)
        for of, subject in levels:
            if of is kind:
                _sum(sums, subject)  # something waits, and nothing happened
        named = [one for one in sums if one != OTHER]
        if most is not None and len(named) > most:
            weights: dict[Subject, tuple[int, int]] = {}
            for subject in named:
                weights[subject] = (0, _weight(sums[subject]))
                yield 1
            yield from self._rank(kind, weights)
            named = yield from _largest(most, weights)
        kept = set(named)
        if kind is not LineKind.TENANT_TYPE and len(kept) < len(sums):
            rest = JobCounts()
            for subject, counts in sums.items():
                if subject not in kept:
                    rest.add(counts)
                yield WORK
            found.append(ActivityLine(kind, OTHER, rest, Levels()))
        for subject in named:
            level = levels.get((kind, subject), Levels())
            found.append(ActivityLine(kind, subject, sums[subject], level))

    def _rank(self, kind: LineKind, weights: dict[Subject, tuple[int, int]]) -> Iterator[int]:
        """So that no tenant has all lines."""
        if kind is LineKind.TENANT_TYPE:
            yield from _rank_by_tenant(weights)
        elif kind is LineKind.TYPE:
            yield from _rank_by_main_tenant(weights, self.sums[LineKind.TENANT_TYPE])


def _rank_by_tenant(weights: dict[Subject, tuple[int, int]]) -> Iterator[int]:
    """A tenant's busiest weighs more than the next of anybody."""
    by_tenant: dict[TenantId, list[Subject]] = {}
    for subject in weights:
        by_tenant.setdefault(subject[2], []).append(subject)
        yield 1
    for subjects in by_tenant.values():
        subjects.sort(key=lambda one: weights[one], reverse=True)
        for place, subject in enumerate(subjects):
            weights[subject] = (-place, weights[subject][1])
        yield len(subjects)


def _rank_by_main_tenant(
    weights: dict[Subject, tuple[int, int]], pairs: Mapping[Subject, JobCounts]
) -> Iterator[int]:
    """A type is of the tenant that did the most with it: so many of each first, then the rest."""
    main: dict[TypeId, tuple[int, TenantId]] = {}
    for (_, type_, tenant), counts in pairs.items():
        main[type_] = max(main.get(type_, (0, tenant)), (_weight(counts), tenant))
        yield 1
    by_tenant: dict[TenantId, list[Subject]] = {}
    for subject in weights:
        _, tenant = main.get(subject[1], (0, OTHER_TENANT))
        by_tenant.setdefault(tenant, []).append(subject)
        yield 1
    for subjects in by_tenant.values():
        subjects.sort(key=lambda one: weights[one], reverse=True)
        for place, subject in enumerate(subjects):
            weights[subject] = (-(place // TYPES_OF_ONE_MAX), weights[subject][1])
        yield len(subjects)


def _largest(
    most: int, weights: Mapping[Subject, tuple[int, int]]
) -> Generator[int, None, list[Subject]]:
    heap: list[tuple[tuple[int, int], Subject]] = []
    for subject, weight in weights.items():
        if len(heap) < most:
            heappush(heap, (weight, subject))
        else:
            heappushpop(heap, (weight, subject))
        yield 1
    return [subject for _, subject in heap]


def _weight(tally: JobCounts) -> int:
    return tally.accepted + tally.started + tally.ended


def _sum(sums: dict[Subject, JobCounts], subject: Subject) -> JobCounts:
    found = sums.get(subject)
    if found is None:
        found = sums[subject] = JobCounts()
    return found
