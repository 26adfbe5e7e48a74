"""Connections to PostgreSQL: pools with deadlines, and the three ways to run a statement.

Four pools, so that nobody waits behind another's kind of work: *hot* for the statements of the job
path, whose plans are pinned to index lookups; *people* for what people and programs ask and wait
for; *background* for what is refreshed, swept, pruned and measured; *upkeep*, as the owner of the
tables, for partitions and statistics. No transaction here is ever long, and no use of a connection
waits without end (`connection_cache.py`). As whom each asks is in `row_security.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import asyncpg

from fairway.core.ids import ShardId, TenantId
from fairway.core.server_processes import WHOLE, PoolSizes
from fairway.store.connections import placement
from fairway.store.connections.connection_cache import (
    ConnectionCache,
    Deadline,
    NoConnection,
    StoreAway,
    Use,
)
from fairway.store.connections.connection_setup import leave_clean, vouch
from fairway.store.connections.hosts import Hosts
from fairway.store.connections.known_types import TypedConnection, placed_by
from fairway.store.connections.move_fence import MoveFence
from fairway.store.connections.node_errors import CancelledInDoubt
from fairway.store.connections.node_turns import NodeTurns, UseAtNode
from fairway.store.connections.placement import Placement
from fairway.store.connections.query_slots import QUICK, QuerySlots, SlowUse
from fairway.store.connections.row_security import FOR_ALL, SERVER, TENANT, Scope, UseAs
from fairway.store.connections.session_limits import (
    GONE_CLIENTS,
    LEADER_LIMITS,
    LEADER_LOCKS,
    SHORT_LOCKS,
    TIME_LIMITS,
)
from fairway.store.connections.slow_calls import (
    SlowCalls,
    WatchedConnection,
    look_back,
    now,
    watched_by,
)
from fairway.store.sql import Statement

Connection: TypeAlias = Any  # asyncpg ships no types; one alias keeps signatures honest
Record: TypeAlias = Any
Value = TypeVar("Value")

#: A hot statement goes from the batch to the rows by key, whatever the planner thinks of a table's
#: size this minute: a plan made while a partition was empty must not become a scan when it is full.
#: The statements help: they are written so that a look-up by key per item of the batch is the only
#: way that is not switched off here (decisions 0004 and 0021). An index is dearer than a place.
PINNED_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "enable_material": "off",
    "cpu_index_tuple_cost": "10",
    "random_page_cost": "1.1",
    "jit": "off",
}

#: People's questions and upkeep may join as they like, but a partition that was empty when they
#: were planned is not read from end to end when it is full.
BACKGROUND_PLANS = {"jit": "off", "enable_seqscan": "off"}

OWNER_SECONDS = 60.0  # a use by a loop of the owner's; a store that is away is noticed before
PATIENT_WAIT_SECONDS = 10.0  # for a connection, when nobody waits for the answer
UPKEEP_COMMAND_SECONDS = 40.0
CONNECT_SECONDS = 5.0
SLOW_SECONDS = 5.0  # a question that goes through many rows


class Pools(NamedTuple):
    hot: ConnectionCache
    people: ConnectionCache
    background: ConnectionCache
    upkeep: ConnectionCache


class Database:
    """The pools of one process. Open with `Database.open(...)`, close with `close()`."""

    def __init__(
        self,
        hosts: Hosts,
        pools: Sequence[Any],
        *,
        wait: float,
        slow_calls: SlowCalls,
        fence: MoveFence,
        has_roles: bool,
        by_shard: bool,
        placed: Placement | None = None,
    ) -> None:
        self.by_shard = by_shard  # no statement may name two shards
        self.placement = placed  # of a distributed store; None: it is one PostgreSQL
        self.dsn = hosts.dsn
        self.hosts = hosts
        self.slow_calls = slow_calls  # on the hot pool
        self.wait_seconds = wait  # how long somebody who asked waits for the store
        waits = (PATIENT_WAIT_SECONDS, wait, PATIENT_WAIT_SECONDS, PATIENT_WAIT_SECONDS)
        self._pools = Pools(
            *(ConnectionCache(*each, self.renew) for each in zip(pools, waits, strict=True))
        )
        self._hot, self._people, self._background, self._upkeep = self._pools
        halves = max(1, pools[0].get_max_size() // 2) if placed else 0
        self._at_nodes = NodeTurns(placed, halves) if placed else None
        self._slots, self._quick = QuerySlots(wait), QuerySlots(wait, QUICK)
        self._dedicated: set[Connection] = set()
        self.has_roles = has_roles
        self.fence = fence  # against those who have missed the move of a tenant
        self.is_away = False  # silent: nothing is asked of it

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        owner_dsn: str | None = None,
        row_security: bool = True,
        wait_seconds: float = 3.0,
        by_shard: bool = False,
        sizes: PoolSizes = WHOLE,
    ) -> Database:
        hosts, slow_calls = Hosts(dsn), SlowCalls()
        fence = MoveFence(SERVER if row_security else None)
        owners = hosts if owner_dsn is None else Hosts(owner_dsn)
        await hosts.look_at_all()
        placed = await placement.read_placement(hosts)
        as_server = {"role": SERVER} if row_security else {}
        as_tenant = {"role": TENANT} if row_security else {}  # whose, each use says
        pins = (PINNED_PLANS, BACKGROUND_PLANS)
        hot_plans, plans = pins if placed is None else (placement.SETTINGS, placement.SETTINGS)
        limits = {"statement_timeout": f"{SLOW_SECONDS:g}s", **SHORT_LOCKS}
        asked, background = ({**limits, **plans, **as_tenant}, {**plans, **as_server})
        pinned = {**SHORT_LOCKS, **hot_plans, **as_server}
        usual = partial(_pool, kind=placed_by(WatchedConnection, placed), fence=fence)
        watched = placed_by(watched_by(slow_calls), placed)
        slow = partial(usual, command_seconds=UPKEEP_COMMAND_SECONDS)
        upkeep = {"application_name": "fairway-upkeep", **plans}
        pools = (
            await usual(hosts, sizes.hot, fence.named("hot", pinned), kind=watched),
            await usual(hosts, sizes.people, fence.named("people", asked)),
            await slow(hosts, sizes.background, fence.named("background", background)),
            await slow(owners, sizes.upkeep, upkeep, fence=None),
        )
        return cls(
            hosts,
            pools,
            wait=wait_seconds,
            slow_calls=slow_calls,
            fence=fence,
            has_roles=row_security,
            by_shard=by_shard,
            placed=placed,
        )

    def hot(self, seconds: float = OWNER_SECONDS, at: ShardId | None = None) -> Use | UseAtNode:
        """For the job path. Whoever has somebody waiting passes how long that one may wait; and
        everybody a shard, by which the node is known that the answer comes from."""
        use = self._hot.use(seconds)
        if self._at_nodes is None or at is None:
            return use
        return self._at_nodes.use(at, use, min(seconds, PATIENT_WAIT_SECONDS))

    def people(self, seconds: float | None = None) -> UseAs:
        """For what operators and the house itself ask and wait for; tenants' are `quick`."""
        return self._as(FOR_ALL, self.wait_seconds if seconds is None else seconds)

    def quick(self, tenant: TenantId) -> SlowUse:
        """For a tenant's quick question: however many it asks, others find a connection."""
        return SlowUse(self._quick, tenant, self._as(Scope(TENANT, tenant), self.wait_seconds))

    def writing(self, tenant: TenantId) -> SlowUse:
        """For jobs that a tenant's request makes: in its turn, as the server (COPY needs that)."""
        return SlowUse(self._quick, tenant, self.people())

    def asked(self, tenant: TenantId | None) -> UseAs | SlowUse:
        """For a quick question of a tenant's; None: of an operator's, or of the house itself."""
        return self.people() if tenant is None else self.quick(tenant)

    def slow(self, tenant: TenantId) -> SlowUse:
        """For a tenant's question that may go through very many rows: few at a time."""
        seconds = SLOW_SECONDS + self.wait_seconds
        return SlowUse(self._slots, tenant, self._as(Scope(TENANT, tenant), seconds))

    def mixed(self, tenant: TenantId | None) -> UseAs | SlowUse:
        """As `slow`, over rows of which one may hold several tenants': as the server, so the
        statement says whose. None: for an operator, or the house itself."""
        seconds = SLOW_SECONDS + self.wait_seconds
        use = self._as(FOR_ALL, seconds)
        return use if tenant is None else SlowUse(self._slots, tenant, use)

    def _as(self, scope: Scope, seconds: float) -> UseAs:
        use = self._people.use(seconds)
        return UseAs(use, scope if self.has_roles else None, self.fence)

    def background(self) -> Use:
        """For the server's own work, which never waits behind people and has time."""
        return self._background.use(None)

    def upkeep(self) -> Use:
        """For changes of tables: partitions and statistics, as their owner."""
        return self._upkeep.use(None)

    def together(self, shard: ShardId) -> int | None:
        """What is the same for shards that one statement may name; None: it may name all."""
        if self.by_shard:
            return shard
        if self.placement is None:
            return None
        return self.placement.group_of.get(shard, -1 - shard)

    def is_silent(self, shard: ShardId) -> bool:
        """Whether it lies on a node of a distributed store that does not answer."""
        return self.placement is not None and self.placement.is_silent(shard)

    def batches_of(self, shards: Iterable[ShardId]) -> list[list[ShardId]]:
        """Shards that one statement may name: all, or on a distributed store a group of them."""
        groups: dict[int | None, list[ShardId]] = {}
        for shard in shards:
            groups.setdefault(self.together(shard), []).append(shard)
        return list(groups.values())

    @property
    def waiting(self) -> int:
        """Calls that want a connection and have none yet."""
        return sum(pool.waiting for pool in self._pools)

    def under_way(self) -> set[Use]:
        """Uses of all pools that have begun, also those that wait for a connection."""
        return set[Use]().union(*(pool.under_way() for pool in self._pools))

    async def dedicated(
        self, name: str = "fairway-leader", seconds: float = CONNECT_SECONDS
    ) -> Connection:
        """A connection of its own, for work that must never wait for a pool (leadership)."""
        connection = await self.hosts.connect(
            connection_class=placed_by(TypedConnection, self.placement),
            server_settings={
                "application_name": name,
                **GONE_CLIENTS,
                **(TIME_LIMITS | LEADER_LOCKS),
                **({} if self.placement is None else placement.SETTINGS | LEADER_LIMITS),
                **({"role": SERVER} if self.has_roles else {}),
            },
            timeout=seconds,
            command_timeout=10,
        )
        self._dedicated = {one for one in self._dedicated if not one.is_closed()} | {connection}
        async with Deadline(connection, seconds):
            await vouch(connection)
        return connection

    async def away(self) -> None:
        """The store does not answer: whoever waits for it hears so now, and others at once."""
        self.is_away = True
        for pool in self._pools:
            await pool.away()

    def back(self) -> None:
        self.is_away = False
        for pool in self._pools:
            pool.back()

    async def close(self) -> None:
        self._let_go()
        for pool in self._pools:
            await pool.close()

    def terminate(self) -> None:
        """Close without waiting for anybody."""
        self._let_go()
        for pool in self._pools:
            pool.terminate()

    async def renew(self) -> None:
        """One connection leads to a server that was demoted: so may all the others."""
        for pool in self._pools:
            await pool.renew()

    def _let_go(self) -> None:
        for connection in self._dedicated:
            connection.terminate()


async def _pool(
    hosts: Hosts,
    size: int,
    settings: dict[str, str],
    *,
    kind: type[WatchedConnection],
    fence: MoveFence | None,  # None: nothing of a tenant's is written here
    command_seconds: float | None = None,
) -> Any:
    async def connect(first: str, **options: Any) -> Connection:
        return await hosts.connect_any(**options)  # in the order of this moment

    async def begin(connection: Connection) -> None:
        await vouch(connection)
        if fence is not None:
            await fence.begin(connection)

    return await asyncpg.create_pool(
        hosts.dsn,
        connect=connect,
        connection_class=kind,
        min_size=0,
        max_size=size,
        max_inactive_connection_lifetime=0,
        init=begin,
        # The driver's own reset is one more round trip for every use of a connection.
        reset=leave_clean,
        command_timeout=command_seconds,  # None: the use has a deadline
        timeout=CONNECT_SECONDS,
        server_settings={**GONE_CLIENTS, **TIME_LIMITS, **settings},
    )


async def fetch(connection: Connection, statement: Statement, **values: Any) -> list[Record]:
    began, statement = now(), statement.at(connection)
    try:
        rows: list[Record] = await connection.fetch(statement.text, *statement.bind(**values))
        return rows
    finally:
        look_back(connection, statement, began)


async def fetch_row(connection: Connection, statement: Statement, **values: Any) -> Record | None:
    began, statement = now(), statement.at(connection)
    try:
        return await connection.fetchrow(statement.text, *statement.bind(**values))
    finally:
        look_back(connection, statement, began)


async def fetch_as(
    kind: Callable[..., Value], connection: Connection, statement: Statement, **values: Any
) -> list[Value]:
    """Each row as one of these: its columns are their fields, in the same order."""
    return [kind(*row) for row in await fetch(connection, statement, **values)]


async def fetch_values(connection: Connection, statement: Statement, **values: Any) -> list[Any]:
    """Of each row the first column."""
    return [row[0] for row in await fetch(connection, statement, **values)]


async def fetch_value(connection: Connection, statement: Statement, **values: Any) -> Any:
    """The first column of the first row; None when there is no row."""
    row = await fetch_row(connection, statement, **values)
    return None if row is None else row[0]


async def is_found(connection: Connection, statement: Statement, **values: Any) -> bool:
    """Whether it answers with a row."""
    return await fetch_row(connection, statement, **values) is not None


async def execute(connection: Connection, statement: Statement, **values: Any) -> int:
    """Run a statement that returns no rows; answers how many rows it touched, if it does so."""
    began, statement = now(), statement.at(connection)
    try:
        tag: str = await connection.execute(statement.text, *statement.bind(**values))
        count = tag.rsplit(" ", 1)[-1]
        return int(count) if count.isdigit() else 0
    finally:
        look_back(connection, statement, began)


#: What the server says of a statement or transaction that it surely undid, and that may pass:
#: the whole of it can be tried again.
ROLLED_BACK = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
)

#: What says that surely nothing was written, whether or not another try would go better.
UNDONE = (
    *ROLLED_BACK,
    NoConnection,
    asyncpg.InsufficientResourcesError,  # disk, memory, connections
    asyncpg.ReadOnlySQLTransactionError,
)

#: What passes: a store that is away, restarting, cut off, locked, full, out of memory or read-only
#: since a failover. It says nothing about what was to be written; callers answer "try again".
DISCONNECTED = (
    *UNDONE,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shut down, started, taken over
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.PostgresSystemError,  # its disk
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a COPY whose connection broke: the rollback finds it unfinished
    StoreAway,
    CancelledInDoubt,
    OSError,  # cut off, refused, too slow (`TimeoutError`), no such socket, a broken TLS
)

#: A row with this key is there already; nothing of the statement was kept.
ID_TAKEN = (asyncpg.UniqueViolationError,)
