"""`POST /v1/jobs/batch`, as a raw ASGI callable: many jobs, each with a verdict of its own."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from fairway.api import endpoint_parts as parts
from fairway.api.auth import tenant_in_force
from fairway.api.endpoint import Endpoint, Reply
from fairway.api.http.asgi import BODY_BYTES, JSON, Receive, Scope, Send, read_body, send_whole
from fairway.api.http.headers import (
    idempotency_key,
    rate_limit,
    trace_header,
)
from fairway.api.jobs.batch_items import BatchHeaders, items_of, may_fail_alone
from fairway.api.jobs.submit import (
    EMAIL,
    OF_SUBMISSIONS,
    REPLAYED,
    decode,
    hash_of,
    look_at,
    new_job,
)
from fairway.api.jobs.submit_large import submit_large
from fairway.api.jobs.unique import replaces_others
from fairway.api.payloads.body_cost import (
    LIGHT_BYTES,
    is_brief,
    is_large,
    weigh,
)
from fairway.api.payloads.payload_schema import PayloadSchemas
from fairway.api.relay import Edge
from fairway.api.tenant_parts.placing import JobsToPlace, in_parts
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.services.registry.principal import Principal
from fairway.services.submit.refused_places import with_refused
from fairway.services.submit.submission_group import Accepted, NewJob, Verdict, WholeKey
from fairway.wire import messages
from fairway.wire.payload import (
    DEPTH_MAX,
    brackets,
    check_carefully,
    is_strict,
)
from fairway.wire.problems import problem_of
from fairway.wire.value_count import BATCH_VALUES_MAX

if TYPE_CHECKING:
    from fairway.runtime.otlp_spans import JobSpan

SHALLOW_BYTES = 2 * DEPTH_MAX  # a text this short cannot nest too deeply
SPLIT_IT = "Send several smaller batches, and large payloads to where POST /v1/uploads says."
PART_ITEMS = 32  # of a batch, between two looks at the clock
SHORT_ITEMS = 256  # looked at within some two milliseconds
Wanted: TypeAlias = NewJob | FairwayError  # of a batch: a job, or what is wrong with it


@Endpoint(
    "POST /v1/jobs/batch",
    keys=("tenant",),
    permission="submit",
    parameters=(parts.IDEMPOTENCY_KEY, parts.TRACEPARENT),
    body=messages.BatchRequest,
    body_example={"jobs": [EMAIL, {"type": "report.build", "pool": "medium", "priority": 9}]},
    reply=Reply(
        200,
        "One item per job, in the order they were sent. Look at each `status`.",
        messages.BatchReply,
        {
            "accepted": 1,
            "items": [
                {"status": 202, "id": parts.JOB_ID},
                {
                    "status": 422,
                    "problem": {
                        "type": "/problems/unknown-pool",
                        "title": "There is no such pool",
                        "status": 422,
                        "code": "UNKNOWN_POOL",
                        "detail": "There is no pool 'huge'; there are short, medium, long.",
                        "errors": [{"pointer": "/pool", "detail": "There is no pool 'huge'."}],
                    },
                },
            ],
        },
        headers=(parts.REPLAYED, parts.RATE_LIMIT, parts.RATE_LIMIT_POLICY, parts.OWNER),
    ),
    problems=(*OF_SUBMISSIONS, "NOT_OWNER"),
)
class SubmitBatch:
    """Submit many jobs

    Up to 10,000 jobs in one request, each with a status of its own: one bad job does not keep the
    others out, and pointers in its problem are relative to it. A limit of the tenant's, or a
    server that sheds load, refuses the whole batch.

    An `Idempotency-Key` covers the batch as it is: sent again, it makes no doubles; another batch
    under the same key is refused whole (`IDEMPOTENCY_KEY_REUSED`). With
    `idempotency_keys` each job has its own, the same as if it came alone: sent again in another
    batch, or by itself, it makes no double either.

    A `traceparent` is that of every job, unless `traceparents` says otherwise.
    """

    def __init__(self, edge: Edge) -> None:
        platform = self._platform = edge.platform
        self._relay = edge.relay
        self._passing = edge.passing
        self._schemas = PayloadSchemas(platform.registry.schemas)
        self._body_max = platform.settings.body_bytes_max
        self._spans = platform.instruments.spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send, caller: Principal) -> None:
        key_id, tenant = caller.key_id, tenant_in_force(caller, self._platform.directory)
        try:
            if is_large(scope):
                self._platform.admission.refuse_debtors(tenant)
            body, batch = await self._read(scope, receive, tenant)
            shard = self._platform.tenant_shards.of(tenant.id)
            is_elsewhere = self._relay.is_elsewhere(shard)
            is_owners = is_elsewhere and replaces_others(_good(batch.wanted))
            if is_owners and await self._relay.passed_on(scope, body, send, shard=shard):
                return
            del body  # what it asks for may wait for long
            self._platform.revocation.check(key_id)  # the body may have been long on its way
            await self._submit(scope, send, (key_id, tenant), batch)
        except FairwayError as error:
            self._platform.admission.count_refusal(tenant, error.code)
            if isinstance(error, InvalidRequest):
                self._platform.admission.charge(tenant, scope.get(BODY_BYTES, 0))
            raise

    async def _read(
        self, scope: Scope, receive: Receive, tenant: Tenant
    ) -> tuple[bytes, Understood]:
        of_all = BatchHeaders(idempotency_key(scope), trace_header(scope))
        counted = (self._platform.bodies.requests, tenant.id)
        body = await read_body(scope, receive, self._body_max, if_larger=SPLIT_IT, counted=counted)
        plain = len(body) <= LIGHT_BYTES and is_strict(body)
        if plain or is_brief(body):
            return body, await self._understand_in_parts(tenant, body, of_all, plain=plain)
        # a long look must not hold up everybody else
        look = partial(self._understand, body, of_all, in_parts=bool(tenant.parts))
        return body, await self._platform.heavy.run(tenant.id, look, len(body))

    async def _submit(
        self, scope: Scope, send: Send, asked_by: tuple[str, Tenant], batch: Understood
    ) -> None:
        (_, tenant), (wanted, whole) = asked_by, batch
        good, spans = self._begun(tenant, _good(wanted))
        with ExitStack() as under_way:
            under_way.callback(self._charge, scope, tenant, wanted)
            for span in spans.values():
                under_way.enter_context(span)
            if tenant.parts:
                answers = await in_parts(
                    self._platform.directory.parts,
                    tenant,
                    JobsToPlace(good, whole),
                    lambda part, jobs: self._verdicts((asked_by[0], part), jobs, whole),
                )
            else:
                answers = await self._verdicts(asked_by, good, whole)
            for place, span in spans.items():
                _tell(span, answers[place])
        if len(good) < len(wanted):
            verdicts = iter(answers)
            answers = [one if isinstance(one, FairwayError) else next(verdicts) for one in wanted]
        codes = Counter(one.code for one in answers if isinstance(one, FairwayError))
        for code, count in codes.items():
            self._platform.admission.count_refusal(tenant, code, count)
        headers = [JSON, *rate_limit(self._platform.admission.quota(tenant))]
        if not tenant.parts:  # else the next one is for another owner
            headers += self._passing.owner_header(scope, tenant)
        if (whole or (good and good[0].idempotency_key)) and _all_replayed(answers):
            headers.append(REPLAYED)
        await send_whole(scope, send, 200, messages.encode(await _reply_of(answers)), headers)

    def _charge(self, scope: Scope, tenant: Tenant, wanted: list[Wanted]) -> None:
        """For what was refused, once the good ones were judged: a full bucket lets in a batch that
        is larger than it."""
        bad = sum(isinstance(one, InvalidRequest) for one in wanted)
        if bad:
            self._platform.admission.charge(tenant, scope[BODY_BYTES] * bad // len(wanted), bad)

    async def _verdicts(
        self, asked_by: tuple[str, Tenant], good: list[NewJob], whole: WholeKey | None
    ) -> list[Verdict]:
        inline_max = self._platform.settings.inline_bytes_max
        if [new for new in good if len(new.payload) > inline_max or new.upload is not None]:
            return await submit_large(self._platform, self._passing, asked_by, good, self._schemas)
        return await self._submit_together(asked_by[1], good, whole)

    async def _submit_together(
        self, tenant: Tenant, good: list[NewJob], whole: WholeKey | None
    ) -> list[Verdict]:
        if not good:
            return []
        answers = await self._passing.submit(tenant, good, whole=whole)
        first = answers[0]
        if whole is not None and isinstance(first, FairwayError) and _are_refused(answers):
            raise first  # of the key: none of them was made
        return answers

    def _begun(self, tenant: Tenant, good: list[NewJob]) -> tuple[list[NewJob], dict[int, JobSpan]]:
        """The same jobs with the traces that they keep; and spans by place, of the few with one."""
        spans: dict[int, JobSpan] = {}
        if self._spans is None:
            return good, spans
        within = [place for place, new in enumerate(good) if new.trace is not None]
        alone = [n for n in self._spans.sent_alone(len(good)) if good[n].trace is None]
        for place in within + alone:
            new = good[place]
            begin = self._spans.sends if new.trace is not None else self._spans.begins
            trace, span = begin(new.trace, tenant, new.type)
            if span is not None:
                spans[place] = span
            if trace is not new.trace:
                good[place] = new._replace(trace=trace)
        return good, spans

    async def _understand_in_parts(
        self, tenant: Tenant, body: bytes, of_all: BatchHeaders, *, plain: bool
    ) -> Understood:
        """In between other requests: ten thousand tiny jobs are a light body, and long work."""
        weigh(body, BATCH_VALUES_MAX, SPLIT_IT)
        texts, keys, traces = items_of(body, of_all)
        understand, found = self._reader(plain=plain), list[Wanted]()
        own_keys: Sequence[str | None] = keys or [None] * len(texts)
        own_traces: Sequence[bytes | None] = traces or [None] * len(texts)
        is_short = len(texts) <= SHORT_ITEMS
        async with nullcontext() if is_short else self._platform.long_looks.held(tenant.id):
            if not tenant.parts:  # where they go is not known yet
                self._platform.submissions.look(tenant, len(texts))  # refusing must cost us little
            work = WorkInParts()
            for start in range(0, len(texts), PART_ITEMS):
                part = slice(start, start + PART_ITEMS)
                found += map(understand, texts[part], own_keys[part], own_traces[part])
                await work.let_others()
        key, in_parts = None if keys else of_all.key, bool(tenant.parts)
        return self._with_key(body, texts, found, key, in_parts=in_parts)

    def _understand(self, body: bytes, of_all: BatchHeaders, *, in_parts: bool) -> Understood:
        """In a thread, with care."""
        weigh(body, BATCH_VALUES_MAX, SPLIT_IT)
        texts, keys, traces = items_of(body, of_all)
        understand = self._reader(plain=False)
        found = list(map(understand, texts, keys or repeat(None), traces or repeat(None)))
        key = None if keys else of_all.key
        return self._with_key(body, texts, found, key, in_parts=in_parts)

    def _with_key(
        self,
        body: bytes,
        texts: list[msgspec.Raw],
        found: list[Wanted],
        key: str | None,
        *,
        in_parts: bool,
    ) -> Understood:
        """The key of the batch is one for all of it: a row, however many jobs it has.

        Where jobs can have different fates (one is not the only one of its kind, one's upload is
        not there, one is judged in another shard), each has a key by its place. Which of the two it
        is the batch itself says: sent again, it is the same, whichever of its jobs are refused by
        then. No other key is in the way: none can hold the separator.
        """
        if key is None:
            return Understood(found, None)
        inline_max = self._platform.settings.inline_bytes_max
        pairs = zip(found, texts, strict=True)
        if any(_may_fail_alone(one, text, inline_max, in_parts=in_parts) for one, text in pairs):
            keyed: list[Wanted] = [
                _keyed(new, text, f"{key}\x1f{place}") if isinstance(new, NewJob) else new
                for place, (new, text) in enumerate(zip(found, texts, strict=True))
            ]
            return Understood(keyed, None)
        refused = [n for n, one in enumerate(found) if isinstance(one, FairwayError)]
        kept = with_refused(hashlib.sha256(body).digest(), refused)
        return Understood(found, WholeKey(f"{key}\x1f", kept))

    def _reader(self, *, plain: bool) -> Callable[[msgspec.Raw, str | None, bytes | None], Wanted]:
        """Each item as a job, or as what is wrong with it; by its text, its key and its trace."""
        bytes_max, registry = self._platform.settings.payload_bytes_max, self._platform.registry
        schemas = registry.schemas

        def understand(text: msgspec.Raw, key: str | None, trace: bytes | None) -> Wanted:
            try:
                new = new_job(decode(text), bytes_max, registry)
                if not plain:
                    weigh(bytes(text))
                    look_at(bytes(text))
                elif _may_be_deep(new.payload):
                    check_carefully(bytes(text))
                if schemas and new.upload is None:
                    self._schemas.check(new.type, new.payload)
                if trace is not None:
                    new = new._replace(trace=trace)
                return new if key is None else _keyed(new, text, key)
            except FairwayError as error:
                return error.as_value()

        return understand


def _tell(span: JobSpan, answer: Verdict) -> None:
    if isinstance(answer, FairwayError):
        span.fail(answer.code)
    else:
        span.say({"messaging.message.id": answer.id, "fairway.replayed": answer.replayed})


def _good(wanted: list[Wanted]) -> list[NewJob]:
    return [item for item in wanted if isinstance(item, NewJob)]


def _may_fail_alone(one: Wanted, text: msgspec.Raw, inline_max: int, *, in_parts: bool) -> bool:
    if isinstance(one, NewJob):
        own = one.unique or one.upload or (in_parts and one.limits)
        return bool(own or len(one.payload) > inline_max)
    return may_fail_alone(text, inline_max, in_parts=in_parts)


def _may_be_deep(payload: bytes) -> bool:
    return len(payload) > SHALLOW_BYTES and brackets(payload) >= DEPTH_MAX


class Understood(NamedTuple):
    """A batch: each item, and the key that all of them have together."""

    wanted: list[Wanted]
    whole: WholeKey | None


def _keyed(new: NewJob, text: msgspec.Raw, key: str) -> NewJob:
    """The hash is of the text that would be the body if the job came alone."""
    return new._replace(idempotency_key=key, body_hash=hash_of(bytes(text), new.upload))


# -- the reply: one verdict an item, in order ------------------------------------------------------


def _are_refused(answers: list[Verdict]) -> bool:
    return all(isinstance(answer, FairwayError) for answer in answers)


def _all_replayed(answers: list[Verdict]) -> bool:
    """Whether the whole batch was there before: nothing in it was made now."""
    accepted = [answer for answer in answers if isinstance(answer, Accepted)]
    return bool(accepted) and all(answer.replayed for answer in accepted)


async def _reply_of(answers: list[Verdict]) -> messages.BatchReply:
    work, items = WorkInParts(), list[messages.BatchItem]()
    for start in range(0, len(answers), PART_ITEMS):
        items += map(_item, answers[start : start + PART_ITEMS])
        await work.let_others()
    accepted = sum(item.status == 202 for item in items)
    return messages.BatchReply(accepted=accepted, items=items)


def _item(answer: Verdict) -> messages.BatchItem:
    if isinstance(answer, Accepted):
        return messages.BatchItem(status=202, id=answer.id)
    problem = problem_of(answer)
    return messages.BatchItem(status=problem.status, problem=msgspec.to_builtins(problem))
