"""The HTTP API: every endpoint of the table, with its key looked at first.

The hot paths are raw ASGI callables, matched by hand before anything else; the rest is Starlette.
Every error leaves as problem+json, whoever raised it.
"""

from __future__ import annotations

import inspect
import secrets
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from fairway.api.auth import GIVEN, admit, platform_of
from fairway.api.dashboard import app_pages
from fairway.api.dashboard.static_files import load
from fairway.api.docs import pages
from fairway.api.endpoint import Endpoint, endpoints_of
from fairway.api.events.socket import EventSocket
from fairway.api.every_part import answer_of_all, merge_slots
from fairway.api.hot_paths import HotPaths
from fairway.api.http.asgi import (
    BODY_RESERVATION,
    ClientGone,
    Receive,
    Scope,
    Send,
    give_back_room,
    problem_reply,
    read_body,
    send_bytes,
    send_problem,
)
from fairway.api.http.headers import header
from fairway.api.http.line_protocol import become_line
from fairway.api.http.page_streams import page_slots
from fairway.api.http.sign_in_cookie import not_kept
from fairway.api.insight.live_turns import OneByOne
from fairway.api.insight.views import OverviewText
from fairway.api.insight.whole_overview import WholeOverviews
from fairway.api.jobs import events
from fairway.api.jobs.submit_outbox import OutboxDoor
from fairway.api.operators import health
from fairway.api.operators.process_metrics import METRICS_PATH, ProcessMetrics
from fairway.api.origin import REQUEST_ID
from fairway.api.owner_line import LINE_PATH
from fairway.api.passed_jobs import ENVELOPE_BYTES_MAX, SUBMIT_PATH, take_passed
from fairway.api.passing import Passing
from fairway.api.peers import RUNS_PATH, WORKERS_PATH, Peers
from fairway.api.recent_replies import ENDPOINT, RecentReplies
from fairway.api.regions.gate import RegionGate
from fairway.api.regions.inlet import RegionInlet
from fairway.api.relay import Edge, Relay
from fairway.api.routes import ENDPOINTS, NAMED, allowed_methods
from fairway.core.errors import FairwayError, NotFound, Unavailable
from fairway.core.server_processes import ProcessGroup
from fairway.runtime.telemetry import logger
from fairway.services.platform import Platform
from fairway.services.regions.peer_calls import PATHS as REGION_PATHS
from fairway.services.transient_errors import may_pass, told_where_known

log = logger("api")

#: Between servers.
INTERNAL = ("/internal/hint", RUNS_PATH, WORKERS_PATH, METRICS_PATH, SUBMIT_PATH, LINE_PATH)
PEER_BYTES_MAX = 4 << 20


class Api:
    """The ASGI application of one server."""

    def __init__(self, platform: Platform, peers: Peers, group: ProcessGroup | None = None) -> None:
        self.relay = Relay(platform, peers)
        self._platform = platform
        self._stir = platform.stalls.stir
        self._of_processes = (
            None
            if group is None
            else ProcessMetrics(platform.metrics, group, peers, platform.cluster.secret)
        )
        passing = Passing(platform, peers, self.relay.is_elsewhere, group)
        edge, regions = Edge(platform, self.relay, passing), platform.regions
        self._gate = None if regions is None else RegionGate(platform, regions)
        self._inlet = None if regions is None else RegionInlet(platform, regions, passing)
        self._hot = HotPaths(edge)
        source = self._of_processes or health.MetricsText(platform.metrics)
        self._cold_routes = RecentReplies(platform, _ColdRoutes(edge, source, self._gate))
        self._outbox = OutboxDoor(platform)
        elsewhere = None if self._gate is None else self._gate.refuse_elsewhere
        self._socket = EventSocket(platform, elsewhere)

    async def close(self) -> None:
        """What goes on beside requests ends."""
        self.relay.close()
        if self._platform.regions is not None:
            self._platform.regions.close()
        if self._of_processes is not None:
            self._of_processes.close()
        await self._outbox.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._stir()
        if scope["type"] != "http":
            await self._socket(scope, receive, send)
            return
        if header(scope, b"cookie") is not None:
            send = not_kept(send)
        try:
            await self._route(scope, receive, send)
        except FairwayError as error:
            await send_problem(send, told_where_known(error, self._platform.database))
        except ClientGone:
            return
        except Exception as error:
            if may_pass(error):
                tell = log.debug if self._platform.database.hosts.is_unreachable else log.warning
                tell("store away", path=scope["path"], error=repr(error))
                refusal = told_where_known(Unavailable(), self._platform.database)
                await send_problem(send, refusal)
                return
            request_id = secrets.token_hex(8)
            log.exception("request failed", path=scope["path"], request_id=request_id)
            await send_problem(send, FairwayError(), request_id)
        finally:
            if BODY_RESERVATION in scope:
                give_back_room(scope)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        found = self._hot.find(method, path)
        if found is not None:
            call, endpoint, words = found
            caller = await admit(scope, self._platform, endpoint)
            if self._gate is not None:

                async def here(receive: Receive, send: Send) -> None:
                    await call(scope, receive, send, caller, *words)

                if await self._gate.has_answered(scope, receive, send, endpoint, here):
                    return
            await call(scope, receive, send, caller, *words)
        elif method == "POST" and path in INTERNAL:
            await self._hear_peer(scope, receive, send)
        elif self._inlet is not None and method == "POST" and path in REGION_PATHS:
            await self._inlet.answer(scope, receive, send)
        else:
            await self._cold_routes(scope, receive, send)

    async def _hear_peer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if not self.relay.is_peer(scope):
            raise NotFound(f"POST {path}: Not Found.")  # as if it were not there
        if path == LINE_PATH:
            take = partial(take_passed, self._platform, self.relay.is_elsewhere)
            if not become_line(scope, take):
                raise Unavailable()
            return
        if path == SUBMIT_PATH:
            bytes_max = self._platform.settings.body_bytes_max + ENVELOPE_BYTES_MAX
            passed = await read_body(scope, receive, bytes_max)
            is_elsewhere = self.relay.is_elsewhere
            answer = await take_passed(self._platform, is_elsewhere, passed)
            await send_bytes(send, 200, answer)
            return
        body = await read_body(scope, receive, PEER_BYTES_MAX)
        if path == METRICS_PATH:
            await send_bytes(
                send, 200, self._of_processes.told(body) if self._of_processes else b""
            )
            return
        if path == RUNS_PATH:
            await send_bytes(send, 200, self.relay.tell_runs(body))
            return
        if path == WORKERS_PATH:
            await send_bytes(send, 200, self.relay.tell_workers(body))
            return
        self.relay.receive_hint(body)
        await Response(status_code=204)(scope, receive, send)


#: Names before ids: the router takes the first that fits.
COLD = sorted(
    (one for one in (*ENDPOINTS, *endpoints_of([pages, app_pages])) if not one.is_hot),
    key=lambda one: one.path.count("{"),
)


def _route(endpoint: Endpoint) -> Route:
    """Starlette's, behind a look at the key. The handler is given what it asks for."""
    asked = [GIVEN[name] for name in inspect.signature(endpoint.handler).parameters]

    async def handled(request: Request) -> Response:
        reply: Response = await endpoint.handler(*(of(request) for of in asked))
        return reply

    async def own(request: Request) -> Response:
        reply = await answer_of_all(request, endpoint.call, handled) or await handled(request)
        if REQUEST_ID in request.scope:  # it is in the audit: whoever asks can be told which line
            reply.headers["x-request-id"] = request.scope[REQUEST_ID]
        return reply

    async def answer(request: Request) -> Response:
        request.scope[ENDPOINT] = endpoint
        if endpoint.keys:
            await admit(request.scope, platform_of(request), endpoint)
        gate: RegionGate | None = request.app.state.gate
        if gate is not None:
            passed = await gate.reply(request, endpoint, own)
            if passed is not None:
                return passed
        return await own(request)

    return Route(endpoint.path, answer, methods=[endpoint.method])


class _ColdRoutes(Starlette):
    """Starlette without its own last resort, which answers in plain text: ours is in `Api`."""

    def __init__(self, edge: Edge, source: health.MetricsSource, gate: RegionGate | None) -> None:
        platform = edge.platform
        super().__init__(
            routes=[_route(one) for one in COLD],
            exception_handlers={FairwayError: _problem, HTTPException: _http_problem},
        )
        self.state.platform = platform
        self.state.gate = gate
        self.state.relay = edge.relay
        self.state.passing = edge.passing
        self.state.pages = page_slots()
        self.state.merges = merge_slots()
        self.state.dashboard = load()
        self.state.event_texts = events.Texts(platform.directory)
        self.state.metrics_text = source
        self.state.overview_text = OverviewText(platform)
        self.state.live_turns = OneByOne(platform.clock.now_us)
        self.state.whole_overviews = WholeOverviews(platform.clock.now_us)
        self.router.redirect_slashes = False

    def build_middleware_stack(self) -> ASGIApp:
        return ExceptionMiddleware(self._by_name, handlers=self.exception_handlers)

    async def _by_name(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The router would take `DELETE /v1/dead-letters/groups` for a dead letter named groups."""
        methods = NAMED.get(scope["path"]) if scope["type"] == "http" else None
        if methods is not None and scope["method"] not in methods:
            raise HTTPException(405)
        await self.router(scope, receive, send)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, FairwayError)
    known = told_where_known(error, platform_of(request).database)
    status, body, headers = problem_reply(known, request.scope.get(REQUEST_ID, ""))
    return Response(body, status, headers={k.decode(): v.decode() for k, v in headers})


async def _http_problem(request: Request, error: Exception) -> Response:
    """Starlette's own refusals, in our words; it does not know the hot paths, the table does."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    methods = allowed_methods(request.scope["path"])
    if methods:
        headers["Allow"] = ", ".join(methods)
    code = "METHOD_NOT_ALLOWED" if "Allow" in headers else "NOT_FOUND"
    sentence = f"{request.method} {request.scope['path'][:200]}: {_MEANINGS[code]}."
    reply = await _problem(request, FairwayError(sentence, code=code))
    reply.headers.update(headers)
    return reply


_MEANINGS = {"METHOD_NOT_ALLOWED": "Method Not Allowed", "NOT_FOUND": "Not Found"}
