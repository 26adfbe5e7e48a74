"""Flows over HTTP: made with a key, so that a call that is sent again makes nothing twice."""

from __future__ import annotations

import uuid
from urllib.parse import quote

import msgspec
from msgspec import Raw

from fairway.sdk.client.flow_door import FlowIds, FlowPlan, FlowStatus
from fairway.sdk.client.flows import pages_of
from fairway.sdk.http.transport import Question, Transport
from fairway.wire.flows import (
    NULL,
    FlowAccepted,
    FlowPageAccepted,
    FlowPageRequest,
    FlowReplayed,
    FlowRequest,
)
from fairway.wire.messages import encode

_JSON = {"Content-Type": "application/json"}

_decode_accepted = msgspec.json.Decoder(FlowAccepted).decode
_decode_page = msgspec.json.Decoder(FlowPageAccepted).decode
_decode_view = msgspec.json.Decoder(FlowStatus).decode
_decode_replayed = msgspec.json.Decoder(FlowReplayed).decode


class FlowCalls:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def submit(self, plan: FlowPlan) -> FlowIds:
        """In pages of what one call may carry."""
        first, *rest = pages_of([Raw(encode(one)) for one in plan.jobs])
        headers = {**_JSON, "Idempotency-Key": str(uuid.uuid4())}
        body = encode(_request(plan, list(first), more=bool(rest)))
        made = _decode_accepted(
            await self._transport.ask(Question("POST", "/v1/flows", body, headers))
        )
        jobs = list(made.jobs)
        for page in rest:
            more = len(jobs) + len(page) < len(plan.jobs)
            body = encode(FlowPageRequest(start=len(jobs), jobs=list(page), more=more))
            question = Question("POST", f"{_place(made.id)}/jobs", body, _JSON)
            jobs += _decode_page(await self._transport.ask(question)).jobs
        return FlowIds(made.id, jobs, made.callback)

    async def look(self, flow_id: str) -> FlowStatus:
        return _decode_view(await self._transport.ask(Question("GET", _place(flow_id))))

    async def cancel(self, flow_id: str) -> FlowStatus:
        return _decode_view(await self._transport.ask(Question("DELETE", _place(flow_id))))

    async def replay(self, flow_id: str) -> int:
        question = Question("POST", f"{_place(flow_id)}/replay")
        return _decode_replayed(await self._transport.ask(question)).replayed


def _request(plan: FlowPlan, first: list[Raw], *, more: bool) -> FlowRequest:
    return FlowRequest(
        kind=plan.kind,
        jobs=first,
        arguments=list(plan.arguments),
        callback=NULL if plan.callback is None else Raw(encode(plan.callback)),
        on_all=plan.on_all,
        after=list(plan.after),
        more=more,
    )


def _place(flow_id: str) -> str:
    return f"/v1/flows/{quote(flow_id, safe='')}"
