"""Carries checkpoints and large payloads between runs and the platform: the keeper's errands.

A checkpoint that cannot be saved is tried again for a while, because a change of servers takes
seconds and the run can wait; then the run is told why. A checkpoint that cannot be loaded must not
make a job of four hours begin again: the job is put off, which costs it nothing. A payload that is
gone, damaged or no JSON object ends its job: another try cannot help. One that arrives otherwise
than the lease says, by size or digest, was changed on the way: it is fetched again later. What is
fetched reaches a runner beside its orders, never in them (`worker/pipe/pipe.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Raw

from fairway.core.errors import Gone, InvalidRequest, NotFound, Unavailable
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.wire import storage as wire
from fairway.wire.exchange import Lease
from fairway.worker.deferrals import Deferrals
from fairway.worker.exchange.lease_ledger import LeaseLedger
from fairway.worker.exchange.session import Caller, is_refusal
from fairway.worker.pipe.pipe import (
    FRAME_BYTES_MAX,
    LARGE_BYTES,
    Checkpoint,
    CheckpointAnswer,
    RunLease,
)
from fairway.worker.pipe.run_messages import report_of
from fairway.worker.runners.fleet import Fleet

log = logger("courier")

CALL_SECONDS = 90.0
RATE_BYTES_PER_SECOND = 1 << 20  # the least that a link is expected to carry, on top of that
TRY_SECONDS = 20.0  # how long an errand is tried before somebody is told
PAUSE_SECONDS = 0.5
PUT_OFF_MS = 30_000
PUT_OFFS_MAX = 20  # of one job here; with the tries between them some fifteen minutes
STORAGE = "object storage"  # the name of the dependency, to whoever looks at circuits


class Transfers:
    def __init__(
        self, session: Caller, ledger: LeaseLedger, fleet: Fleet, on_word: Callable[[], None]
    ) -> None:
        self._session = session
        self._ledger = ledger
        self._fleet = fleet
        self._on_word = on_word  # the keeper has something to say
        self._resuming: dict[str, Lease] = {}
        self._errands: set[asyncio.Task[None]] = set()
        self._deferrals = Deferrals(PUT_OFFS_MAX)

    def prepare(self, leases: list[Lease]) -> list[Lease]:
        """Fetch what runs need and their leases do not carry, then run them; answers the others.

        That is the checkpoint of a job that was leased before, and a large payload.
        """
        lacking = [one for one in leases if one.resumes or one.payload_bytes]
        if not lacking:
            return leases
        for lease in lacking:
            self._resuming[lease.job] = lease
            self._go(self._prepare(lease))
        return [one for one in leases if not (one.resumes or one.payload_bytes)]

    def save(self, wanted: Checkpoint) -> None:
        lease = self._ledger.running.get(wanted.job)
        if lease is not None and lease.epoch == wanted.epoch:
            self._go(self._save(lease, wanted))

    def cancel(self, jobs: list[str]) -> None:
        """Of these, the ones whose checkpoint is still on its way end here and now."""
        for job in jobs:
            if (lease := self._resuming.pop(job, None)) is not None:
                self._ledger.ended(report_of(lease, Outcome(OutcomeKind.CANCELLED), 0))
                self._on_word()

    async def stop(self) -> None:
        for errand in self._errands:
            errand.cancel()
        await asyncio.gather(*self._errands, return_exceptions=True)

    def _go(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(errand, name="errand")
        self._errands.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._errands.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("errand failed", error=repr(error))

    # -- load --------------------------------------------------------------------------------

    async def _prepare(self, lease: Lease) -> None:
        try:
            ready = await self._with_payload(lease)
            if lease.resumes:
                ready = _with_checkpoint(ready, await self._fetch(lease))
        except (NotFound, Gone) as error:
            is_gone = isinstance(error, Gone) or is_refusal(error)  # not a lost address in between
            gone = _failed(FailureClass.PERMANENT, "PayloadGone", error.message)
            self._end(lease, gone if is_gone else self._put_off(lease, error))
        except _NoPayload as error:
            self._end(lease, _failed(FailureClass.PERMANENT, "PayloadInvalid", str(error)))
        except Exception as error:  # an answer that is none of ours, too: nobody else ends this run
            log.warning("job put off", job=lease.job, error=repr(error))
            self._end(lease, self._put_off(lease, error))
        else:
            self._deferrals.forget(lease.job)
            if self._is_wanted(lease):
                self._fleet.run([ready])

    def _put_off(self, lease: Lease, error: Exception) -> Outcome:
        """Later, at no cost; after many times it is a failure of what the job depends on."""
        if self._deferrals.once_more(lease.job):
            return Outcome(OutcomeKind.SNOOZED, delay_ms=PUT_OFF_MS)
        message = f"Put off {PUT_OFFS_MAX} times, and still: {error}"
        return _failed(FailureClass.DEPENDENCY, "StorageUnavailable", message, STORAGE)

    def _end(self, lease: Lease, end: Outcome) -> None:
        if self._is_wanted(lease):
            self._ledger.ended(report_of(lease, end, 0))
            self._on_word()

    async def _with_payload(self, lease: Lease) -> Lease:
        if not lease.payload_bytes:
            return lease
        query = urlencode({"tenant": lease.tenant})
        path = f"/payloads/{quote(lease.job)}?{query}"
        body = await self._patiently("GET", path, b"", lease.payload_bytes)
        await asyncio.to_thread(_check_payload, lease, body)
        return RunLease(**msgspec.structs.asdict(lease) | {"payload": Raw(body)})

    def _is_wanted(self, lease: Lease) -> bool:
        """Neither cancelled nor taken away while its checkpoint was on its way."""
        was_resuming = self._resuming.get(lease.job) is lease
        if was_resuming:
            del self._resuming[lease.job]
        return was_resuming and self._ledger.running.get(lease.job) is lease

    async def _fetch(self, lease: Lease) -> Raw | None:
        query = urlencode({"tenant": lease.tenant, "epoch": lease.epoch})
        try:
            body = await self._patiently("GET", f"/checkpoints/{quote(lease.job)}?{query}", b"")
        except NotFound as error:
            if not is_refusal(error):
                raise  # of somebody in between: there may well be one
            if error.code == "CHECKPOINT_LOST":
                log.error("checkpoint lost", job=lease.job, error=error.message)
            return None
        found = wire.decode_found(body)
        if found.lost:
            log.error("checkpoint lost, an older one is used", job=lease.job, number=found.number)
        return found.state

    # -- save --------------------------------------------------------------------------------

    async def _save(self, lease: Lease, wanted: Checkpoint) -> None:
        answer = CheckpointAnswer(job=wanted.job, epoch=wanted.epoch, number=wanted.number)
        body = wire.encode(
            wire.CheckpointSave(
                job=lease.job,
                tenant=lease.tenant,
                epoch=lease.epoch,
                token=lease.token,
                number=wanted.number,
                state=wanted.state,
            )
        )
        try:
            await self._patiently("POST", "/checkpoints", body, len(body))
        except Exception as error:  # whatever it was, the run waits for an answer
            log.warning("checkpoint not saved", job=lease.job, error=repr(error))
            answer.problem = str(error)
            answer.is_refused = isinstance(error, InvalidRequest) and is_refusal(error)
        self._fleet.answer(answer)

    async def _patiently(self, method: str, path: str, body: bytes, size_bytes: int = 0) -> bytes:
        deadline = time.monotonic() + TRY_SECONDS
        limit_seconds = CALL_SECONDS + size_bytes / RATE_BYTES_PER_SECOND
        while True:
            try:
                return await self._session.call(method, path, body, limit_seconds)
            except Unavailable:
                if time.monotonic() >= deadline:
                    raise
                await pause(PAUSE_SECONDS)


def _with_checkpoint(lease: Lease, checkpoint: Raw | None) -> Lease:
    if checkpoint is None:
        return lease
    return RunLease(**msgspec.structs.asdict(lease) | {"checkpoint": checkpoint})


def _check_payload(lease: Lease, body: bytes) -> None:
    """Of size and digest that the lease says, it is what the platform looked at."""
    if len(body) > FRAME_BYTES_MAX - LARGE_BYTES:
        raise _NoPayload(f"The payload has {len(body)} bytes, more than a runner takes.")
    if len(body) != lease.payload_bytes:
        raise _Garbled(f"The payload came with {len(body)} bytes, not {lease.payload_bytes}.")
    if lease.payload_sha256 is None:  # of a server that does not say
        _check_object(body)
    elif hashlib.sha256(body).hexdigest() != lease.payload_sha256:
        raise _Garbled("The payload that came is not what the platform sent.")


def _check_object(body: bytes) -> None:
    try:
        body.decode()
        msgspec.json.decode(body, type=dict[str, Raw])
    except (ValueError, RecursionError) as error:
        raise _NoPayload(f"The payload is not a JSON object: {error}") from None


class _NoPayload(Exception):
    """What was fetched cannot be handed to a handler."""


class _Garbled(Exception):
    """What was fetched is not what was sent."""


def _failed(
    failure: FailureClass, kind: str, message: str, dependency: str | None = None
) -> Outcome:
    error = {"type": kind, "message": message, "stack": ""}
    if dependency is not None:
        error["dependency"] = dependency
    return Outcome(OutcomeKind.FAILED, failure=failure, error=msgspec.json.encode(error))
