"""The HTTP API: the route table on one screen.

Four hot paths are raw ASGI callables, matched by hand before anything else; the rest is Starlette.
Every error leaves as problem+json, whoever raised it.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairway.api import docs, jobs, operate
from fairway.api.exchange import ExchangeEndpoint
from fairway.api.jobs import OneJob
from fairway.api.plain import Receive, Scope, Send, problem_reply, read_body, send_problem
from fairway.api.relay import Relay
from fairway.api.submit import SubmitBatch, SubmitJob
from fairway.core.errors import FairwayError
from fairway.runtime.telemetry import logger
from fairway.services.platform import Platform

log = logger("api")

JOB = "/v1/jobs/"
WORKER = "/v1/workers/"
EXCHANGE = "/exchange"

ROUTES = [
    Route("/v1/jobs", jobs.list_jobs, methods=["GET"]),
    Route("/v1/jobs/{id}/events", jobs.job_events, methods=["GET"]),
    Route("/v1/tenants", operate.add_tenant, methods=["POST"]),
    Route("/v1/keys", operate.add_key, methods=["POST"]),
    Route("/v1/keys/{id}", operate.revoke_key, methods=["DELETE"]),
    Route("/livez", operate.livez, methods=["GET"]),
    Route("/readyz", operate.readyz, methods=["GET"]),
    Route("/metrics", operate.metrics, methods=["GET"]),
    Route("/openapi.json", docs.openapi, methods=["GET"]),
    Route("/docs", docs.page, methods=["GET"]),
    Route("/problems/{code}", docs.problem, methods=["GET"]),
    Route("/", docs.home, methods=["GET"]),
]


class Api:
    """The ASGI application of one server."""

    def __init__(self, platform: Platform) -> None:
        self.relay = Relay(platform)
        self._submit = SubmitJob(platform)
        self._batch = SubmitBatch(platform)
        self._job = OneJob(platform, self.relay)
        self._exchange = ExchangeEndpoint(platform, self.relay)
        self._calm = _starlette(platform)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._calm(scope, receive, send)
            return
        try:
            await self._route(scope, receive, send)
        except FairwayError as error:
            await send_problem(send, error)
        except ConnectionResetError:
            return  # nobody is there to be answered
        except Exception as error:
            log.exception("request failed", path=scope["path"], error=repr(error))
            await send_problem(send, FairwayError())

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        if method == "POST" and path == "/v1/jobs":
            await self._submit(scope, receive, send)
        elif method == "POST" and path == "/v1/jobs/batch":
            await self._batch(scope, receive, send)
        elif method == "POST" and path.startswith(WORKER) and path.endswith(EXCHANGE):
            await self._exchange(scope, receive, send, path[len(WORKER) : -len(EXCHANGE)])
        elif method in ("GET", "HEAD", "DELETE") and path.startswith(JOB) and path.count("/") == 3:
            await self._job(scope, receive, send, path[len(JOB) :])
        elif method == "POST" and path == "/internal/hint":
            await self._hint(scope, receive, send)
        else:
            await self._calm(scope, receive, send)

    async def _hint(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(scope, receive, 4 << 20)
        status = 204 if self.relay.hear_hint(scope, body) else 404
        await Response(status_code=status)(scope, receive, send)


def _starlette(platform: Platform) -> Starlette:
    app = Starlette(
        routes=ROUTES,
        exception_handlers={FairwayError: _problem, HTTPException: _http_problem},
    )
    app.state.platform = platform
    return app


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, FairwayError)
    status, body, headers = problem_reply(error)
    return Response(body, status, headers={k.decode(): v.decode() for k, v in headers})


async def _http_problem(request: Request, error: Exception) -> Response:
    """Starlette's own refusals, in our words."""
    assert isinstance(error, HTTPException)
    code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "INVALID_REQUEST")
    sentence = f"{request.method} {request.url.path}: {error.detail}."
    reply = await _problem(request, FairwayError(sentence, code=code))
    reply.headers.update(error.headers or {})
    return reply
