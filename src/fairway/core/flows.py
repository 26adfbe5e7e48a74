"""Flows: counters of how jobs end, and what follows for the jobs that wait for them.

One thing does for chains, groups and `after`: a flow counts the ends of its members, and starts
those that wait for it when all is as they need it. A chain is a flow that shows it as a whole, and
a link between each two of its jobs. A dead job may be replayed, so who needs its success waits on;
one that was cancelled or has expired will never succeed, so who needs it never starts.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from enum import Enum, IntEnum
from typing import NamedTuple

from fairway.core.ids import NO_EPOCH, JobId, TenantId, unix_ms_of
from fairway.core.lifecycle import State
from fairway.core.run.follow_up_ids import follow_up_ids

CHAIN_MAX = 100  # jobs of a chain
GROUP_MAX = 100_000  # jobs of a group
PAGE_MAX = 1_000  # jobs of a group that come with one call
AFTER_MAX = 100  # jobs that one waits for
STARTERS_MAX = 100  # jobs of a group that wait for others
FLOWS_OF_A_JOB_MAX = 20  # that count its end
ARGUMENT_CHARACTERS_MAX = 256  # of its name

_NEVER_COMPLETE = b'{"type":"FlowIncomplete","message":"%b"}'
#: Why a job that waits for others is cancelled, as its error.
CANCELLED = _NEVER_COMPLETE % (
    b"A job that this one waits for was cancelled or has expired, so what it needs will never be."
)
TOO_LARGE = _NEVER_COMPLETE % (
    b"The result that was to be its first argument is too large to be handed on in a flow:"
    b" keep it elsewhere, and return where."
)
FORGOTTEN = _NEVER_COMPLETE % (
    b"What this job waits for did not come to an end within the time that flows are kept."
)

#: When a job is due that waits for others: not by any clock. (An index wants a finite time.)
NEVER = datetime(9999, 1, 1, tzinfo=UTC)


class Kind(IntEnum):
    GROUP = 0
    CHAIN = 1
    LINK = 2  # between jobs; nobody asked for it by name


class Needs(IntEnum):
    """What those that wait for a flow need of it."""

    SUCCEEDED = 0  # every member
    ENDED = 1  # every member, however


class FlowTally(NamedTuple):
    """How many members there are, and how so many of them ended."""

    members: int
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def live(self) -> int:
        return self.members - self.succeeded - self.failed - self.cancelled


def tally_of(states: Collection[int]) -> FlowTally:
    """Of members that are in these states."""
    counted = Counter(states)
    return FlowTally(
        len(states),
        counted[State.SUCCEEDED],
        counted[State.DEAD],
        counted[State.CANCELLED] + counted[State.EXPIRED],
    )


class Step(Enum):
    WAIT = "wait"
    RELEASE = "release"
    GIVE_UP = "give up"  # what is needed will never be


def step_of(needs: Needs, tally: FlowTally, *, is_open: bool) -> Step:
    """What becomes of those that wait."""
    if needs is Needs.SUCCEEDED and tally.cancelled:
        return Step.GIVE_UP
    if is_open or tally.live:
        return Step.WAIT
    is_met = needs is Needs.ENDED or tally.succeeded == tally.members
    return Step.RELEASE if is_met else Step.WAIT


LABELS = ("running", "succeeded", "failed", "cancelled")


def label_of(kind: Kind, tally: FlowTally, *, is_open: bool) -> str:
    """The state of a flow, for people."""
    is_stuck = kind is Kind.CHAIN and bool(tally.failed or tally.cancelled)
    if (is_open or tally.live) and not is_stuck:
        return "running"
    if tally.failed:
        return "failed"
    return "cancelled" if tally.cancelled else "succeeded"


class MemberSeen(NamedTuple):
    """Where a member stands."""

    tenant: TenantId
    state: State
    flows: tuple[str, ...]


class Change(NamedTuple):
    """What is to be added to the counters of a flow."""

    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    example: JobId | None = None  # one that went wrong


_COUNTED = {
    State.SUCCEEDED: Change(succeeded=1),
    State.DEAD: Change(failed=1),
    State.CANCELLED: Change(cancelled=1),
    State.EXPIRED: Change(cancelled=1),
}
_NOTHING = Change()


def changes_of(
    moves: Iterable[tuple[JobId, MemberSeen, State]],
) -> dict[tuple[TenantId, str], Change]:
    """What these moves of members, from where they were seen to a state, mean for their flows."""
    found: dict[tuple[TenantId, str], Change] = {}
    for job, before, after in moves:
        old, new = _COUNTED.get(before.state, _NOTHING), _COUNTED.get(after, _NOTHING)
        if old == new:
            continue
        for flow in before.flows:
            sum_ = found.get((before.tenant, flow), _NOTHING)
            found[before.tenant, flow] = Change(
                sum_.succeeded + new.succeeded - old.succeeded,
                sum_.failed + new.failed - old.failed,
                sum_.cancelled + new.cancelled - old.cancelled,
                job if new.failed or new.cancelled else sum_.example,
            )
    return {key: change for key, change in found.items() if change[:3] != (0, 0, 0)}


def member_ids(flow: str, count: int, first: int = 0) -> list[JobId]:
    """The jobs of a flow, by their places: found from its id, so a page sent again is the same."""
    return follow_up_ids(flow, NO_EPOCH, unix_ms_of(flow), count, first)


def members_before(flow: str, count: int, job: JobId) -> int:
    """How many of so many jobs of a flow have lower ids; found without making them all."""
    return bisect_left(range(count), job, key=lambda n: member_ids(flow, 1, n)[0])


def with_argument(payload: bytes, name: str, value: bytes) -> bytes:
    """A payload, which is a JSON object, with one argument more: JSON text, as it is."""
    rest = payload.strip()[1:-1].strip()
    given = json.dumps(name).encode() + b":" + value
    return b"{" + given + (b"," + rest if rest else b"") + b"}"
