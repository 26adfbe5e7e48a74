"""What a flow is as it is handed in, and who takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

from fairway.wire.flows import FlowView
from fairway.wire.messages import JobRequest

OnAll = Literal["succeeded", "ended"]


class FlowPlan(NamedTuple):
    """What is handed in."""

    kind: Literal["group", "chain"]
    jobs: Sequence[JobRequest]
    arguments: Sequence[str | None] = ()
    callback: JobRequest | None = None
    on_all: OnAll = "succeeded"
    after: Sequence[str] = ()
    types: Sequence[Any] = ()  # the job types of the jobs, and of the callback: who runs them here


class FlowIds(NamedTuple):
    """What it is called, when it is on disk."""

    id: str
    jobs: list[str]
    callback: str | None


class FlowStatus(FlowView):
    """What `handle.status()` of a flow answers: the view of the API, in plain Python values."""

    error: Any = None


class FlowDoor(Protocol):
    """Who takes flows."""

    async def submit(self, plan: FlowPlan) -> FlowIds:
        """All of it is on disk."""

    async def look(self, flow_id: str) -> FlowStatus:
        """Where it stands."""

    async def cancel(self, flow_id: str) -> FlowStatus:
        """What has not ended is cancelled."""

    async def replay(self, flow_id: str) -> int:
        """How many of its jobs went back to the queue."""
