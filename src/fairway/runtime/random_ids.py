"""Makes names that nobody can guess or make twice: of jobs, servers, sessions; tokens and keys."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Mapping

from fairway.core.ids import (
    COUNTER_MAX,
    RANDOM_BITS,
    REGION_BITS,
    JobId,
    ShardId,
    make_job_ids,
)
from fairway.core.keys import ApiKey
from fairway.core.run.lease_token import LIFE_DIGITS, LeaseTokens
from fairway.core.server_processes import ProcessGroup, ServerIdentity
from fairway.runtime.clock import Clock


class JobIdFactory:
    """Ids of one process: in order within a millisecond, apart from other processes by chance."""

    def __init__(self, clock: Clock, region_number: int = 0) -> None:
        """With the number of a region every id says where it was made; 0: there are none."""
        self._clock = clock
        self._chance_bits = RANDOM_BITS - (REGION_BITS if region_number else 0)
        self._region = region_number << (RANDOM_BITS - REGION_BITS)
        # Not a secret: an id only has to differ from other processes' ids of the same moment.
        self._random = random.Random(secrets.randbits(128))
        self._last_ms = 0
        self._counter = 0

    def make(self, shard: ShardId, count: int) -> list[JobId]:
        now_ms = max(self._clock.unix_ms(), self._last_ms)
        if now_ms > self._last_ms or self._counter + count >= COUNTER_MAX:
            now_ms = max(now_ms, self._last_ms + 1)
            self._last_ms, self._counter = now_ms, 0
        start = self._counter
        self._counter += count
        random = self._region | self._random.getrandbits(self._chance_bits)
        return make_job_ids(shard, now_ms, start, random, count)


def lease_tokens(secret: str = "") -> LeaseTokens:
    """Of a server that begins its life; without its cluster's secret it knows its own alone."""
    return LeaseTokens(secret or secrets.token_hex(32), secrets.token_hex(LIFE_DIGITS // 2))


def server_identity(environment: Mapping[str, str] = os.environ) -> ServerIdentity:
    """By which other servers tell one from all that are and were."""
    group = ProcessGroup.of(environment)
    name = secrets.token_hex(8) if group is None else group.server_name(os.getpid())
    return ServerIdentity(name, group)


def session_key() -> str:
    return secrets.token_hex(16)


def sign_in_token() -> str:
    return secrets.token_urlsafe(32)


def new_api_key(scope: str) -> ApiKey:
    return ApiKey.compose(scope, secrets.token_hex(8), secrets.token_urlsafe(32))
