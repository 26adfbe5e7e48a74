"""A key stops opening anything: whatever goes on under it ends now, not when it next asks.

A request shows its key once, at its start. What lasts longer than that is known here by the key's
public part: event streams and held requests are stopped in the middle, a worker's sessions end and
their leases with them. The directory tells, at once where a key is revoked and on other servers
with its next look at the store; for half a minute it tells again, so nothing slips between. Keys of
a suspended tenant are refused for as long as that lasts (`suspensions.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Never

from fairway.core.errors import Forbidden
from fairway.core.tenant import TENANT_SUSPENDED
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import logger
from fairway.services.cut_short import CutShort, GoingOn
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.sessions import Session
from fairway.services.workers.lost_leases import lose_in_parts

log = logger("revocation")

REMEMBERED_US = 600_000_000  # longer than any request is on its way before it is heard
REVOKED = b'{"type":"WorkerLost","message":"The API key of the worker that ran this was revoked."}'


class Revocation:
    def __init__(self, dispatcher: Dispatcher, clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._held: GoingOn[str] = GoingOn()  # by the ids of keys
        self._told_us: dict[str, int] = {}  # ids of keys that are not valid → when we last heard so
        self._suspended: dict[str, str] = {}  # ids of suspended tenants' keys → what they hear

    def check(self, key_id: str) -> None:
        """For whoever showed the key a while ago: raises when it opens nothing any more."""
        if (sentence := self._suspended.get(key_id)) is not None:
            raise tenant_suspended(sentence)
        told_us = self._told_us.get(key_id)
        if told_us is not None and self._clock.now_us() - told_us < REMEMBERED_US:
            raise key_revoked()

    @asynccontextmanager
    async def held(self, key_id: str) -> AsyncIterator[None]:
        """Wait under a key. Raises out of the middle of it when the key opens nothing any more."""
        self.check(key_id)
        try:
            async with self._held.under(key_id):
                yield
        except CutShort:
            self._refuse(key_id)

    def _refuse(self, key_id: str) -> Never:
        self.check(key_id)
        raise tenant_suspended("Your tenant was suspended for a moment; ask again.")

    async def revoked(self, key_ids: Collection[str]) -> None:
        """These keys are not valid any more; to hear it again changes nothing."""
        now_us = self._clock.now_us()
        since_us = now_us - REMEMBERED_US
        self._told_us = {key: at for key, at in self._told_us.items() if at > since_us}
        for key_id in key_ids:
            self._told_us[key_id] = now_us
            self._held.cut_short(key_id)
        for session in self._dispatcher.all_sessions():
            if session.opener in key_ids:
                await self.end_session(session, key_revoked(), REVOKED)

    def suspended(self, sentences: Mapping[str, str]) -> None:
        """Ids of keys that are refused until `resumed`, and what each hears."""
        self._suspended.update(sentences)
        for key_id in sentences:
            self._held.cut_short(key_id)

    def resumed(self, key_ids: Collection[str]) -> None:
        for key_id in key_ids:
            self._suspended.pop(key_id, None)

    async def end_session(self, session: Session, refusal: Forbidden, error: bytes) -> None:
        """A worker is shut out, with all that it runs."""
        why = refusal.code
        log.warning("worker shut out", worker=session.worker, jobs=len(session.leases), why=why)
        session.shut_out(refusal)  # it is given nothing meanwhile
        await lose_in_parts(self._dispatcher, list(session.leases.values()), error)
        if self._dispatcher.has(session):
            self._dispatcher.end_session(session)


def key_revoked() -> Forbidden:
    return Forbidden("This API key was revoked.", code="UNAUTHENTICATED")


def tenant_suspended(sentence: str) -> Forbidden:
    return Forbidden(sentence, code=TENANT_SUSPENDED)
