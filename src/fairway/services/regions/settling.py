"""What another region said of held rows that were sent to it, written down.

A call that it took in part is held no longer: each of its jobs that still waits does so by itself,
so that nothing that was taken is ever sent again. Guarded by the region that the rows were offered
to, and the home by which they were: what another server offered elsewhere meanwhile, or what has
come back since, is not settled by a late answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from fairway.core.ids import JobId, id_at
from fairway.core.regions.hand_over import HomeAnswer, home_answer
from fairway.core.regions.held import HeldCall, HeldKind, SentTo
from fairway.services.regions.encoded_calls import apart, jobs_at
from fairway.services.regions.moved_rows import MovedRow
from fairway.services.submit.submission_group import NewJob
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import held_jobs as store
from fairway.store.regions.held_jobs import HeldRow


class Settled(NamedTuple):
    taken: int  # jobs, and schedules
    others: int  # calls of which something is remembered
    waiting: Mapping[JobId, Mapping[str, Any]]  # rows that are to be sent again → why


class Settling:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_answers(
        self, to: SentTo, rows: Sequence[HeldRow], answers: Sequence[Any]
    ) -> Settled:
        found = [
            (row, home_answer(row.id, row.jobs, answer, is_job=row.kind != HeldKind.SUBMISSION))
            for row, answer in zip(rows, answers, strict=True)
        ]
        taken = [row for row, answer in found if answer == HomeAnswer()]
        told = [(row, answer.told) for row, answer in found if answer.told is not None]
        parts = [(row, answer.left) for row, answer in found if answer.left]
        async with self._database.background() as connection, connection.transaction():
            if taken:
                await store.handed_over(connection, to, [row.id for row in taken])
            for row, said in told:
                if not await store.tell(connection, to, row.id, json.dumps(said)):
                    continue
                if row.kind == HeldKind.JOB and (key := _key_of(row)) is not None:
                    became = row.id, said[0]
                    await store.pass_key_on(connection, to.shard, to.tenant, key, became)
            for row, left in parts:
                await _take_apart(connection, to, row.id, row.body, left)
        count = sum(max(row.jobs, 1) for row in taken)
        count += sum(row.jobs - len(left) for row, left in parts)
        waiting = {row.id: answer.waits for row, answer in found if answer.waits}
        return Settled(count, len(told) + len(parts), waiting)

    async def by_ids(
        self, to: SentTo, asked: Mapping[JobId, Sequence[str]], known: set[str]
    ) -> None:
        """`known` of these rows' jobs are there, and the others will not be taken any more."""
        missing = {
            row: [place for place, id_ in enumerate(ids) if id_ not in known]
            for row, ids in asked.items()
        }
        there = [row for row, places in missing.items() if not places]
        rest = [row for row, ids in asked.items() if len(missing[row]) == len(ids)]
        async with self._database.background() as connection, connection.transaction():
            if there:
                await store.handed_over(connection, to, there)
            if rest:
                await store.withdraw(connection, to, rest)
            for row in missing.keys() - {*there, *rest}:
                of_call = to.shard, to.tenant, row, len(asked[row])
                body = await store.body_of(connection, *of_call)
                if body is not None:
                    left = _left_of(body, missing[row], to.region)
                    await _take_apart(connection, to, row, body, left)


async def _take_apart(
    connection: Connection, to: SentTo, row: JobId, body: bytes, left: Mapping[int, Any]
) -> None:
    """Of a call that was taken in part, these jobs are `left`: with what is remembered of each, or
    None, if it waits on."""
    if not await store.handed_over(connection, to, [row]):
        return  # the next owner of the shard was quicker
    ids = [id_at(row, place) for place in left]
    bodies = apart(body, dict(zip(left, ids, strict=True)))
    for id_, one, told in zip(ids, bodies, left.values(), strict=True):
        call = HeldCall(to.shard, to.tenant, id_, id_, 1, one, to.region, to.under)
        await store.hold(connection, call)
        if told is not None:
            await store.tell(connection, to, id_, json.dumps([told]))


def _left_of(body: bytes, places: Sequence[int], region: str) -> dict[int, Any]:
    """Beside jobs that were made, one with an Idempotency-Key is the earlier job that has it: which
    one is known there. But one that replaces others may have been turned away for now: it is judged
    anew, with its key."""
    earlier = {
        "code": "IDEMPOTENCY_KEY_REUSED",
        "detail": f"an earlier job has its Idempotency-Key, in the region {region}.",
    }
    return {
        place: earlier if _is_an_earlier_job(new) else None
        for place, new in zip(places, jobs_at(body, places), strict=True)
    }


def _is_an_earlier_job(new: NewJob) -> bool:
    replaces = new.unique is not None and new.unique.replaces
    return new.idempotency_key is not None and not replaces


def _key_of(row: HeldRow) -> str | None:
    return msgspec.json.decode(row.body, type=MovedRow).key
