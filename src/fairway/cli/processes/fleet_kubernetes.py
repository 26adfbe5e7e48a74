"""A Deployment as the hand of the autoscaler: its scale is patched, from inside the cluster.

Kubernetes chooses by itself which pods end when a Deployment shrinks; pods with a lower
`pod-deletion-cost` end first. So those of workers that may go are marked before the scale is
lowered, and it is lowered by no more than were marked.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from fairway.core.autoscale.division import PoolWish
from fairway.core.errors import InvalidRequest, Unavailable
from fairway.runtime.telemetry import logger

log = logger("fleet")

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
COST = "controller.kubernetes.io/pod-deletion-cost"
COST_OF_IDLE = "-1000"
WAIT_SECONDS = 10.0
MERGE = "application/merge-patch+json"


class ApiServer(NamedTuple):
    url: str
    token: Path | None  # a file: it is renewed now and then
    authority: Path | None


def in_cluster(environment: Mapping[str, str]) -> ApiServer:
    """Where a pod finds its cluster."""
    host, port = (environment.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
    if not host:
        raise InvalidRequest(
            "--deployment: this runs in no pod of a cluster (KUBERNETES_SERVICE_HOST is not set)."
        )
    shown = f"[{host}]" if ":" in host else host
    return ApiServer(f"https://{shown}:{port or 443}", ACCOUNT / "token", ACCOUNT / "ca.crt")


class DeploymentActuator:
    def __init__(self, server: ApiServer, deployment: str) -> None:
        namespace, slash, name = deployment.partition("/")
        if not (namespace and slash and name):
            raise InvalidRequest(f"--deployment {deployment}: write it as namespace/name.")
        self._server = server
        self._pods = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        self._scale = (
            f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}"
            f"/deployments/{quote(name, safe='')}/scale"
        )
        self._marked: set[str] = set()

    async def act(self, wish: PoolWish) -> None:
        try:
            await asyncio.to_thread(self._act, wish)
        except Unavailable as error:
            log.error("the cluster was not scaled; trying again", why=error.message)

    async def close(self, hurried: asyncio.Event) -> None:
        """Nothing: its pods go on."""

    def _act(self, wish: PoolWish) -> None:
        replicas = int(self._call("GET", self._scale)["spec"].get("replicas") or 0)
        marked = {name for name in wish.may_go if name in self._marked or self._mark(name)}
        for name in self._marked - set(wish.may_go):
            self._mark(name, None)  # it is needed again, or gone
        self._marked = marked
        wanted = max(wish.wanted, replicas - len(marked))
        if wanted != replicas:
            self._call("PATCH", self._scale, {"spec": {"replicas": wanted}})
            log.info("deployment scaled", before=replicas, after=wanted)

    def _mark(self, pod: str, cost: str | None = COST_OF_IDLE) -> bool:
        """Whether there is such a pod."""
        body = {"metadata": {"annotations": {COST: cost}}}
        where = f"{self._pods}/{quote(pod, safe='')}"
        return self._call("PATCH", where, body, missing_is_well=True) is not None

    def _call(
        self, method: str, path: str, body: Any = None, *, missing_is_well: bool = False
    ) -> Any:
        try:
            status, content = self._exchange(method, path, body)
            if status == 404 and missing_is_well:
                return None
            if status >= 400:
                raise Unavailable(f"{method} {path} was answered with {status}.")
            return msgspec.json.decode(content)
        except (HTTPException, OSError, msgspec.DecodeError) as error:
            raise Unavailable(f"{method} {path}: {error}") from error

    def _exchange(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        headers = {"accept": "application/json"}
        if self._server.token is not None:
            headers["authorization"] = f"Bearer {self._server.token.read_text().strip()}"
        content = None
        if body is not None:
            headers["content-type"] = MERGE
            content = msgspec.json.encode(body)
        with closing(self._connection()) as connection:
            connection.request(method, path, content, headers)
            reply = connection.getresponse()
            return reply.status, reply.read()

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self._server.url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "http":
            return HTTPConnection(host, port, timeout=WAIT_SECONDS)
        context = ssl.create_default_context(cafile=self._server.authority)
        return HTTPSConnection(host, port, timeout=WAIT_SECONDS, context=context)
