"""The two testing modes, and the clock of whichever is open.

    with testing.manual() as mode:      # enqueue stores; drain runs
    with testing.inline() as mode:      # enqueue runs the job at once, with its retries

A mode is open in the current context and in what is started from it (tasks, `to_thread`, the
synchronous API); a thread made by hand does not see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from fairway.sdk.client.backend import testing_backend
from fairway.sdk.client.handle import blocking_run
from fairway.sdk.durations import Duration
from fairway.sdk.testing.memory import MemoryDoor


@contextmanager
def inline() -> Iterator[MemoryDoor]:
    """Each job runs when it is enqueued, through to its final state; pauses take no time."""
    with _open(MemoryDoor(inline=True)) as backend:
        yield backend


@contextmanager
def manual() -> Iterator[MemoryDoor]:
    """Jobs are kept until `drain`; time passes only by `clock.advance`."""
    with _open(MemoryDoor(inline=False)) as backend:
        yield backend


def open_mode() -> MemoryDoor:
    """The testing mode of this context; RuntimeError when there is none."""
    backend = testing_backend.get()
    if not isinstance(backend, MemoryDoor):
        raise RuntimeError("no testing mode is open here: use `with testing.manual():`")
    return backend


def drain(*, with_scheduled: bool = False) -> Counter[str]:
    """Run the jobs that are due until none is; how often each outcome came up.

    Jobs for later and retries wait for `clock.advance`. `with_scheduled` turns the clock to each of
    them in turn, until nothing waits at all.
    """
    return blocking_run(adrain(with_scheduled=with_scheduled))


async def adrain(*, with_scheduled: bool = False) -> Counter[str]:
    return await open_mode().drain(with_scheduled=with_scheduled)


class OpenClock:
    """The clock of the mode that is open where it is used."""

    @property
    def unix_seconds(self) -> float:
        return open_mode().clock.unix_seconds

    def advance(self, duration: Duration) -> None:
        open_mode().clock.advance(duration)


clock = OpenClock()


@contextmanager
def _open(backend: MemoryDoor) -> Iterator[MemoryDoor]:
    token = testing_backend.set(backend)
    try:
        yield backend
    finally:
        testing_backend.reset(token)
