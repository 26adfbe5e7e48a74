"""What another region said of held rows that were sent to it, written down.

A call that it took in part is held no longer: each of its jobs that still waits does so by itself,
so that nothing that was taken is ever sent again. Guarded by the region that the rows were offered
to: what another server offered elsewhere meanwhile is no more ours to settle.
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
                if row.kind == HeldKind.JOB and (key := _key_of(row)) is not None:
                    became = row.id, said[0]
                    await store.pass_key_on(connection, to.shard, to.tenant, key, became)
                await store.tell(connection, to, row.id, json.dumps(said))
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
                body = await store.body_of(connection, to.shard, to.tenant, row)
                if body is not None:
                    left = _to_be_asked(body, missing[row])
                    await _take_apart(connection, to, row, body, dict.fromkeys(left))


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


def _to_be_asked(body: bytes, places: Sequence[int]) -> list[int]:
    """Beside jobs that were made, one with an Idempotency-Key is the earlier job that has it. But
    one that replaces others may have been turned away for now: it is judged anew, with its key."""
    jobs = zip(places, jobs_at(body, places), strict=True)
    return [
        place
        for place, new in jobs
        if new.idempotency_key is None or (new.unique is not None and new.unique.replaces)
    ]


def _key_of(row: HeldRow) -> str | None:
    return msgspec.json.decode(row.body, type=MovedRow).key
