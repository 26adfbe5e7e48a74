"""What a worker says in one exchange, in the words of the services: facts alone, no decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from fairway.core.ids import Epoch, TenantId
from fairway.core.run.follow_ups import WantedFollowUps
from fairway.core.run.outcome import Outcome
from fairway.services.sessions.hello import Hello
from fairway.services.sessions.offers import Offer
from fairway.services.sessions.sessions import Holding


class Report(Protocol):
    """A report as it came: which lease it claims, and what it says. It is read in place.

    Of a success nothing else is made: there are many.
    """

    n: int
    job: str
    tenant: str
    epoch: Epoch
    token: str
    kind: str
    ran_us: int
    result: Any  # JSON text, as anything that `bytes()` takes


class Call(NamedTuple):
    """Everything a worker says in one exchange."""

    session: str
    number: int  # counts the calls of the session
    worker: str
    tenant: TenantId | None  # set when the worker's key belongs to one tenant
    hello: Hello | None
    running: list[Holding] | None
    successes: list[Report]
    failures: list[tuple[Report, Outcome]]  # every other end, and what it meant
    wait_seconds: float
    draining: bool
    goodbye: bool
    is_whole: bool = False  # `running` names all that it runs, also without a hello
    on_heard: Callable[[], None] | None = None  # its reports are not looked at any more
    api_key: str = ""  # the id of the key that it showed
    # number of a success → what it starts
    follow_ups: Mapping[int, WantedFollowUps] = {}
    only_tenants: frozenset[TenantId] | None = None  # of a shared worker's key; None: any
    recycled: Mapping[Any, int] = {}  # processes that were replaced, by why
    offer: Offer | None = None  # of a worker that serves several owners
