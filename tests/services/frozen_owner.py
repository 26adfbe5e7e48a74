"""A server that spends its life inside transactions; run as a process, for a test to stop it there.

It says `holding` once it owns every shard and begins to hold a row as each of its writes does.
"""

from __future__ import annotations

import asyncio
import sys

from tests.services.platform_room import owner_on

from fairway.store.schedules import hold_shard

HOLD_SECONDS = 1.0  # less than the server lets a transaction idle


async def hold(dsn: str) -> None:
    async with owner_on(dsn) as platform, platform.database.hot(3600) as connection:
        (shard, term), *_ = platform.dispatcher.shards.terms.items()
        sys.stdout.write("holding\n")
        sys.stdout.flush()
        while True:
            async with connection.transaction():
                assert await hold_shard(connection, shard, term)
                await asyncio.sleep(HOLD_SECONDS)


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[1]))
