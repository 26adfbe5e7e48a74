"""Signing in: a key shown once opens a session, whose token a browser shows from then on.

Sessions are in the store, so every server knows them; those that were shown here are kept in
memory and asked about together every few seconds. A session opens what its key does, for as long as
the key does and twelve hours at most; what still goes on under it then is cut short. A link opens
one session, once, within minutes. Wrong tokens are guesses, counted by address like wrong keys.
Keys of workers open none.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.audit import Act, Actor
from fairway.core.errors import Forbidden, Unavailable
from fairway.core.sign_in import (
    LINK_SECONDS,
    SESSION_SECONDS,
    SignInKind,
    is_token,
    token_hash,
)
from fairway.runtime.random_ids import sign_in_token
from fairway.services.backpressure.key_guesses import too_many
from fairway.services.backpressure.sign_in_pace import SignInPace
from fairway.services.cut_short import CutShort, GoingOn
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.principal import Principal
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Connection, Database
from fairway.store.registry import sign_ins as store
from fairway.store.registry.tenants import key_facts

REFRESH_SECONDS = 2.0
REMEMBERED_MAX = 2_000  # sessions in memory: all are asked about in one statement
WAITING_MAX = 500  # that want to be looked up or written; one at a time is
OWNER_WAITING_MAX = 200  # of one address that looks up, and of one who signs in
LASTS: dict[SignInKind, timedelta] = {
    "session": timedelta(seconds=SESSION_SECONDS),
    "link": timedelta(seconds=LINK_SECONDS),
}


class Opened(NamedTuple):
    """A new session or link: its token is known to whoever asked for it alone."""

    token: str
    expires_at: datetime


class SignedIn(NamedTuple):
    principal: Principal
    expires_at: datetime


class SignIns:
    def __init__(
        self,
        database: Database,
        directory: Directory,
        store_clock: StoreClock,
        audit_log: AuditLog,
        check: Callable[[str], None],
    ) -> None:
        self._database = database
        self._directory = directory
        self._clock = store_clock
        self._audit_log = audit_log
        self._check = check  # raises when the key of this id opens nothing any more
        self._known: dict[bytes, SignedIn] = {}
        self._held: GoingOn[bytes] = GoingOn()
        self._looked_up: Counter[bytes] = Counter()  # those that are just now,
        self._ended: set[bytes] = set()  # and of these the ones that ended meanwhile
        self._one_asks = asyncio.Lock()  # however many sign in, one connection is theirs
        self._waiting: Counter[Hashable] = Counter()
        self._pace = SignInPace(store_clock.now_us)

    async def run_once(self, now_us: int) -> float:
        """A loop: what ended elsewhere, or with its key, is forgotten here."""
        asked = {*self._known, *self._held.names()}
        if asked:
            async with self._database.background() as connection:
                living = await store.living_sessions(connection, list(asked))
            for ended in asked - living:
                self._forget(ended)
        return REFRESH_SECONDS

    # -- sessions ----------------------------------------------------------------------------

    async def find(self, token: str, address: str = "") -> SignedIn | None:
        """Whose session this is; None: there is none, or none any more."""
        if not is_token(token):
            return None
        shown = token_hash(token)
        found = self._known.get(shown) or await self._look_up(shown, address)
        if found is None or found.expires_at <= self._clock.now():
            self._known.pop(shown, None)
            return None
        self._check(found.principal.key_id)  # at once, where it was revoked or suspended here
        return found

    @asynccontextmanager
    async def held(self, token: str) -> AsyncIterator[None]:
        """Go on under a session. Raises out of the middle of it when that is over."""
        try:
            async with self._held.under(token_hash(token)):
                yield
        except CutShort:
            raise Forbidden("This session is over.", code="UNAUTHENTICATED") from None

    def _forget(self, shown: bytes) -> None:
        self._known.pop(shown, None)
        if shown in self._looked_up:
            self._ended.add(shown)  # what was read of it before is not remembered after this
        self._held.cut_short(shown)

    async def _look_up(self, shown: bytes, address: str) -> SignedIn | None:
        self._refuse_guessers(address)
        self._looked_up[shown] += 1
        try:
            found = await self._read(shown, address)
            if found is None or shown in self._ended:
                return None
            self._remember(shown, found)
            return found
        finally:
            self._looked_up[shown] -= 1
            if not self._looked_up[shown]:
                del self._looked_up[shown]
                self._ended.discard(shown)

    async def _read(self, shown: bytes, address: str) -> SignedIn | None:
        async with self._asking(address) as connection:
            stored = await store.read_session(connection, shown)
        if stored is None:
            self._failed(address)
            return None
        principal = await self._directory.holder_of(stored.key_id)
        return None if principal is None else SignedIn(principal, stored.expires_at)

    def _remember(self, shown: bytes, found: SignedIn) -> None:
        self._known[shown] = found
        if len(self._known) > REMEMBERED_MAX:
            del self._known[next(iter(self._known))]

    async def open(self, principal: Principal, actor: Actor) -> Opened:
        """A session of this key's, for a browser."""
        if principal.scope == "worker":
            raise Forbidden("A worker's key opens no session; use a tenant's or an operator's.")
        whose = None if principal.tenant is None else principal.tenant.id
        act = Act("sign_in", principal.key_id, whose, after={"lasts": str(LASTS["session"])})
        owner = principal.key_id if whose is None else whose
        opened = await self._add("session", principal.key_id, owner, (actor, act))
        self._remember(token_hash(opened.token), SignedIn(principal, opened.expires_at))
        return opened

    async def end(self, token: str) -> None:
        """Here at once, on other servers within their next look."""
        shown = token_hash(token)
        async with self._asking(shown) as connection:
            await store.end_session(connection, shown)
        self._forget(shown)

    # -- links -------------------------------------------------------------------------------

    async def add_link(self, key_id: str) -> Opened:
        """It opens one session of this key's, once."""
        return await self._add("link", key_id, key_id)

    async def take_link(self, code: str, address: str = "") -> Principal | None:
        """Who made this link, which is used up with that; None: there is none any more."""
        self._refuse_guessers(address)
        key_id = None
        if is_token(code):
            async with self._asking(address) as connection:
                key_id = await store.take_link(connection, token_hash(code))
        if key_id is None:
            self._failed(address)
            return None
        return await self._directory.holder_of(key_id)

    # -- both --------------------------------------------------------------------------------

    async def _add(
        self,
        kind: SignInKind,
        key_id: str,
        owner: Hashable,
        said: tuple[Actor, Act] | None = None,
    ) -> Opened:
        self._pace.take(owner)
        token = sign_in_token()
        async with self._asking(owner) as connection, connection.transaction():
            if await key_facts(connection, key_id) is None:
                raise Forbidden("This API key is not valid.", code="UNAUTHENTICATED")
            ends_at = await store.add_sign_in(
                connection, token_hash(token), kind, key_id, LASTS[kind]
            )
            if said is not None:
                await self._audit_log.add(connection, *said)
        return Opened(token, ends_at)

    @asynccontextmanager
    async def _asking(self, owner: Hashable) -> AsyncIterator[Connection]:
        waiting = self._waiting
        if waiting[owner] >= OWNER_WAITING_MAX or waiting.total() >= WAITING_MAX:
            raise Unavailable("Very many are signing in; try again shortly.")
        waiting[owner] += 1
        try:
            async with told_if_away, self._one_asks, self._database.people() as connection:
                yield connection
        finally:
            waiting[owner] -= 1
            if not waiting[owner]:
                del waiting[owner]

    def _refuse_guessers(self, address: str) -> None:
        guesses = self._directory.guesses
        if guesses is not None and (wait_seconds := guesses.wait_seconds(address)):
            raise too_many(wait_seconds)

    def _failed(self, address: str) -> None:
        if self._directory.guesses is not None:
            self._directory.guesses.failed(address)


def session_over() -> Forbidden:
    return Forbidden("This session is over; sign in again.", code="UNAUTHENTICATED")
