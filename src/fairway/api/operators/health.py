"""For load balancers and monitoring: health, metrics. No key is needed: bind to a safe address."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import principal_of
from fairway.api.endpoint import Endpoint, Reply, query
from fairway.api.http.decoding import json_reply
from fairway.core.errors import InvalidRequest
from fairway.runtime.telemetry import Metrics
from fairway.services.platform import Platform
from fairway.wire.operators.operator import Health

METRICS_SECONDS = 0.1  # a stranger may ask as often as it likes; a look takes milliseconds
NAMES_MAX = 20  # of so few, each look is cheap and need not be kept


@Endpoint(
    "GET /livez",
    reply=Reply(200, "Alive.", Health, {"status": "ok"}),
)
async def livez(request: Request) -> Response:
    """Is the process alive?

    Never asks the database, so a database that is away restarts no server.
    """
    return json_reply(Health(status="ok"))


@Endpoint(
    "GET /readyz",
    replies=(
        Reply(
            200,
            "Ready.",
            Health,
            {
                "status": "ok",
                "checks": {"database": True, "jobs_writable": True, "shards_open": True},
            },
        ),
        Reply(
            503,
            "Not ready.",
            Health,
            {
                "status": "not ready",
                "checks": {"database": True, "jobs_writable": False, "shards_open": True},
            },
        ),
    ),
)
async def readyz(request: Request) -> Response:
    """Can it take work?

    The database answers, jobs can be written (nobody holds a lock on their table, and it is not
    read-only) and shards have owners that give their jobs out: all of them when a server starts,
    and some ever after. Not ready is a 503 that says which check does not hold.
    """
    platform: Platform = request.app.state.platform
    checks = await platform.readiness.checks()
    ok = all(checks.values())
    return json_reply(Health(status="ok" if ok else "not ready", checks=checks), 200 if ok else 503)


@Endpoint(
    "GET /metrics",
    other_keys=("operator",),
    parameters=(
        query(
            "name[]",
            f"Only samples of this name; up to {NAMES_MAX} of them, each as a parameter of its own."
            " A name that there is none of is left out.",
            "",
            "fairway_jobs_accepted_total",
        ),
    ),
    reply=Reply(
        200,
        "The Prometheus text format.",
        example="# HELP fairway_jobs_accepted_total Jobs on disk and answered 202.\n"
        "# TYPE fairway_jobs_accepted_total counter\nfairway_jobs_accepted_total 1234.0\n",
        media="text/plain",
    ),
)
async def metrics(request: Request) -> Response:
    """Metrics of this server

    For Prometheus. Every server answers for itself, and for all of its processes where it has
    several (`FAIRWAY_SERVER_PROCESSES`). Metrics by job type, such as
    `fairway_lateness_seconds`, are shown with an operator's key only, or to everybody when
    `FAIRWAY_METRICS_NAME_TYPES` is `true`.

    All of them take milliseconds of the server's time. A program that wants one figure, often,
    asks for it by `name[]`.
    """
    source: MetricsSource = request.app.state.metrics_text
    names_types = await _may_hear_types(request)
    text = await source.now(names_types=names_types, only=_names_asked(request))
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _names_asked(request: Request) -> frozenset[str]:
    """Empty: all of them."""
    names = frozenset(request.query_params.getlist("name[]"))
    if len(names) > NAMES_MAX:
        raise InvalidRequest(
            f"These are {len(names)} names; ask for up to {NAMES_MAX}, or for all by none.",
            field="name[]",
        )
    return names


async def _may_hear_types(request: Request) -> bool:
    platform: Platform = request.app.state.platform
    is_told = platform.settings.metrics_name_types
    if "authorization" in request.headers:  # a wrong key is told so, not given less in silence
        principal = await principal_of(request.scope, platform)
        return is_told or principal.scope == "operator"
    return is_told


class MetricsSource(Protocol):
    """Where the text of `/metrics` comes from: this process, or all of them."""

    async def now(self, *, names_types: bool, only: Collection[str] = ()) -> bytes: ...


class MetricsText:
    """The metrics as text, a moment old: anybody may ask for it, as often as they like."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._text, self._by_type, self._good_until = b"", b"", 0.0

    async def now(self, *, names_types: bool, only: Collection[str] = ()) -> bytes:
        text, by_type = self.named(only) if only else self.parts()
        return text + by_type if names_types else text

    def named(self, only: Collection[str]) -> tuple[bytes, bytes]:
        """As `parts`, of these names alone."""
        plain = generate_latest(self._metrics.registry.restricted_registry(only))
        return plain, generate_latest(self._metrics.by_type.restricted_registry(only))

    def parts(self) -> tuple[bytes, bytes]:
        """What everybody may hear, and what names job types."""
        now = asyncio.get_running_loop().time()
        if now >= self._good_until:
            self._text = generate_latest(self._metrics.registry)
            self._by_type = generate_latest(self._metrics.by_type)
            self._good_until = now + METRICS_SECONDS
        return self._text, self._by_type
