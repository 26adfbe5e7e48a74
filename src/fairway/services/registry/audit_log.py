"""The audit: a line for every administrative act, in the transaction of the act itself.

An act without its line is undone with it, and a line without its act there is none.
"""

from __future__ import annotations

from fairway.core.audit import Act, Actor, line_of
from fairway.core.redaction import USUAL, Redaction
from fairway.store.connections.database import Connection
from fairway.store.registry import audit as store


class AuditLog:
    def __init__(self, redaction: Redaction = USUAL) -> None:
        self._redaction = redaction

    async def add(self, connection: Connection, actor: Actor, act: Act) -> None:
        """Inside the transaction that changes what the act is about."""
        await store.add_audit(connection, line_of(actor, act, self._redaction))


USUAL_LOG = AuditLog()
