"""What the dispatcher needs of others: to write, to read, and to look at the clock of a job.

It is told at birth. Where the other must know the dispatcher first, a `Late` stands in for it: a
function whose body is bound once, before anything runs. Nothing here may be left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar

from fairway.services.sessions.sessions import End, Lease

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class Sorted(NamedTuple):
    """Leases just granted: which may go out, and how the others end with nobody hearing of them."""

    in_time: list[Lease]
    late: list[End]


SortOut: TypeAlias = Callable[[list[Lease]], Sorted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    write_leases: Callable[[list[Lease]], None]  # their workers must not hear of them before that
    record_ends: Callable[[list[End]], None]  # of one kind: all succeeded, or none
    want_reads: Callable[[], None]  # windows run low
    drop_expired: SortOut  # of jobs that have a last moment to start


class Late(Generic[Asked, Answer]):
    """A function whose body is made after those who call it."""

    __slots__ = ("_body", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._body: Callable[Asked, Answer] | None = None

    def bind(self, body: Callable[Asked, Answer]) -> None:
        if self._body is not None:
            raise RuntimeError(f"{self._name} is bound already.")
        self._body = body

    @property
    def is_bound(self) -> bool:
        return self._body is not None

    def __call__(self, *args: Asked.args, **more: Asked.kwargs) -> Answer:
        if self._body is None:
            raise RuntimeError(f"{self._name} was called before it was bound.")
        return self._body(*args, **more)


@dataclass(frozen=True, slots=True)
class LatePorts:
    """The ports of a dispatcher whose writers and readers are made after it."""

    write_leases: Late[[list[Lease]], None]
    record_ends: Late[[list[End]], None]
    drop_expired: Late[[list[Lease]], Sorted]

    @classmethod
    def unbound(cls) -> LatePorts:
        return cls(*(Late(field.name) for field in fields(cls)))

    def reading_by(self, want_reads: Callable[[], None]) -> Ports:
        return Ports(
            write_leases=self.write_leases,
            record_ends=self.record_ends,
            want_reads=want_reads,
            drop_expired=self.drop_expired,
        )

    def check(self) -> None:
        """All are bound: the last step of whoever wires them."""
        unbound = [one.name for one in fields(self) if not getattr(self, one.name).is_bound]
        if unbound:
            raise RuntimeError(f"Nobody was bound to {', '.join(unbound)}.")
