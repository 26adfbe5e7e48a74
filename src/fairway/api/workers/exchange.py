"""`POST /v1/workers/{name}/exchange`, raw ASGI: wire messages in, services' values out."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import msgspec

from fairway.api import endpoint_parts as parts
from fairway.api.auth import check_bounds
from fairway.api.endpoint import Endpoint, Reply, path, query
from fairway.api.http.asgi import (
    BODY_RESERVATION,
    Receive,
    Scope,
    Send,
    give_back_room,
    read_body,
    send_whole,
)
from fairway.api.http.decoding import UNDECODABLE, invalid
from fairway.api.payloads.body_cost import LIGHT_BYTES, check_text, weigh
from fairway.api.payloads.payload_schema import compiled, sized_text
from fairway.api.payloads.text_checks import flaws_in
from fairway.api.relay import Edge
from fairway.api.type_facts import facts_of
from fairway.api.workers.follow_ups import FollowUpReader
from fairway.api.workers.misplaced_types import told, why_misplaced, without
from fairway.api.workers.owners import OwnerWords, is_passed_on, offer_of
from fairway.api.workers.reports import Failure, job_of, read_failure, text_of, unreadable
from fairway.core.backpressure.connections import STAFF
from fairway.core.errors import InvalidRequest, LimitReached, Unavailable
from fairway.core.ids import TenantId
from fairway.core.insight.trace_context import traceparent_of
from fairway.core.job_type import TypeFacts
from fairway.core.object_storage.reference import MARK, referred
from fairway.core.pools import Pool
from fairway.core.run.follow_up_ids import FOLLOW_UPS_BYTES_MAX
from fairway.core.run.follow_ups import WantedFollowUps
from fairway.core.run.outcome import OutcomeKind
from fairway.runtime.loops import WorkInParts
from fairway.services.backpressure.body_memory import CALL_BYTES_MAX
from fairway.services.registry.principal import Principal
from fairway.services.sessions.calls import Call, Report
from fairway.services.sessions.hello import Hello
from fairway.services.sessions.sessions import Holding, Lease, News, shed_payloads
from fairway.wire import bounds
from fairway.wire import exchange as wire
from fairway.wire.messages import EMPTY_OBJECT

VALUES_MAX = 1_000_000  # taken apart, not decoded: results may hold many
#: A result, what the run starts, and all that is said beside it.
REPORT_BYTES_MAX = bounds.RESULT_BYTES_MAX + FOLLOW_UPS_BYTES_MAX + (1 << 20)
BODY_SECONDS_MAX = 300.0  # a worker's link may be slow, and a result large
SUCCEEDED = OutcomeKind.SUCCEEDED.value
#: What a type may ask of its `RetryPolicy`.
RETRY_BOUNDS = tuple(name for name in wire.TypeTerms.__struct_fields__ if name.endswith("_max"))
WORKER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


class LargeRequest(wire.ExchangeRequest, kw_only=True):
    """As an exchange, its lists taken apart and not looked into yet."""

    # On the wire the same texts; only how far they are decoded differs.
    reports: list[msgspec.Raw] = msgspec.field(default_factory=list)  # type: ignore[assignment]
    running: list[msgspec.Raw] | None = None  # type: ignore[assignment]
    # To be weighed by itself: it is decoded in one go.
    hello: msgspec.Raw = wire.NULL  # type: ignore[assignment]


_decode_large = msgspec.json.Decoder(LargeRequest).decode
_decode_hello = msgspec.json.Decoder(wire.Hello | None).decode


@Endpoint(
    "POST /v1/workers/{name}/exchange",
    keys=("worker",),
    parameters=(
        path("name", "The worker's name, for people. Letters, digits and `_.:-`.", "worker-1"),
        query(
            "owner",
            "Which owner is meant, as its address in `owners`: any server passes the call on.",
            "",
        ),
    ),
    body=wire.ExchangeRequest,
    body_example={
        "session": "0123456789abcdef0123456789abcdef",
        "hello": {"types": [{"name": "email.send"}], "slots": {"short": 50}},
        "running": [],
        "wait_ms": 1000,
    },
    reply=Reply(
        200,
        "The news, after at most 20 seconds; fields without news are left out.",
        wire.ExchangeReply,
        {
            "leases": [
                {
                    "job": parts.JOB_ID,
                    "epoch": 50331649,
                    "token": parts.TOKEN,
                    "type": "email.send",
                    "pool": "short",
                    "tenant": "acme",
                    "attempt": 1,
                    "delivery": 1,
                    "payload": {"to": "ada@example.com", "template": "welcome"},
                }
            ],
            "beat_ms": 3333,
        },
    ),
    problems=(
        "UNKNOWN_POOL",
        "SESSION_OF_ANOTHER_KEY",
        "TOO_MANY_SESSIONS",
        "TOO_MANY_SLOTS",
        "TOO_MANY_VALUES",
        "NO_ROOM",
        "OVERLOADED",
        "NOT_OWNER",
    ),
)
class Exchange:
    """Exchange outcomes for leases

    The one call of a worker. Up go its slots, the outcomes of runs and their progress; down come
    leases, cancellations, revoked leases and which outcomes are on disk. The call is held for
    `wait_ms` until there is news.

    Three rules make it safe over any network. Send an outcome again until its number comes back in
    `recorded` or `refused`. After a call that failed, or a reply with `resync`, send `hello` and
    the whole of `running`. A new process is a new `session`. The page EXCHANGE in the
    documentation tells it all.
    """

    def __init__(self, edge: Edge) -> None:
        platform = self._platform = edge.platform
        self._relay = edge.relay
        self._pools = platform.registry.pools
        self._follow_ups = FollowUpReader(platform.registry)
        self._owner_words = OwnerWords(platform)

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, worker: str
    ) -> None:
        if not WORKER_NAME.fullmatch(worker):
            raise InvalidRequest(
                "A worker's name has 1 to 128 letters, digits and _.:- and begins with a letter or"
                " digit.",
                field="name",
            )
        tenant = None if principal.tenant is None else principal.tenant.id
        counted = self._platform.bodies.of_worker(tenant, worker)
        body = await read_body(scope, receive, CALL_BYTES_MAX, BODY_SECONDS_MAX, counted=counted)
        if await is_passed_on(self._relay, self._platform.settings.url, scope, body, send):
            return
        request = await self._request(principal, body)
        # of a tenant's own worker nobody looks at the pools
        misplaced = {} if principal.tenant else why_misplaced(request, self._pools.by_name)
        call = await self._call(principal, worker, without(request, misplaced))
        self._platform.revocation.check(principal.key_id)  # a slow body takes minutes
        if BODY_RESERVATION in scope:
            del body
            call = call._replace(on_heard=partial(_forget, scope, call))
        news = await self._platform.exchange.call(call)
        reply = self._reply(news) if news else wire.ExchangeReply(resync=True)
        if news and news.leases:
            shed_payloads(news.leases)
        reply = self._owner_words.told(scope, request, told(reply, misplaced))
        await send_whole(scope, send, 200, wire.encode(reply))

    async def _request(self, principal: Principal, body: bytes) -> wire.ExchangeRequest:
        try:
            if len(body) > LIGHT_BYTES:
                return await self._large_request(principal, body)
            body.decode()  # raw parts are kept as they came: all of the text must be text
            return wire.decode_request(body)
        except UNDECODABLE as error:
            raise invalid(error) from None

    async def _large_request(self, principal: Principal, body: bytes) -> wire.ExchangeRequest:
        """In parts: no call of the codec may take long, and others are answered in between."""
        try:
            look = partial(_taken_apart, body)
            large, hello = await self._platform.heavy.run(principal.holder, look, len(body))
        except LimitReached as error:
            raise Unavailable(error.message, code="OVERLOADED") from None  # a worker comes again
        work, reports, running = WorkInParts(), [], None
        for text in large.reports:
            if len(text) > REPORT_BYTES_MAX:
                raise InvalidRequest(
                    f"A report has at most {REPORT_BYTES_MAX} bytes, and its result at most"
                    f" {bounds.RESULT_BYTES_MAX}: store more elsewhere, and return where.",
                    code="PAYLOAD_TOO_LARGE",
                    field="/reports",
                )
            reports.append(wire.decode_report(text))
            await work.let_others()
        if large.running is not None:
            running = []
            for text in large.running:
                running.append(wire.decode_holding(text))
                await work.let_others()
        said = {name: getattr(large, name) for name in wire.ExchangeRequest.__struct_fields__}
        said |= {"hello": hello, "reports": reports, "running": running}
        return wire.ExchangeRequest(**said)

    async def _call(self, principal: Principal, worker: str, request: wire.ExchangeRequest) -> Call:
        tenant = principal.tenant
        work, running = WorkInParts(), None
        successes: list[Report] = []
        failures: list[Failure] = []
        if request.running is not None:
            running = []
            for holding in request.running:
                running.append(self._holding(holding))
                await work.let_others()
        for report in request.reports:
            if report.kind == SUCCEEDED:
                successes.append(report)
            else:
                failures.append(read_failure(report))
                await work.let_others()
        # Most often there is nothing to look at, and nothing is to be awaited then.
        said = {n: one.result for n, one in enumerate(successes) if one.result is not wire.NULL}
        if said and (flaws := await flaws_in(self._platform.heavy, principal.holder, said)):
            failures += unreadable(successes, flaws)
            successes = [one for index, one in enumerate(successes) if index not in flaws]
        follow_ups: dict[int, WantedFollowUps] = {}
        if parents := [one for one in request.reports if one.follow_ups and one.kind == SUCCEEDED]:
            follow_ups, refused = await self._follow_ups.read(parents)
            successes = [one for one in successes if one.kind == SUCCEEDED]
            failures += refused
        return Call(
            session=request.session,
            number=request.call,
            worker=worker,
            tenant=tenant.id if tenant else None,
            hello=await self._hello(principal, request.hello),
            running=running,
            successes=successes,
            failures=failures,
            wait_seconds=request.wait_ms / 1000,
            draining=request.draining,
            goodbye=request.goodbye,
            is_whole=request.running_is_all,
            api_key=principal.key_id,
            follow_ups=follow_ups,
            only_tenants=principal.only_tenants,
            recycled=request.recycled,
            offer=offer_of(self._pools, request.offer),
        )

    async def _hello(self, principal: Principal, hello: wire.Hello | None) -> Hello | None:
        if hello is None:
            return None
        if len({one.name for one in hello.types}) < len(hello.types):
            raise InvalidRequest("A type is named twice; name each once.", field="/hello/types")
        if sum(hello.slots.values()) > bounds.SLOTS_MAX:
            raise InvalidRequest(
                f"A worker has at most {bounds.SLOTS_MAX} slots, all pools together; run several.",
                field="/hello/slots",
            )
        check_bounds(principal, hello)
        types, work, is_shared = {}, WorkInParts(), principal.tenant is None
        bounds_asked: dict[str, dict[str, int]] = {}
        for one in hello.types:
            # A tenant's own worker does not speak for everybody's types: nobody looks at its facts.
            types[one.name] = await self._facts(one) if is_shared else TypeFacts()
            asked = {name: getattr(one, name) for name in RETRY_BOUNDS}
            bounds_asked[one.name] = {name: n for name, n in asked.items() if n is not None}
            await work.let_others()
        build = bounds.cut(hello.build, bounds.BUILD_CHARACTERS_MAX)
        limits = bounds.cut_limits(hello.limits)
        labels, warm_keys = tuple(hello.labels), tuple(hello.warm_keys)
        return Hello(types, hello.slots, build, limits, labels, warm_keys, bounds_asked)

    async def _facts(self, one: wire.TypeTerms) -> TypeFacts:
        return facts_of(
            one,
            pool=None if one.pool is None else self._pools.named(one.pool, "/hello/types").number,
            timeout_ms=one.timeout_ms,
            attempts_max=one.attempts_max,
            schema=None if one.schema is None else await self._schema(one.name, one.schema),
        )

    async def _schema(self, type_name: str, schema: dict[str, Any]) -> bytes:
        """Workers say the same at every hello: only what is news is looked at, and in a thread."""
        text = sized_text(schema)
        if text != self._platform.registry.schemas.get(type_name):
            await self._platform.heavy.run(STAFF, partial(compiled, schema))
        return text

    def _tenant(self, name: str) -> TenantId:
        return self._platform.directory.id_of(name)

    def _holding(self, one: wire.Holding) -> Holding:
        progress = text_of(one.progress)
        if progress is not None:
            progress = bounds.shown_progress(progress)
        tenant = self._tenant(one.tenant)
        return Holding(job_of(one.job), tenant, one.epoch, one.token, progress, one.ended)

    def _reply(self, news: News) -> wire.ExchangeReply:
        return wire.ExchangeReply(
            leases=self._leases(news.leases),
            recorded=news.recorded,
            refused=news.refused,
            dead=news.dead,
            cancel=news.cancels,
            revoked=news.revoked,
            revoked_epochs=news.revoked_epochs,
            more=news.more,
            drain=news.drain,
            beat_ms=news.heartbeat_ms,
            degraded=self._platform.dispatcher.is_degraded(),
            refused_types=list(news.refused_types),
        )

    def _leases(self, leases: list[Lease]) -> list[wire.Lease]:
        """Hundreds at a time: one loop with everything at hand."""
        directory, pools, said = self._platform.directory, self._pools.by_number, []
        types, tenants = directory.type_names, directory.tenants
        for lease in leases:
            job = lease.job
            pool, tenant = pools[job.pool], tenants.get(job.tenant)
            is_plain = pool.is_plain and job.trace is None and job.payload[:1] != MARK
            is_plain = is_plain and lease.home is None
            if tenant is None or not is_plain:
                said.append(self._special_lease(lease, pool))
                continue
            said.append(
                wire.Lease(
                    job=job.id,
                    epoch=lease.epoch,
                    token=lease.token,
                    type=types[job.type],
                    pool=pool.name,
                    tenant=tenant.name,
                    attempt=job.attempts + 1,
                    delivery=job.deliveries + 1,
                    payload=msgspec.Raw(job.payload),
                    timeout_ms=job.timeout_ms,
                )
            )
        return said

    def _special_lease(self, lease: Lease, pool: Pool) -> wire.Lease:
        """Of a pool with a run mode or checkpoints, of a tenant not known here yet, within a trace,
        with a payload too large to be here, or moved with its tenant."""
        job, directory = lease.job, self._platform.directory
        large = referred(job.payload) if job.payload[:1] == MARK else None
        return wire.Lease(
            job=job.id,
            epoch=lease.epoch,
            token=lease.token,
            type=directory.type_names[job.type],
            pool=pool.name,
            tenant=directory.name_of(job.tenant),
            attempt=job.attempts + 1,
            delivery=job.deliveries + 1,
            payload=msgspec.Raw(job.payload) if large is None else EMPTY_OBJECT,
            payload_bytes=None if large is None else large.size_bytes,
            payload_sha256=None if large is None else large.sha256.hex(),
            timeout_ms=job.timeout_ms,
            run_mode=pool.run_mode,
            shard=lease.home,
            resumes=job.epoch > 0 and pool.checkpoint != "none",
            traceparent=None if job.trace is None else traceparent_of(job.trace),
        )


def _forget(scope: Scope, call: Call) -> None:
    """All of a large call was heard: while it is held open, nothing of its body is kept."""
    call.successes.clear()
    call.failures.clear()
    give_back_room(scope)


def _taken_apart(body: bytes) -> tuple[LargeRequest, wire.Hello | None]:
    check_text(body)
    weigh(body, VALUES_MAX, "Send several calls.")
    large = _decode_large(body)
    if len(large.reports) + len(large.running or ()) > bounds.ITEMS_MAX:
        raise InvalidRequest(
            f"A call brings at most {bounds.ITEMS_MAX} reports and holdings; send several calls.",
            code="TOO_MANY_VALUES",
            field="/reports",
        )
    weigh(bytes(large.hello))
    return large, _decode_hello(large.hello)
