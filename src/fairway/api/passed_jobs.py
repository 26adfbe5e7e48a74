"""Submissions from server to server: the messages, and how the owner takes them in.

The server that a tenant spoke to has looked at the key, the body and every job; the owner judges
the tenant's limits, writes, and tells what became of each. Only servers of the cluster get here
(`Relay.is_peer`). Jobs of many callers come in one call; what befalls one touches no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, TypeAlias

import msgspec

from fairway.core.backpressure.rate_limit import Quota
from fairway.core.errors import (
    FairwayError,
    InvalidRequest,
    LimitReached,
    Refused,
    Unavailable,
)
from fairway.core.ids import JobId, PoolId, ShardId, TenantId, ids_from
from fairway.core.regions.homes import Meant
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import logger
from fairway.services.platform import Platform
from fairway.services.submit.submission_group import Accepted, NewJob, Verdict, WholeKey
from fairway.services.transient_errors import may_pass
from fairway.wire.problems import CODES, error_of

log = logger("passed_jobs")

#: Of the relay: whether another server must answer for this shard.
IsElsewhere: TypeAlias = Callable[[ShardId | None], bool]  # None: whatever it is, nothing is here

SUBMIT_PATH = "/internal/submit"
ENVELOPE_BYTES_MAX = 4 << 20  # around the jobs of a call
FEW_JOBS = 16  # of a call that is written together with others of its tenant
#: The owner has done nothing, and will not: whoever asked it writes by itself.
NOT_TAKEN = frozenset({"NOT_OWNER", "STOPPING"})


class PassedJobs(msgspec.Struct, array_like=True):
    """What one caller handed in; without jobs it only asks to be let in."""

    tenant: TenantId
    count: int
    is_admitted: bool
    owed: int  # tokens for what was refused elsewhere
    first: JobId  # the id of its first job; the others follow, unless they have their own
    whole: WholeKey | None
    jobs: Sequence[NewJob]


class OwnerJobs(PassedJobs, array_like=True):
    """The same for the owner of the shard, in the region itself."""

    meant: Meant | None = None  # by which home another region sent them, if one did


class RegionJobs(PassedJobs, array_like=True):
    """The same for another region, whose pools have numbers of their own."""

    pools: dict[PoolId, str] = {}  # number where it came in → name


class RegionCalls(msgspec.Struct, array_like=True):
    """What is sent to another region at one time, and whom the sender means by their numbers."""

    calls: list[RegionJobs]
    tenants: dict[TenantId, Meant]


class PassedReply(msgspec.Struct, array_like=True):
    """For each caller: nil, if all is as it was asked; what each job became; or a refusal."""

    items: list[Any]
    levels: dict[TenantId, int]  # of the tenants' buckets, after all of it


encode = msgspec.msgpack.Encoder().encode
decode_calls = msgspec.msgpack.Decoder(list[OwnerJobs]).decode
decode_region_calls = msgspec.msgpack.Decoder(RegionCalls).decode
decode_reply = msgspec.msgpack.Decoder(PassedReply).decode


# -- at the owner ------------------------------------------------------------------------------


async def take_passed(platform: Platform, is_elsewhere: IsElsewhere, body: bytes) -> bytes:
    """Take in what another server passes on; what is accepted is on disk."""
    try:
        calls = decode_calls(body)
    except msgspec.DecodeError as error:  # of another build
        raise InvalidRequest(str(error)) from None
    items: list[Any] = [None] * len(calls)
    lots = _lots(calls)
    takes = [
        _take(platform, is_elsewhere, tenant, [calls[n] for n in places]) for tenant, places in lots
    ]
    answers = [await takes[0]] if len(takes) == 1 else await asyncio.gather(*takes)
    for (_, places), said in zip(lots, answers, strict=True):
        for place, item in zip(places, said, strict=True):
            items[place] = item
    tenants = map(platform.directory.tenants.get, {call.tenant for call in calls})
    levels = {one.id: platform.admission.level(one) for one in tenants if one is not None}
    return encode(PassedReply(items, levels))


def _lots(calls: Sequence[OwnerJobs]) -> list[tuple[TenantId, list[int]]]:
    """By tenant, those that may be written as one, for that costs less; each other one alone."""
    together: dict[TenantId, list[int]] = {}
    alone: list[tuple[TenantId, list[int]]] = []
    for place, call in enumerate(calls):
        is_few = call.jobs and call.whole is None and len(call.jobs) <= FEW_JOBS
        if is_few and call.meant is None:
            together.setdefault(call.tenant, []).append(place)
        else:
            alone.append((call.tenant, [place]))
    return [*together.items(), *alone]


async def _take(
    platform: Platform, is_elsewhere: IsElsewhere, of: TenantId, calls: list[OwnerJobs]
) -> list[Any]:
    """One answer a call."""
    tenant = platform.directory.tenants.get(of)
    shard = platform.tenant_shards.of(of)
    if tenant is None or is_elsewhere(shard):
        return [refusal(Unavailable(code="NOT_OWNER"))] * len(calls)
    refused = [_admission(platform, tenant, call) for call in calls]
    good = [call for call, refusal in zip(calls, refused, strict=True) if refusal is None]
    try:
        answers: Iterator[Any] = iter(await _submit(platform, tenant, good))
    except Refused as error:
        if len(good) > 1:  # a new name of one of them: nothing was written yet
            apart = [await _take(platform, is_elsewhere, of, [_admitted(call)]) for call in good]
            answers = iter([said for (said,) in apart])
        else:
            answers = iter([refusal(error)])
    except Exception as error:
        answers = repeat(refusal(unforeseen(error)))
    return [next(answers) if said is None else said for said in refused]


def _admission(platform: Platform, tenant: Tenant, call: PassedJobs) -> dict[str, Any] | None:
    """Each caller is judged for itself."""
    try:
        if call.owed:
            platform.admission.charge_tokens(tenant, call.owed)
        if not call.is_admitted:
            platform.submissions.admit(tenant, call.count)
    except FairwayError as error:
        return refusal(error)
    return None


async def _submit(platform: Platform, tenant: Tenant, calls: list[OwnerJobs]) -> list[Any]:
    jobs = [new for call in calls for new in call.jobs]
    if not jobs:
        return [None] * len(calls)
    verdicts = await platform.submissions.submit(
        tenant,
        jobs,
        is_admitted=True,
        whole=calls[0].whole,
        ids=[id_ for call in calls for id_ in ids_from(call.first, len(call.jobs))],
        meant=calls[0].meant,
    )
    told, start = [], 0
    for call in calls:
        told.append(told_of(verdicts[start : start + len(call.jobs)]))
        start += len(call.jobs)
    return told


def _admitted(call: OwnerJobs) -> OwnerJobs:
    return msgspec.structs.replace(call, is_admitted=True, owed=0)


def unforeseen(error: Exception) -> FairwayError:
    if isinstance(error, FairwayError):
        return error
    if may_pass(error):
        return Unavailable()
    log.error("passed jobs failed", error=repr(error))
    return FairwayError()


def told_of(verdicts: Sequence[Verdict]) -> list[Any] | None:
    for one in verdicts:
        if isinstance(one, FairwayError) or one.replayed or one.state != "queued":
            return [refusal(v) if isinstance(v, FairwayError) else v for v in verdicts]
    return None


def refusal(error: FairwayError) -> dict[str, Any]:
    said: dict[str, Any] = {"code": error.code, "detail": error.message}
    if error.field:
        said["errors"] = [{"pointer": error.field}]
    if isinstance(error, LimitReached):
        said["retry_after_seconds"] = error.retry_after_seconds
        said["quota"] = error.quota
    return said


# -- at the server that asked ------------------------------------------------------------------


def outcome_of(call: PassedJobs, said: Any) -> list[Verdict] | FairwayError:
    """What the owner said of a call; ValueError, TypeError or LookupError if that is not it."""
    if said is None:
        ids = ids_from(call.first, len(call.jobs))
        pairs = zip(call.jobs, ids, strict=True)
        return [Accepted(new.id or fresh) for new, fresh in pairs]
    if isinstance(said, dict):
        return _error(said)
    verdicts = [_error(one) if isinstance(one, dict) else Accepted(*one) for one in said]
    if len(verdicts) != len(call.jobs):
        raise ValueError("an answer for each job")
    return verdicts


def _error(said: dict[str, Any]) -> FairwayError:
    status = CODES.get(said["code"], (500, ""))[0]
    error = error_of({**said, "status": status})
    if not isinstance(error, LimitReached):
        return error
    quota = said.get("quota")
    return LimitReached(
        error.message,
        code=error.code,
        field=error.field,
        retry_after_seconds=said["retry_after_seconds"],
        quota=Quota(*quota) if quota else None,
    )
