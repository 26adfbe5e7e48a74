"""Large results that were said and not heard of: no tenant's may fill the worker for the others.

The platform takes no more of a tenant's results than it has room for while object storage is away;
the rest stays here, and no longer holds a slot. Tenants share half of what a worker may hold. Who
is over its part for a while gives up the surplus, what ran shortest first: such a run is reported
as failed for want of a dependency, and tried again later. What still waits to be said is left
alone: a slow link is no fault of storage's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

import msgspec
from msgspec import Raw

from fairway.core.object_storage.result_patience import not_kept
from fairway.wire.exchange import NULL, Report

LARGE_BYTES = 16 << 10  # smaller ones are not looked at
OVER_SECONDS = 10.0  # over its part for so long, a tenant gives up
FULL_SECONDS = 3.0  # and so long when nobody gets work because of it


class Held(NamedTuple):
    number: int  # of its report
    tenant: str
    size_bytes: int
    ran_us: int
    since: float  # it was said


class UnacknowledgedResults:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[int, Held] = {}
        self.bytes_held = 0

    def look(self, unheard: Iterable[Report], unsaid: Collection[int], now: float) -> list[int]:
        """Count what is held; answers the numbers of the reports whose results must go."""
        before, held = self._held, {}
        for report in [one for one in unheard if len(one.result) >= LARGE_BYTES]:  # there are few
            known = before.get(report.n) if report.n not in unsaid else None
            held[report.n] = known or Held(
                report.n, report.tenant, len(report.result), report.ran_us, now
            )
        self._held = held
        self.bytes_held = sum(one.size_bytes for one in held.values())
        is_full = self.bytes_held >= self._bytes_max
        patience = FULL_SECONDS if is_full else OVER_SECONDS
        said = [one for one in held.values() if now - one.since >= patience]
        return surplus(said, self._bytes_max // 2, spare_single=not is_full)


def surplus(held: Iterable[Held], bytes_max: int, *, spare_single: bool) -> list[int]:
    """What is over each tenant's part of so many bytes; the longest runs stay.

    One that is larger than a part stays if its tenant has no other, or it could never pass.
    """
    by_tenant: dict[str, list[Held]] = defaultdict(list)
    for one in held:
        by_tenant[one.tenant].append(one)
    part = bytes_max // max(len(by_tenant), 1)
    found = []
    for mine in by_tenant.values():
        left = part
        for index, one in enumerate(sorted(mine, key=lambda one: (-one.ran_us, one.number))):
            if one.size_bytes <= left or (spare_single and index == 0):
                left -= one.size_bytes
            else:
                found.append(one.number)
    return found


def without_result(report: Report) -> Report:
    """What is said in place of a success whose result nobody took."""
    outcome = not_kept(report.ran_us, memoryview(report.result).nbytes)
    failure = outcome.failure.value if outcome.failure else None
    return msgspec.structs.replace(
        report,
        kind=outcome.kind.value,
        failure=failure,
        result=NULL,
        error=Raw(outcome.error or b"{}"),
        follow_ups=None,
    )
