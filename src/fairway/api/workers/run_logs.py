"""`POST /v1/workers/{name}/logs`: what runs said, from a worker; beside the exchange."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.workers.checkpoints import tenant_of_lease
from fairway.api.workers.reports import job_of
from fairway.core.errors import InvalidRequest
from fairway.core.ids import JobId, TenantId
from fairway.core.run.log_chunk import Chunk
from fairway.core.run.run_log import URGENT_LEVEL, fitted, mark_text
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.services.workers.run_logs import OfferedChunk
from fairway.wire import run_logs as wire

CHUNK_BYTES = 64 << 10  # about: a reader has some of them in memory
AROUND_LINE_BYTES = 60


@Endpoint(
    "POST /v1/workers/{name}/logs",
    keys=("worker",),
    parameters=(parts.WORKER_PATH,),
    body=wire.KeepLines,
    body_example={
        "runs": [
            {
                "job": parts.JOB_ID,
                "tenant": "acme",
                "epoch": 50331649,
                "token": parts.TOKEN,
                "attempt": 1,
                "lines": [{"n": 1, "at_ms": 1769860800123, "level": 20, "text": "sent 3 of 5"}],
            }
        ]
    },
    reply=Reply(200, "What became of them.", wire.LinesKept, {"kept": 1, "dropped": 0}),
    problems=("TOO_MANY_VALUES", "NO_ROOM", "OVERLOADED"),
)
async def keep_lines(request: Request, platform: Platform, principal: Principal) -> Response:
    """Keep what runs said

    Lines of runs that are under way or have just ended, to be shown with their jobs. Nothing about
    a job depends on this call: after a failure send it again, or leave it. Lines that come twice
    are shown once. What is beyond a tenant's part is left out, and a mark tells how many.
    """
    tenant = None if principal.tenant is None else principal.tenant.id
    counted = platform.bodies.of_worker(tenant, request.path_params["name"])
    said = await decoded(request, wire.KeepLines, wire.CALL_BYTES_MAX, counted=counted)
    count = sum(len(run.lines) for run in said.runs)
    if count > wire.CALL_LINES_MAX:
        raise InvalidRequest(
            f"A call brings at most {wire.CALL_LINES_MAX} lines; send several calls.",
            code="TOO_MANY_VALUES",
            field="/runs",
        )
    offered = [
        chunk
        for run in said.runs
        if platform.dispatcher.is_real(job_of(run.job), run.epoch, run.token)
        for chunk in _chunks(tenant_of_lease(platform, principal, run.tenant), run)
    ]
    kept = sum(one.line_count for one in offered)
    if offered:
        kept -= await platform.run_logs.keep(offered)
    return json_reply(wire.LinesKept(kept=kept, dropped=count - kept))


def _chunks(tenant: TenantId, run: wire.RunLines) -> Iterator[OfferedChunk]:
    """In the order of their numbers, each number once, in parts that are quick to read."""
    lines = sorted({line.n: line for line in run.lines}.values(), key=lambda line: line.n)
    part: list[wire.SaidLine] = []
    size_bytes = 0
    for said in lines:
        line = msgspec.structs.replace(said, text=fitted(said.text))
        own_bytes = len(line.text.encode()) + AROUND_LINE_BYTES
        if part and size_bytes + own_bytes > CHUNK_BYTES:
            yield _chunk(tenant, run, part)
            part, size_bytes = [], 0
        part.append(line)
        size_bytes += own_bytes
    yield _chunk(tenant, run, part)


def _chunk(tenant: TenantId, run: wire.RunLines, lines: list[wire.SaidLine]) -> OfferedChunk:
    job, first, count = JobId(job_of(run.job)), lines[0], sum(line.dropped or 1 for line in lines)
    mark = wire.SaidLine(
        n=first.n, at_ms=first.at_ms, level=URGENT_LEVEL, text=mark_text(count), dropped=count
    )
    chunk = Chunk(
        tenant,
        job,
        run.epoch,
        run.attempt,
        first.n,
        lines[-1].n,
        msgspec.json.encode(lines),
    )
    return OfferedChunk(chunk, msgspec.json.encode([mark]), len(lines))
