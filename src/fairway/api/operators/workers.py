"""For operators: which workers there are, and asking one to drain.

The owners of the shards hear the workers. Whichever server is asked asks the others.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api.endpoint import Endpoint, Reply, path
from fairway.api.http.decoding import json_reply
from fairway.api.peers import AskedWorkers
from fairway.api.relay import Relay
from fairway.core.audit import Act, Actor
from fairway.core.errors import NotFound
from fairway.services.platform import Platform
from fairway.wire.operators.operator import WorkerList, WorkerView

_WORKER = {
    "name": "worker-1",
    "life": "9f86d081884c7d65",
    "tenant": None,
    "build": "2025-06-01",
    "slots": {"short": 50, "long": 2},
    "running": {"long": 1},
    "draining": False,
    "silent_seconds": 0.41,
    "silent": False,
    "limits": {"memory": "cgroup v2, watched", "cpu": "rlimit of each process, watched"},
    "closed_seconds": None,
    "closed_because": None,
}


@Endpoint(
    "GET /v1/workers",
    keys=("operator",),
    reply=Reply(200, "The workers, by name.", WorkerList, {"workers": [_WORKER]}),
    problems=("NOT_OWNER",),
)
async def list_workers(request: Request, platform: Platform) -> Response:
    """List workers

    Every worker that the platform hears, with what it runs and how firmly its machine holds jobs
    to their limits.
    """
    return _shown(await _relay(request).workers(AskedWorkers()))


@Endpoint(
    "POST /v1/workers/{name}/drain",
    keys=("operator",),
    parameters=(
        path(
            "name", "The worker's name, for all its lives; or a `life`, for that one.", "worker-1"
        ),
    ),
    reply=Reply(
        202,
        "It was asked; the list shows what it still runs.",
        WorkerList,
        {"workers": [_WORKER | {"draining": True}]},
    ),
    problems=("NOT_FOUND", "NOT_OWNER"),
)
async def drain_worker(request: Request, platform: Platform, actor: Actor) -> Response:
    """Drain a worker

    The worker takes no more jobs, asks those it runs to checkpoint and hand themselves back, waits
    as long as its own grace allows, and ends. No job uses an attempt for it.
    """
    name = request.path_params["name"]
    meant = await _relay(request).workers(AskedWorkers(name))
    if not meant:
        raise NotFound(f"There is no worker {name[:128]!r}; `GET /v1/workers` lists them.")
    owners = {one.tenant for one in meant}
    whose = owners.pop() if len(owners) == 1 else None
    act = Act(
        "drain_worker",
        name[:128],
        None if whose is None else platform.directory.id_of(whose),
        {"draining": [one.life for one in meant if one.draining]},
        {"draining": [one.life for one in meant]},
    )
    await platform.registry.note(actor, act)  # first: nobody drains without it
    return _shown(await _relay(request).workers(AskedWorkers(name, drain=True)), 202)


def _relay(request: Request) -> Relay:
    relay: Relay = request.app.state.relay
    return relay


def _shown(views: list[WorkerView], status: int = 200) -> Response:
    return json_reply(WorkerList(workers=views), status)
