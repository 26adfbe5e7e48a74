"""Requests that another region must answer: passed on whole, with the key that they came with.

Keys are known in every region, so the home looks at the key itself. What a tenant asks goes to its
home; what operators change of tenants, tiers, keys and homes goes to the directory. Calls on one
job go where it may be (`api/regions/one_job.py`), and waits for many to all
(`api/regions/waits.py`). Submissions are not here: they can be held (`api/region_lines.py`). What
streams or is very large, and what comes with a session, is refused, with the address to go to.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import CALLER, SESSION
from fairway.api.endpoint import Endpoint
from fairway.api.http.asgi import Receive, Scope, Send
from fairway.api.regions.held_calls import HeldCalls
from fairway.api.regions.one_job import BY_ID, Here, JobCall, OneJob, wants_stream
from fairway.api.regions.others import READING, OtherRegions, send_reply
from fairway.api.regions.waits import CALL as WAIT
from fairway.api.regions.waits import Here as HandledHere
from fairway.api.regions.waits import RegionWaits, WaitCall
from fairway.api.relay import KEPT
from fairway.runtime.plain_http import Reply
from fairway.services.platform import Platform
from fairway.services.regions.regions import Regions
from fairway.services.registry.principal import Principal

SUBMISSIONS = frozenset({"POST /v1/jobs", "POST /v1/jobs/batch"})
#: They stay open, or are larger than a server holds.
NOT_PASSABLE = frozenset(
    {"GET /v1/events/stream", "GET /v1/events/socket", "GET /v1/live", "POST /v1/uploads"}
)
#: Every region answers these by itself, for whomever.
OF_EACH_REGION = frozenset({"GET /v1/pools", "GET /session", "DELETE /session"})
#: What is changed in the directory alone.
OF_DIRECTORY = ("/v1/tenants", "/v1/tiers", "/v1/keys")
SPEND_CAP = "/spend-cap"  # is of the home's own books


class RegionGate:
    """Made only where there are regions."""

    def __init__(self, platform: Platform, regions: Regions) -> None:
        self._regions = regions
        self._others = OtherRegions(platform, regions)
        self._jobs = OneJob(regions, self._others, HeldCalls(platform, regions, self._others))
        self._waits = RegionWaits(platform, regions, self.reply_of)

    # -- hot paths ---------------------------------------------------------------------------

    async def has_answered(
        self, scope: Scope, receive: Receive, send: Send, endpoint: Endpoint, here: Here
    ) -> bool:
        """Whether another region's answer was sent; or, of a job, what any region knows."""
        caller: Principal = scope[CALLER]
        if endpoint.call in BY_ID and caller.tenant is not None:
            await self._jobs.answer(JobCall(scope, receive, send, endpoint, here))
            return True
        region = self._answering(scope, endpoint, caller)
        if region is None:
            return False
        body = await self._others.body(scope, receive)
        await send_reply(send, await self._others.ask(region, scope, body))
        return True

    # -- cold routes -------------------------------------------------------------------------

    async def reply(
        self, request: Request, endpoint: Endpoint, here: HandledHere
    ) -> Response | None:
        """Another region's answer, or that of several; None: this one's own."""
        scope = request.scope
        caller: Principal | None = scope.get(CALLER)
        if caller is None:
            return None
        if endpoint.call in BY_ID and caller.tenant is not None:
            return _OfJob(self._jobs, endpoint, here)
        if endpoint.call == WAIT and caller.tenant is not None:
            return await self._wait(request, endpoint, here, caller)
        region = self._answering(scope, endpoint, caller)
        if region is None:
            return None
        body = await self._others.body(scope, request.receive)
        return await self.reply_of(request, region, body)

    async def _wait(
        self, request: Request, endpoint: Endpoint, here: HandledHere, caller: Principal
    ) -> Response:
        scope = request.scope
        assert caller.tenant is not None
        is_signed_in = SESSION in scope
        if is_signed_in:  # it hears of what is here alone
            self._answering(scope, endpoint, caller)
        is_passed_on = self._others.is_passed_on(scope) or self._others.is_relayed(scope)
        call = WaitCall(request, caller.tenant.id, here)
        return await self._waits.reply(call, is_passed_on=is_passed_on or is_signed_in)

    async def reply_of(self, request: Request, region: str, body: bytes) -> Response:
        reply = await self._others.ask(region, request.scope, body)
        return Response(reply.body, reply.status, headers=_back(reply))

    def refuse_elsewhere(self, scope: Scope, endpoint: Endpoint, caller: Principal) -> None:
        """Of what stays open and is no HTTP: HOME_ELSEWHERE, if another region is to be asked."""
        self._answering(scope, endpoint, caller)

    # -- where to ----------------------------------------------------------------------------

    def _answering(self, scope: Scope, endpoint: Endpoint, caller: Principal) -> str | None:
        if endpoint.call in OF_EACH_REGION or self._others.is_passed_on(scope):
            return None
        region = self._region_for(endpoint, caller)
        if region is None:
            return None
        if endpoint.call in NOT_PASSABLE or SESSION in scope or wants_stream(scope):
            raise self._others.elsewhere(region, caller.tenant)
        return region

    def _region_for(self, endpoint: Endpoint, caller: Principal) -> str | None:
        if caller.tenant is not None:
            if caller.scope == "worker" or endpoint.call in SUBMISSIONS:
                return None
            return self._regions.elsewhere(caller.tenant.id)
        is_change = endpoint.method not in READING and endpoint.path.startswith(OF_DIRECTORY)
        if not is_change or endpoint.path.endswith(SPEND_CAP):
            return None
        directory = self._regions.homes.directory_region
        return None if directory == self._regions.map.here else directory


class _OfJob(Response):
    """The answer of whichever region has the job, as it comes."""

    def __init__(self, jobs: OneJob, endpoint: Endpoint, here: HandledHere) -> None:
        super().__init__()
        self._jobs, self._endpoint, self._handled = jobs, endpoint, here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def here(receive: Receive, send: Send) -> None:
            reply = await self._handled(Request(scope, receive))
            await reply(scope, receive, send)

        await self._jobs.answer(JobCall(scope, receive, send, self._endpoint, here))


def _back(reply: Reply) -> dict[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in reply.headers
        if name.lower() in KEPT
    }
