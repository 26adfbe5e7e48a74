"""Who waits for the next owner of a shard: until there is one, and under a key that is good."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairway.api.auth import CALLER
from fairway.api.next_owner import LOOK_SECONDS, NextOwner, OwnerGone
from fairway.api.relay import Relay
from fairway.core.errors import Forbidden
from fairway.core.ids import FIRST_SHARD, TenantId, Term
from fairway.runtime.clock import SystemClock
from fairway.services.platform import Platform
from fairway.store.leadership import Owner

URL = "http://127.0.0.1:1"
TENANT = TenantId(1)


class Owners:
    """One other server, whose term is another at each look."""

    def __init__(self) -> None:
        self.looks = 0

    @property
    def owners(self) -> dict[Any, Owner]:
        self.looks += 1
        return {FIRST_SHARD: Owner(FIRST_SHARD, Term(self.looks), "other", URL)}

    def owner_url(self, shard: object) -> str:
        return URL


def platform_with(owners: Owners) -> Platform:
    settings = SimpleNamespace(term_seconds=3.0)
    made = SimpleNamespace(settings=settings, clock=SystemClock(), ownership=owners)
    return cast(Platform, made)


async def test_an_owner_that_starts_again_at_its_address_is_the_next_one() -> None:
    platform = platform_with(Owners())
    began_us = platform.clock.now_us()
    await NextOwner(platform, lambda shard: True).after(OwnerGone(URL), FIRST_SHARD, TENANT)
    assert platform.clock.now_us() - began_us < 20 * LOOK_SECONDS * 1e6


async def test_who_waited_is_answered_under_a_key_that_is_still_good() -> None:
    class Settled:
        async def after(self, *_: object) -> None:
            """The next owner is this server."""

    class Revoked:
        def check(self, key_id: str) -> None:
            raise Forbidden("This API key was revoked.", code="UNAUTHENTICATED")

    class Passing(Relay):
        def __init__(self) -> None:
            self._platform = cast(Platform, SimpleNamespace(revocation=Revoked()))
            self._next_owner = cast(NextOwner, Settled())
            self._looks = 0

        def is_elsewhere(self, shard: object) -> bool:
            self._looks += 1
            return self._looks == 1

        async def pass_on(self, *_: Any, **__: Any) -> None:
            raise OwnerGone(URL)

    caller = SimpleNamespace(key_id="k", tenant=None, scope="tenant")
    with pytest.raises(Forbidden):
        await Passing().passed_on({CALLER: caller}, b"", cast(Any, None), shard=FIRST_SHARD)
