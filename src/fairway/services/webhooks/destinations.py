"""From a webhook's address to the numbers that may be called, checked every time.

The name is resolved here and nowhere else: whoever connects gets numbers. If one of a name's
numbers is refused, the name is: a receiver that is half inside is inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

from fairway.core.errors import InvalidRequest
from fairway.core.ids import TenantId
from fairway.core.webhooks.addresses import AddressRules, Target, checked_url, refusal_of

LOOKUP_SECONDS = 5.0
NUMBERS_MAX = 32  # of a name; nobody has more

#: A name to its numbers, on behalf of an owner; raises OSError.
Lookup: TypeAlias = Callable[[str, Hashable], Awaitable[Sequence[str]]]


class Destination(NamedTuple):
    target: Target
    numbers: tuple[str, ...]  # each of them checked


class Destinations:
    def __init__(self, rules: AddressRules, lookup: Lookup) -> None:
        self._rules = rules
        self._lookup = lookup

    async def find(self, url: str, tenant: TenantId) -> Destination:
        """Raises InvalidRequest, with a sentence, for what is not called."""
        target = checked_url(url, self._rules)
        if target.number is not None:
            return Destination(target, (target.number,))
        numbers = await self._numbers(target.host, tenant)
        if any(refusal_of(number, self._rules) for number in numbers):
            raise _nowhere(target.host)
        return Destination(target, tuple(numbers))

    async def _numbers(self, name: str, tenant: TenantId) -> Sequence[str]:
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                found = await self._lookup(name, tenant)
        except TimeoutError:
            raise InvalidRequest(
                f"The name {name} was not resolved within {LOOKUP_SECONDS:g} s.", field="/url"
            ) from None
        except OSError:
            raise _nowhere(name) from None
        if not found or len(found) > NUMBERS_MAX:
            raise _nowhere(name)
        return found


def _nowhere(name: str) -> InvalidRequest:
    """The same whether a name is unknown or one of our own network: nobody learns which are."""
    return InvalidRequest(
        f"The name {name} leads to no address of the public internet.", field="/url"
    )
