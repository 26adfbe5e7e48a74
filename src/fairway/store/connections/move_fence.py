"""Keeps servers that have missed the move of a tenant from writing where it was.

A server that stood still while a tenant moved wakes up with connections, and with requests that it
let in before. So that it writes nothing of them to the old shard, two things hold, which cost no
statement anything:

- The name of every connection tells whose it is. Before rows move, those of processes that have not
  said that they know of the move are ended (`store/registry/tenant_moves.py`).
- A connection is handed out only when its process knows of all moves that had been asked for when
  it was made.

What remains is that whoever writes for a tenant asks for its shard again once it has a connection
(`TenantShards.still_takes`). It says nothing of who owns a shard: terms do.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

Connection: TypeAlias = Any

NONE_READ = -1  # this process is new: nobody has asked it anything yet

#: Given how many moves are known: learns, over this connection, of all tenants that are on the way
#: or were moved, if there are more; answers how many were asked for so far.
LearnMoves: TypeAlias = Callable[[Connection, int], Awaitable[int]]


class MoveFence:
    """Of one process: its connections, and how many moves it knows of."""

    def __init__(self, role: str | None) -> None:
        self.process = secrets.randbelow((1 << 31) - 1) + 1
        self.known = NONE_READ  # moves that were asked for, all of which this process knows of
        self._role = role  # who may read all tenants; None: whoever logged in
        self._learners: list[LearnMoves] = []

    def named(self, pool: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings of a connection, with the name that tells whose it is from its first moment."""
        return {"application_name": f"fairway-{pool}/{self.process}", **settings}

    def told_to(self, learn: LearnMoves) -> None:
        """From now on whoever knows where tenants are hears of moves in time. Until then nobody
        here knows of any tenant, so nobody writes for one."""
        self._learners.append(learn)

    def has_learnt_since(self, known: int) -> bool:
        """Whether somebody who knew of so many moves may look for a tenant where it was."""
        return NONE_READ < known < self.known

    async def begin(self, connection: Connection) -> None:
        """Of a new connection, before anybody has it."""
        if not self._learners:
            return
        async with connection.transaction():
            if self._role is not None:
                await connection.execute(f"SET LOCAL ROLE {self._role}")
            for learn in self._learners:
                self.known = max(self.known, await learn(connection, self.known))
