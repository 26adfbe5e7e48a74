"""The HTTP API: the route table on one screen.

The hot paths are raw ASGI callables, matched by hand before anything else; the rest is Starlette.
Every error leaves as problem+json, whoever raised it.
"""

from __future__ import annotations

import secrets

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from fairway.api.docs import pages
from fairway.api.http.asgi import (
    BODY_PLACE,
    ClientGone,
    Receive,
    Scope,
    Send,
    give_back_room,
    problem_reply,
    read_body,
    send_problem,
)
from fairway.api.http.page_streams import page_places
from fairway.api.jobs import bulk, dead_letters, events, listing, restraints, schedules, uploads
from fairway.api.jobs.explain import ExplainJob
from fairway.api.jobs.jobs import OneJob
from fairway.api.jobs.submit import SubmitBatch, SubmitJob
from fairway.api.operators import keys_and_health, pools_and_types, tenants, workers
from fairway.api.reference import NAMED, allowed_methods
from fairway.api.relay import Relay
from fairway.api.workers import checkpoints
from fairway.api.workers.exchange import ExchangeEndpoint
from fairway.core.errors import FairwayError, NotFound, Unavailable
from fairway.runtime.telemetry import logger
from fairway.services.platform import Platform
from fairway.services.transient_errors import may_pass

log = logger("api")

JOB = "/v1/jobs/"
BATCH = "/v1/jobs/batch"
ONE_JOB = ("GET", "HEAD", "DELETE", "PATCH")
READ = ("GET", "HEAD")
WORKER = "/v1/workers/"
EXCHANGE = "/exchange"
EXPLAIN = "/explain"
HINT_BYTES_MAX = 4 << 20

ROUTES = [
    Route("/v1/jobs", listing.list_jobs, methods=["GET"]),
    Route("/v1/jobs/cancel", bulk.cancel_many, methods=["POST"]),
    Route("/v1/usage", bulk.usage, methods=["GET"]),
    Route("/v1/jobs/{id}/payload", uploads.payload, methods=["GET"]),
    Route("/v1/jobs/{id}/result", uploads.result, methods=["GET"]),
    Route("/v1/uploads", uploads.new_upload, methods=["POST"]),
    Route("/v1/uploads/{id}", uploads.put_upload, methods=["PUT"]),
    Route("/v1/workers/{name}/payloads/{id}", uploads.payload_for_worker, methods=["GET"]),
    Route("/v1/jobs/{id}/events", events.job_events, methods=["GET"]),
    Route("/v1/dead-letters", dead_letters.list_dead, methods=["GET"]),
    Route("/v1/dead-letters/groups", dead_letters.groups, methods=["GET"]),
    Route("/v1/dead-letters/replay", dead_letters.replay_many, methods=["POST"]),
    Route("/v1/dead-letters/discard", dead_letters.discard_many, methods=["POST"]),
    Route("/v1/dead-letters/actions", dead_letters.list_actions, methods=["GET"]),
    Route("/v1/dead-letters/actions/{id}", dead_letters.one_action, methods=["GET"]),
    Route("/v1/dead-letters/actions/{id}", dead_letters.abort, methods=["DELETE"]),
    Route("/v1/dead-letters/{id}", dead_letters.show, methods=["GET"]),
    Route("/v1/dead-letters/{id}", dead_letters.discard_one, methods=["DELETE"]),
    Route("/v1/dead-letters/{id}/replay", dead_letters.replay_one, methods=["POST"]),
    Route("/v1/restraints", restraints.restraints, methods=["GET"]),
    Route("/v1/quarantines/{type}", restraints.lift_quarantine, methods=["DELETE"]),
    Route("/v1/events", restraints.list_events, methods=["GET"]),
    Route("/v1/schedules", schedules.list_schedules, methods=["GET"]),
    Route("/v1/schedules/{name}", schedules.get_schedule, methods=["GET"]),
    Route("/v1/schedules/{name}", schedules.put_schedule, methods=["PUT"]),
    Route("/v1/schedules/{name}", schedules.delete_schedule, methods=["DELETE"]),
    Route("/v1/schedules/{name}/pause", schedules.pause, methods=["POST"]),
    Route("/v1/schedules/{name}/resume", schedules.resume, methods=["POST"]),
    Route("/v1/schedules/{name}/trigger", schedules.trigger, methods=["POST"]),
    Route("/v1/schedules/{name}/backfill", schedules.backfill, methods=["POST"]),
    Route("/v1/schedules/{name}/runs", schedules.list_runs, methods=["GET"]),
    Route("/v1/schedule-preview", schedules.preview, methods=["POST"]),
    Route("/v1/tenants", tenants.add_tenant, methods=["POST"]),
    Route("/v1/tenants/{name}", tenants.one_tenant, methods=["GET"]),
    Route("/v1/tenants/{name}", tenants.change_tenant, methods=["PATCH"]),
    Route("/v1/tiers", tenants.list_tiers, methods=["GET"]),
    Route("/v1/tiers/{name}", tenants.put_tier, methods=["PUT"]),
    Route("/v1/limits", tenants.limits, methods=["GET"]),
    Route("/v1/pauses", tenants.list_pauses, methods=["GET"]),
    Route("/v1/pauses", tenants.pause, methods=["POST"]),
    Route("/v1/pauses", tenants.resume, methods=["DELETE"]),
    Route("/v1/workers", workers.list_workers, methods=["GET"]),
    Route("/v1/workers/{name}/drain", workers.drain_worker, methods=["POST"]),
    Route("/v1/workers/{name}/checkpoints", checkpoints.save, methods=["POST"]),
    Route("/v1/workers/{name}/checkpoints/{id}", checkpoints.load, methods=["GET"]),
    Route("/v1/pools", pools_and_types.list_pools, methods=["GET"]),
    Route("/v1/pools/{name}", pools_and_types.put_pool, methods=["PUT"]),
    Route("/v1/job-types", pools_and_types.list_types, methods=["GET"]),
    Route("/v1/job-types/{name}", pools_and_types.one_type, methods=["GET"]),
    Route("/v1/job-types/{name}", pools_and_types.put_type, methods=["PUT"]),
    Route("/v1/job-types/{name}", pools_and_types.delete_type, methods=["DELETE"]),
    Route("/v1/audit", pools_and_types.list_audit, methods=["GET"]),
    Route("/v1/keys", keys_and_health.add_key, methods=["POST"]),
    Route("/v1/keys/{id}", keys_and_health.revoke_key, methods=["DELETE"]),
    Route("/livez", keys_and_health.livez, methods=["GET"]),
    Route("/readyz", keys_and_health.readyz, methods=["GET"]),
    Route("/metrics", keys_and_health.metrics, methods=["GET"]),
    Route("/openapi.json", pages.openapi, methods=["GET"]),
    Route("/docs", pages.reference, methods=["GET"]),
    Route("/docs.css", pages.style, methods=["GET"]),
    Route("/problems/{code}", pages.problem, methods=["GET"]),
    Route("/", pages.home, methods=["GET"]),
]


class Api:
    """The ASGI application of one server."""

    def __init__(self, platform: Platform) -> None:
        self.relay = Relay(platform)
        self._submit = SubmitJob(platform)
        self._batch = SubmitBatch(platform)
        self._job = OneJob(platform, self.relay)
        self._explain = ExplainJob(platform, self.relay)
        self._exchange = ExchangeEndpoint(platform, self.relay)
        self._calm = _Calm(platform, self.relay)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._calm(scope, receive, send)
            return
        try:
            await self._route(scope, receive, send)
        except FairwayError as error:
            await send_problem(send, error)
        except ClientGone:
            return
        except Exception as error:
            if may_pass(error):
                log.warning("store away", path=scope["path"], error=repr(error))
                await send_problem(send, Unavailable())
                return
            request_id = secrets.token_hex(8)
            log.exception("request failed", path=scope["path"], request_id=request_id)
            await send_problem(send, FairwayError(), request_id)
        finally:
            if BODY_PLACE in scope:
                give_back_room(scope)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        if method == "POST" and path == "/v1/jobs":
            await self._submit(scope, receive, send)
        elif method == "POST" and path == BATCH:
            await self._batch(scope, receive, send)
        elif method == "POST" and path.startswith(WORKER) and path.endswith(EXCHANGE):
            await self._exchange(scope, receive, send, path[len(WORKER) : -len(EXCHANGE)])
        elif (
            method in ONE_JOB
            and path.startswith(JOB)
            and path.count("/") == 3
            and path not in NAMED
        ):
            await self._job(scope, receive, send, path[len(JOB) :])
        elif method in READ and path.startswith(JOB) and path.endswith(EXPLAIN):
            await self._explain(scope, receive, send, path[len(JOB) : -len(EXPLAIN)])
        elif method == "POST" and path == "/internal/hint":
            await self._hint(scope, receive, send)
        else:
            await self._calm(scope, receive, send)

    async def _hint(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.relay.is_peer(scope):
            raise NotFound("POST /internal/hint: Not Found.")  # as if it were not there
        self.relay.hear_hint(await read_body(scope, receive, HINT_BYTES_MAX))
        await Response(status_code=204)(scope, receive, send)


class _Calm(Starlette):
    """Starlette without its own last resort, which answers in plain text: ours is in `Api`."""

    def __init__(self, platform: Platform, relay: Relay) -> None:
        super().__init__(
            routes=ROUTES,
            exception_handlers={FairwayError: _problem, HTTPException: _http_problem},
        )
        self.state.platform = platform
        self.state.relay = relay
        self.state.pages = page_places()
        self.state.event_texts = events.Texts(platform.directory)
        self.state.metrics_text = keys_and_health.MetricsText(platform.metrics)
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
    status, body, headers = problem_reply(error)
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
