"""Calls to one receiver, in one turn: one alone, and when that goes well, several at a time.

So a receiver that hangs never has more than one call. Every call is signed with the secrets in
force and goes to a number that was checked in this turn. Nothing of the reply is kept but its
status, and nothing that a receiver does raises: each call has an answer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from fairway.core.errors import InvalidRequest
from fairway.core.insight.trace_context import is_sampled, traceparent_of
from fairway.core.webhooks.retries import Answer
from fairway.core.webhooks.signing import signatures
from fairway.core.webhooks.webhook import Webhook, delivery_id
from fairway.runtime.pinned_http import PinnedConnection, PinnedReply
from fairway.services.store_clock import StoreClock
from fairway.services.webhooks.destinations import Destination, Destinations
from fairway.store.webhooks.deliveries import DueDelivery

if TYPE_CHECKING:
    from fairway.runtime.otlp_spans import JobSpans

QUICK_SECONDS = 1.0  # without an answer for longer, a call moves out of the others' way
LANES = 8  # calls at a time to one receiver that answers
NUMBERS_TRIED = 3  # of a name that has several
USER_AGENT = "Fairway-Webhooks/1"
NO_ROOM = "The receiver was slow while too many others were, too; the call was cut short."


class AnsweredCall(NamedTuple):
    delivery: DueDelivery
    answer: Answer


class Sender:
    def __init__(
        self,
        destinations: Destinations,
        store_clock: StoreClock,
        *,
        call_seconds: float,
        spans: JobSpans | None = None,
    ) -> None:
        self._destinations = destinations
        self._store_clock = store_clock
        self._call_seconds = call_seconds
        self._spans = spans

    async def send(
        self, webhook: Webhook, due: list[DueDelivery], may_wait: Callable[[], bool]
    ) -> list[AnsweredCall]:
        """What was sent of these, in any order; what was not stays due.

        `may_wait` is asked when a call takes longer than a moment: False cuts it short.
        """
        try:
            found = await self._destinations.find(webhook.terms.url, webhook.key.tenant)
        except InvalidRequest as refused:
            return [AnsweredCall(due[0], Answer(None, f"Not sent: {refused.message}"))]
        told_by = self._store_clock, self._call_seconds, self._spans
        turn = _Turn(webhook, found, *told_by, may_wait)
        try:
            return await turn.send(due)
        finally:
            turn.close()


class _Turn:
    def __init__(
        self,
        webhook: Webhook,
        destination: Destination,
        store_clock: StoreClock,
        call_seconds: float,
        spans: JobSpans | None,
        may_wait: Callable[[], bool],
    ) -> None:
        self._webhook = webhook
        self._destination = destination
        self._store_clock = store_clock
        self._call_seconds = call_seconds
        self._spans = spans
        self._may_wait = may_wait
        self._idle: list[PinnedConnection] = []
        self._is_well = True  # every call so far was answered soon, and well
        self._calls: list[AnsweredCall] = []

    async def send(self, due: list[DueDelivery]) -> list[AnsweredCall]:
        left = iter(due)
        await self._lane(iter([next(left)]))
        if self._is_well:
            await asyncio.gather(*(self._lane(left) for _ in range(min(LANES, len(due) - 1))))
        return self._calls

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _lane(self, left: Iterator[DueDelivery]) -> None:
        """One call after the other, until one of any lane does not go well."""
        for delivery in left:
            answer = await self._traced(delivery)
            self._calls.append(AnsweredCall(delivery, answer))
            self._is_well = self._is_well and answer.is_success
            if not self._is_well:
                return

    async def _traced(self, delivery: DueDelivery) -> Answer:
        """Its receiver goes on with the trace of the job; below our own span, if there is one."""
        if self._spans is None or delivery.trace is None or not is_sampled(delivery.trace):
            return await self._answer(delivery)
        target = self._destination.target
        facts: dict[str, str | int] = {
            "server.address": target.host,
            "server.port": target.port,
            "fairway.webhook": self._webhook.key.id,
            "fairway.attempt": delivery.attempts + 1,
        }
        with self._spans.delivers(delivery.trace, delivery.kind, facts) as span:
            answer = await self._answer(delivery._replace(trace=span.trace))
            if answer.status is not None:
                span.say({"http.response.status_code": answer.status})
            if not answer.is_success:
                span.fail(str(answer.status or "no_answer"))
        return answer

    async def _answer(self, delivery: DueDelivery) -> Answer:
        call = asyncio.create_task(self._call(delivery))
        try:
            await asyncio.wait({call}, timeout=QUICK_SECONDS)
            if call.done():
                return _answer_of(call)
            self._is_well = False
            if not self._may_wait():
                return Answer(None, NO_ROOM)
            await asyncio.wait({call}, timeout=max(self._call_seconds - QUICK_SECONDS, 0.0))
            if call.done():
                return _answer_of(call)
            return Answer(None, f"The receiver did not answer within {self._call_seconds:g} s.")
        finally:
            call.cancel()

    async def _call(self, delivery: DueDelivery) -> PinnedReply:
        request = self._request(delivery)
        connection = self._idle.pop() if self._idle else None
        if connection is not None and connection.is_open:
            try:
                return await self._reply(connection, request)
            except ConnectionError:  # it was closed while it was idle; what was sent has an id
                connection.close()
        return await self._reply(await self._connected(), request)

    async def _reply(self, connection: PinnedConnection, request: bytes) -> PinnedReply:
        try:
            reply = await connection.send(request)
        except BaseException:
            connection.close()
            raise
        if connection.is_open:
            self._idle.append(connection)
        else:
            connection.close()
        return reply

    async def _connected(self) -> PinnedConnection:
        """To a number that was checked, and to no other."""
        target = self._destination.target
        name = target.host if target.is_tls else None
        numbers = self._destination.numbers[:NUMBERS_TRIED]
        for number in numbers[:-1]:
            try:
                return await PinnedConnection.open(number, target.port, name)
            except ssl.SSLError:
                raise
            except OSError:
                continue
        return await PinnedConnection.open(numbers[-1], target.port, name)

    def _request(self, delivery: DueDelivery) -> bytes:
        target, key = self._destination.target, self._webhook.key
        now = self._store_clock.now()
        message, timestamp = delivery_id(key.id, delivery.number), int(now.timestamp())
        secrets = self._webhook.secrets.in_force(now)
        signed = signatures(secrets, message, timestamp, delivery.body)
        head = (
            f"POST {target.path} HTTP/1.1\r\nhost: {target.authority}\r\n"
            f"content-type: application/json\r\nuser-agent: {USER_AGENT}\r\n"
            f"webhook-id: {message}\r\nwebhook-timestamp: {timestamp}\r\n"
            f"webhook-signature: {signed}\r\ncontent-length: {len(delivery.body)}\r\n"
        )
        if delivery.trace is not None:
            head += f"traceparent: {traceparent_of(delivery.trace)}\r\n"
        return head.encode("ascii") + b"\r\n" + delivery.body


def _answer_of(call: asyncio.Task[PinnedReply]) -> Answer:
    """Our own words alone: what a stranger's machine says goes into no row and no log."""
    error = call.exception()
    if error is None:
        reply = call.result()
        return Answer(reply.status, retry_after=reply.headers.get("retry-after", "")[:64])
    if isinstance(error, ssl.SSLCertVerificationError):
        return Answer(None, "The receiver's certificate is not valid for its name.")
    if isinstance(error, ssl.SSLError):
        return Answer(None, "The receiver does not speak TLS as we do.")
    if isinstance(error, ConnectionRefusedError):
        return Answer(None, "The receiver refused the connection.")
    if isinstance(error, ConnectionError) and error.errno is None and error.args:
        return Answer(None, str(error.args[0])[:200])
    if isinstance(error, OSError):
        return Answer(None, f"The receiver cannot be reached ({type(error).__name__}).")
    return Answer(None, f"The call failed ({type(error).__name__}).")
