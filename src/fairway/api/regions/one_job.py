"""Calls on one job, or one flow, by its id: they reach the region that has it.

A job may be where its tenant is at home, where it was accepted, or where it still runs because its
tenant moved meanwhile. The home is asked first, then the region that the id names, then the others,
until one does not say that there is no such job. Whoever is asked by another region, or by another
server of its own, answers for its own store. A job is in one region at a time, so a change is done
once; of a region that may have done it and gave no answer, nobody else is asked.

With a session nothing is passed on, and what stays open or is very large never is: then it is said
where to ask.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, NamedTuple, TypeAlias

import msgspec

from fairway.api.auth import CALLER, SESSION
from fairway.api.endpoint import Endpoint
from fairway.api.http.asgi import Receive, Scope, Send
from fairway.api.http.headers import header
from fairway.api.regions.held_calls import HeldCalls
from fairway.api.regions.others import READING, OtherRegions, send_reply
from fairway.api.tenant_parts.meant import BY_JOB
from fairway.api.tenant_parts.replies import Said
from fairway.core.errors import Conflict, FairwayError, NotFound
from fairway.core.ids import JobId, TenantId, parse_job_id
from fairway.core.regions.region_map import region_number_of
from fairway.services.regions.peer_calls import RegionAway
from fairway.services.regions.regions import Regions

Here: TypeAlias = Callable[[Receive, Send], Awaitable[None]]

FLOWS = frozenset(
    {
        "GET /v1/flows/{id}",
        "GET /v1/flows/{id}/jobs",
        "DELETE /v1/flows/{id}",
        "POST /v1/flows/{id}/replay",
    }
)
BY_ID = BY_JOB | FLOWS
#: They stay open, or are larger than a server holds.
OPEN = frozenset(
    {"GET /v1/jobs/{id}/events", "GET /v1/jobs/{id}/payload", "GET /v1/jobs/{id}/result"}
)
LOGS = "GET /v1/jobs/{id}/logs"
EVENT_STREAM = b"text/event-stream"  # never ends: nobody would hear of it before it is broken off
_ID_AT = len(("", "v1", "jobs"))  # of a path's segments, the one with the id
_ANY_VERSION = (b"if-none-match", b"*")
_OF_READING = (b"accept", b"prefer", b"range", b"last-event-id", b"if-none-match")


class JobCall(NamedTuple):
    """Whose call it is, and who answers it in this region."""

    scope: Scope
    receive: Receive
    send: Send
    endpoint: Endpoint
    here: Here
    body: bytes | None = None  # read already

    @property
    def tenant(self) -> TenantId:
        tenant: TenantId = self.scope[CALLER].tenant.id
        return tenant

    @property
    def job(self) -> JobId | None:
        return parse_job_id(self.scope["path"].split("/")[_ID_AT])

    @property
    def stays_open(self) -> bool:
        name = self.endpoint.call
        return name in OPEN or (name == LOGS and wants_stream(self.scope))


class OneJob:
    def __init__(self, regions: Regions, others: OtherRegions, held: HeldCalls) -> None:
        self._regions = regions
        self._others = others
        self._held = held

    async def answer(self, call: JobCall) -> None:
        scope, job = call.scope, call.job
        if job is None or self._others.is_relayed(scope):
            await call.here(call.receive, call.send)
        elif self._others.is_passed_on(scope):
            await self._answer_here(call, job)
        elif call.stays_open:
            await self._answer_open(call, job)
        elif SESSION in scope:
            await self._answer_signed_in(call, job)
        else:
            await self._look(call, job)

    # -- here --------------------------------------------------------------------------------

    async def _own(self, call: JobCall) -> None:
        """What our store has. NotFound, also where another server of this region says so."""
        kept = _Absent(call.send)
        await call.here(_receiving(call), kept.send)
        if kept.is_absent:
            raise _as_said(bytes(kept.body))

    async def _answer_here(self, call: JobCall, job: JobId) -> None:
        try:
            await self._own(call)
        except NotFound:
            if not await self._held.has_told(call.scope, call.send, call.endpoint, job):
                raise

    async def _answer_signed_in(self, call: JobCall, job: JobId) -> None:
        try:
            await self._answer_here(call, job)
        except NotFound as absent:
            raise self._not_here(call, job, absent) from None

    async def _answer_open(self, call: JobCall, job: JobId) -> None:
        try:
            await self._own(call)
            return
        except NotFound as error:
            absent = error
        if SESSION in call.scope or self._regions.elsewhere(call.tenant) is not None:
            raise self._not_here(call, job, absent)
        region = await self._region_with(call, job)
        if region is None:
            raise absent
        raise self._others.elsewhere(region, call.scope[CALLER].tenant)

    def _not_here(self, call: JobCall, job: JobId, absent: NotFound) -> Conflict | NotFound:
        """For whom nobody else is asked: where to ask. What is known of it here says more."""
        if not absent.message.startswith("There is no "):
            return absent
        home = self._regions.elsewhere(call.tenant)
        if home is not None:
            return self._others.elsewhere(home, call.scope[CALLER].tenant)
        named = self._regions.map.named(region_number_of(job))
        if named is None or named == self._regions.map.here:
            return absent
        return NotFound(
            f"{absent.message} It was accepted in the region {named}, which may have it:"
            f" {self._others.where(named)}"
        )

    # -- anywhere ----------------------------------------------------------------------------

    async def _look(self, call: JobCall, job: JobId) -> None:
        """Wherever it is: moved, accepted elsewhere before its tenant moved, or held."""
        if call.endpoint.body is not None:  # one of them may take it, and not the first
            call = call._replace(body=await self._others.body(call.scope, call.receive))
        unknown = _Unknown(job)
        likely = self._regions.may_have(call.tenant, job)
        for region in (*likely, *likely[:-1]):  # it may have been on its way between two of them
            if region == self._regions.map.here:
                try:
                    await self._answer_here(call, job)
                    return
                except NotFound as error:
                    unknown.absent_here(error)
            elif await self._has_sent(region, call, unknown):
                return
        raise unknown.error

    async def _has_sent(self, region: str, call: JobCall, unknown: _Unknown) -> bool:
        away = self._others.away(region, call.scope[CALLER].tenant)
        if self._regions.peers.is_away(region):
            unknown.trouble(away)
            return False
        try:
            reply = await self._others.try_to_ask(region, call.scope, call.body or b"")
        except RegionAway as error:
            if error.is_open and call.scope["method"] not in READING:
                raise away from None  # it may be done, and the job elsewhere by now
            unknown.trouble(away)
            return False
        except FairwayError as error:
            unknown.trouble(error)
            return False
        if reply.status == HTTPStatus.NOT_FOUND:
            unknown.absent(_as_said(reply.body))
            return False
        await send_reply(call.send, reply)
        return True

    async def _region_with(self, call: JobCall, job: JobId) -> str | None:
        """Another one that has the job, by a look that brings nothing of it."""
        headers = [one for one in call.scope["headers"] if one[0] not in _OF_READING]
        own = {"method": "GET", "path": f"/v1/jobs/{job}", "query_string": b""}
        asked = {**call.scope, **own, "headers": [*headers, _ANY_VERSION]}
        for region in self._regions.may_have(call.tenant, job):
            if region == self._regions.map.here:
                continue
            if self._regions.peers.is_away(region):
                raise self._others.away(region, call.scope[CALLER].tenant)
            reply = await self._others.ask(region, asked, b"")
            if reply.status in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED):
                return region
        return None


class _Absent:
    """What goes out, as it goes; that there is no such thing is kept back."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_absent = False
        self.body = bytearray()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.is_absent = message["status"] == HTTPStatus.NOT_FOUND
        if not self.is_absent:
            await self._send(message)
        else:
            self.body += message.get("body", b"")


class _Unknown:
    """What those say who do not have it: one that cannot be asked may have it. A region that tells
    more than that there is no such thing is heard, the likeliest first, and our own before it."""

    def __init__(self, job: JobId) -> None:
        self._plain = f"There is no job {job}."
        self._absent: NotFound | None = None
        self._trouble: FairwayError | None = None

    def absent(self, error: NotFound) -> None:
        if self._absent is None or self._absent.message == self._plain:
            self._absent = error

    def absent_here(self, error: NotFound) -> None:
        if self._absent is None or error.message != self._plain:
            self._absent = error

    def trouble(self, error: FairwayError) -> None:
        self._trouble = self._trouble or error

    @property
    def error(self) -> FairwayError:
        return self._trouble or self._absent or NotFound(self._plain)


def _as_said(body: bytes) -> NotFound:
    try:
        said = msgspec.json.decode(body, type=Said)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = Said()
    return NotFound(said.detail, code=said.code)


def _receiving(call: JobCall) -> Receive:
    """For whoever answers here, each time: the body, then what comes from the caller."""
    if call.body is None:
        return call.receive
    messages = [{"type": "http.request", "body": call.body, "more_body": False}]

    async def again() -> Any:
        return messages.pop() if messages else await call.receive()

    return again


def wants_stream(scope: Scope) -> bool:
    return EVENT_STREAM in (header(scope, b"accept") or b"").lower()
