"""Names of job types and their numbers, in memory, and room for new ones.

There are two kinds of room, and neither can be filled through the other's door. The *house* (shared
workers and operators) has names that every tenant may use; they count for no tenant. What the house
has not said counts for each tenant that names it: with jobs, schedules and pauses on the one hand,
with its own workers on the other. All tenants together have a bound far beyond that of one, as a
backstop. Counting and adding is one turn at a time for each tenant, in all servers of a database.

The hot path asks by dictionary only. Names cost nothing to make up, so what is not there yet must
not cost others the connections that they wait for: a tenant names and asks in its turn, few tenants
name at a time, and a name that nobody uses is not asked for again for a moment. A name that goes
(`type_name_expiry.py`) is forgotten here first; who names it after that asks the store, and has it
back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from fairway.core.errors import InvalidRequest, Unavailable
from fairway.core.ids import TenantId, TypeId
from fairway.core.job_type import JobType
from fairway.services.transient_errors import again, told_if_away
from fairway.store.connections.database import Connection, Database
from fairway.store.registry import type_names as store
from fairway.store.registry.type_names import HOUSE, StoredName

SHARED_NAMES_MAX = 10_000  # that shared workers and operators may say
TENANT_NAMES_MAX = 1_000  # of one tenant's jobs, schedules and pauses; and of its own workers
TENANTS_NAMES_MAX = 100_000  # of all tenants together
OLD_NUMBERS_KEPT = 10_000  # of names that were let go: a lease may be on its way
NAME_CHARACTERS_MAX = 128
NO_TYPE = TypeId(-1)  # no job type has this number
NAMING_AT_ONCE = 2  # tenants whose names are being made: a connection for people each
ABSENT_SECONDS = 1.0  # so long another server's new name may stay unseen, if it was asked for here
ABSENT_NAMES_REMEMBERED = 5_000

_NOBODY: dict[TenantId, bool] = {}


class Namer(NamedTuple):
    """Who names types: a tenant, by its jobs or by its own worker; or the house."""

    tenant: TenantId = HOUSE
    by_worker: bool = False

    @property
    def is_house(self) -> bool:
        return self.tenant == HOUSE


class Brought(NamedTuple):
    ids: dict[str, TypeId]  # of those names that may be used
    refused: list[str]  # those for which there is no room


class Answer(NamedTuple):
    """What the store said of a name that nobody uses."""

    until: float  # so long it holds
    number: TypeId | None  # it was let go, and jobs may have it; None: there is no such name


class TypeNames:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.ids: dict[str, TypeId] = {}
        self.by_id: dict[TypeId, str] = {}
        self.shared: set[str] = set()
        self.namers: dict[str, dict[TenantId, bool]] = {}  # name → tenant → its own worker runs it
        self._turns: WeakValueDictionary[TenantId, asyncio.Lock] = WeakValueDictionary()
        self._naming = asyncio.Semaphore(NAMING_AT_ONCE)
        self._old_numbers: deque[TypeId] = deque()
        self._not_in_use: dict[str, Answer] = {}  # by name; the oldest comes first

    @property
    def tenants_count(self) -> int:
        """Names that the house has not said."""
        return len(self.ids) - len(self.shared)

    def is_named_by(self, namer: Namer, name: str) -> bool:
        """Whether it may be used without asking."""
        if name in self.shared:
            return True
        by_worker = self.namers.get(name, _NOBODY).get(namer.tenant)
        return by_worker is not None and (by_worker or not namer.by_worker)

    def are_named_by(self, tenant: TenantId, names: Iterable[str]) -> bool:
        """The same of many names, for jobs of this tenant."""
        shared, namers = self.shared, self.namers
        return all(one in shared or tenant in namers.get(one, _NOBODY) for one in names)

    # -- new names -----------------------------------------------------------------------------

    async def know(self, tenant: TenantId | None, names: Iterable[str]) -> dict[str, TypeId]:
        """The numbers of all these names; refused when there is no room for one of them."""
        namer = Namer() if tenant is None else Namer(tenant)
        brought = await self.bring(namer, names, all_or_none=True)
        if brought.refused:
            raise self.no_room(namer)
        return brought.ids

    async def bring(self, namer: Namer, names: Iterable[str], *, all_or_none: bool) -> Brought:
        """The numbers of these names, made where they are new and there is room."""
        found, missing = self._sorted_out(namer, names)
        if not missing:
            return Brought(found, [])
        now = asyncio.get_running_loop().time
        ends_at = now() + self._database.wait_seconds  # of the turn and of the store together
        async with self._turn(namer.tenant):
            more, missing = self._sorted_out(namer, missing)  # who had the turn may have asked
            found |= more
            if not missing:
                return Brought(found, [])
            ask = partial(self._count_and_add, namer, missing, all_or_none)
            brought = await self._in_time(ask, ends_at - now())
        return Brought(found | brought.ids, brought.refused)

    def _sorted_out(
        self, namer: Namer, names: Iterable[str]
    ) -> tuple[dict[str, TypeId], list[str]]:
        found, missing = {}, []
        for name in dict.fromkeys(names):
            if self.is_named_by(namer, name):
                found[name] = self.ids[name]
            else:
                missing.append(name)
        return found, missing

    @asynccontextmanager
    async def _turn(self, tenant: TenantId) -> AsyncIterator[None]:
        """Whoever floods us with names holds one connection, and waits for itself."""
        turn = self._turns.get(tenant) or asyncio.Lock()
        self._turns[tenant] = turn
        async with AsyncExitStack() as turns:
            try:
                async with asyncio.timeout(self._database.wait_seconds):
                    await turns.enter_async_context(turn)
                    if tenant != HOUSE:
                        await turns.enter_async_context(self._naming)
            except TimeoutError:
                raise Unavailable("Many new job types are being made; try again shortly.") from None
            yield

    async def _in_time(self, ask: Callable[[float], Awaitable[Brought]], seconds: float) -> Brought:
        with told_if_away:
            return await again(ask, seconds)

    async def _count_and_add(
        self, namer: Namer, names: Sequence[str], all_or_none: bool, seconds: float
    ) -> Brought:
        async with self._database.people(seconds) as connection, connection.transaction():
            await store.take_turns(connection, namer.tenant)
            there = await store.names_for(connection, namer.tenant, names)
            fresh = [name for name in names if not _may_use(namer, there.get(name))]
            room = await self._room(connection, namer) if fresh else 0
            is_full = all_or_none and len(fresh) > room
            taken = [] if is_full else fresh[: max(room, 0)]
            made = await _add(connection, namer, taken) if taken else {}
        refused = set(fresh).difference(taken)
        for name, one in there.items():
            if name not in refused:
                self._learn_name(one)
                if one.by_worker is not None:
                    self._learn_namer(name, namer.tenant, one.by_worker)
        for name, number in made.items():
            self._learn_name(StoredName(number, name, namer.is_house or name in self.shared))
            if not namer.is_house:
                self._learn_namer(name, namer.tenant, namer.by_worker)
        ids = {name: there[name].id for name in there if name not in refused} | made
        return Brought(ids, [name for name in fresh if name in refused])

    async def _room(self, connection: Connection, namer: Namer) -> int:
        if namer.is_house:
            return SHARED_NAMES_MAX - await store.count_shared(connection)
        count = await store.count_of_tenant(connection, namer.tenant, by_worker=namer.by_worker)
        return min(TENANT_NAMES_MAX - count, TENANTS_NAMES_MAX - self.tenants_count)

    def no_room(self, namer: Namer) -> InvalidRequest:
        who, most = "A tenant's jobs, schedules and pauses", TENANT_NAMES_MAX
        if namer.is_house:
            who, most = "Shared workers and operators", SHARED_NAMES_MAX
        elif self.tenants_count >= TENANTS_NAMES_MAX:
            who, most = "All tenants together", TENANTS_NAMES_MAX
        return InvalidRequest(
            f"{who} may name {most} job types, and with this there would be more. A type is a kind"
            " of work, not a place for data: put what varies into the payload. A name that no job,"
            " schedule, pause or worker uses any more is free again after a day; a job that has"
            " ended uses it for as long as it is kept.",
            code="TOO_MANY_JOB_TYPES",
            field="/type",
        )

    # -- what the store says -------------------------------------------------------------------

    async def load(self) -> None:
        async with self._database.people() as connection:
            names = await store.all_names(connection)
            namers = await store.all_namers(connection)
        for one in names:
            self._learn_name(one)
        for name, tenant, by_worker in namers:
            if name in self.ids:  # else it came in between, and is asked for
                self._learn_namer(name, tenant, by_worker)

    def learn(self, one: JobType, before: JobType | None) -> None:
        """A type has changed, here or through another server."""
        if one.is_let_go:
            self._forget(one.name, one.id)
            return
        self._learn_name(StoredName(one.id, one.name, one.is_shared))
        if one.renounced_at != (before.renounced_at if before else None):
            self.namers.pop(one.name, None)  # whoever still uses it asks

    def _learn_name(self, one: StoredName) -> None:
        self._not_in_use.pop(one.name, None)
        self.ids[one.name] = one.id
        self.by_id[one.id] = one.name
        if one.is_shared:
            self.shared.add(one.name)
        else:
            self.shared.discard(one.name)

    def _learn_namer(self, name: str, tenant: TenantId, by_worker: bool) -> None:
        namers = self.namers.setdefault(name, {})
        namers[tenant] = by_worker or namers.get(tenant, False)

    def _forget(self, name: str, number: TypeId) -> None:
        if self.ids.get(name) == number:
            del self.ids[name]
            self.shared.discard(name)
            self.namers.pop(name, None)
            self._keep_old(number)

    def _keep_old(self, number: TypeId) -> None:
        """Of names that are not in use the latest are known by number, not all there ever were."""
        self._old_numbers.append(number)
        if len(self._old_numbers) > OLD_NUMBERS_KEPT:
            oldest = self._old_numbers.popleft()
            if self.ids.get(self.by_id.get(oldest, "")) != oldest:
                self.by_id.pop(oldest, None)

    # -- questions -----------------------------------------------------------------------------

    async def find(self, name: str, asker: TenantId | None = None) -> TypeId | None:
        """The type of this name, through any server, or None. A tenant asks in its turn.

        One that was let go has its number still: a job that came just then is found by it.
        """
        is_name = name.isprintable() and len(name) <= NAME_CHARACTERS_MAX
        if is_name and not self._is_answered(name):
            async with told_if_away, self._database.asked(asker) as connection:
                if not self._is_answered(name):  # meanwhile, to another who asked
                    await self._ask(connection, name)
        number = self.ids.get(name)
        if number is None and name in self._not_in_use:
            return self._not_in_use[name].number
        return number

    def _is_answered(self, name: str) -> bool:
        answer = self._not_in_use.get(name)
        is_fresh = answer is not None and answer.until > asyncio.get_running_loop().time()
        return is_fresh or name in self.ids

    async def _ask(self, connection: Connection, name: str) -> None:
        until, number = asyncio.get_running_loop().time() + ABSENT_SECONDS, None
        for one in await store.read_names(connection, [name]):
            if one.is_let_go:
                number = one.id
            else:
                self._learn_name(one)
        if name not in self.ids:
            self._not_in_use.pop(name, None)
            self._not_in_use[name] = Answer(until, number)
            if len(self._not_in_use) > ABSENT_NAMES_REMEMBERED:
                del self._not_in_use[next(iter(self._not_in_use))]

    async def names_of(self, numbers: Iterable[TypeId]) -> dict[TypeId, str]:
        """Of all these; those that are not in use any more are asked for together."""
        found = {number: self.by_id.get(number) for number in numbers}
        missing = [number for number, name in found.items() if name is None]
        if missing:
            async with self._database.people() as connection:
                old = await store.names_of(connection, missing)
            found |= old
            self.by_id |= old
            for number in old:
                self._keep_old(number)
        return {number: name or f"type-{number}" for number, name in found.items()}


def _may_use(namer: Namer, one: StoredName | None) -> bool:
    if one is None:
        return False
    if one.is_shared:
        return True
    return one.by_worker is not None and (one.by_worker or not namer.by_worker)


async def _add(connection: Connection, namer: Namer, names: Sequence[str]) -> dict[str, TypeId]:
    if namer.is_house:
        return await store.name_for_all(connection, names)
    return await store.name_for_tenant(connection, namer.tenant, names, by_worker=namer.by_worker)
