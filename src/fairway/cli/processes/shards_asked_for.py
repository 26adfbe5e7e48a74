"""How many shards the settings of a program ask for, if they say a number at all.

The default is no wish: a database that was founded with another number is as it should be.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.runtime.settings import PREFIX, Settings


def shards_asked_for(settings: Settings, environment: Mapping[str, str]) -> int | None:
    return settings.shard_count if f"{PREFIX}SHARD_COUNT" in environment else None
