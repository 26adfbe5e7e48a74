"""The pipe between a keeper and its runners: JSON frames with a length, over a socket pair.

Both ends are this program, so the messages are short and private; the contract with the platform
is the exchange, not this.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from fairway.core.limits import CANCEL_GRACE_MS, UNLIMITED, RunLimits
from fairway.wire.exchange import NULL, Lease

_LENGTH = struct.Struct("!I")
LARGE_BYTES = 64 << 10  # a frame or result that is worth the trouble of not copying it
Message = TypeVar("Message")


class RunLease(Lease, kw_only=True, omit_defaults=True, gc=False):
    """A lease, with the checkpoint that its run begins from."""

    checkpoint: Raw = NULL


class CheckpointAnswer(Struct, kw_only=True, omit_defaults=True):
    """Whether a checkpoint is safe now; else why not."""

    job: str
    epoch: int
    number: int
    problem: str = ""


class Duty(Struct, kw_only=True, omit_defaults=True):
    """Keeper → runner, the first word: which app, in how many threads, under which limits."""

    target: str
    threads: int
    limits: RunLimits | None = None


class Orders(Struct, kw_only=True, omit_defaults=True):
    """Keeper → runner."""

    leases: Sequence[RunLease] = []  # the keeper sends those without a checkpoint as they came
    saved: list[CheckpointAnswer] = []
    cancel: list[str] = []  # ask these jobs to stop
    give_up: list[str] = []  # cancel these at once: nobody waits for them any more
    overdue: list[str] = []  # past their time limit and still here: report that, let them be
    drain: bool = False  # the worker ends soon: let handlers know


class Declared(Struct, kw_only=True):
    """A job type as the app declares it."""

    name: str
    mode: str
    timeout_ms: int | None = None
    attempts_max: int | None = None
    most: dict[str, int] = {}  # failure class → runs that may end so
    limits: RunLimits = UNLIMITED
    cancel_grace_ms: int = CANCEL_GRACE_MS
    runaway_after_ms: int | None = None
    is_mode_chosen: bool = False  # else the pool may know better
    pool: str | None = None
    dependency: str = ""
    warm_key: str = ""
    version: str = ""
    schema: dict[str, Any] | None = None


class Ended(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One run's end."""

    job: str
    epoch: int  # of the lease it ran under: a lost one must not speak for its successor
    kind: str
    ran_us: int
    result: Raw = NULL
    failure: str | None = None
    error: Raw = NULL
    delay_ms: int = 0


class Progress(Struct, kw_only=True, gc=False):
    job: str
    progress: Raw


class Checkpoint(Struct, kw_only=True, gc=False):
    """A state that a run wants to be saved."""

    job: str
    epoch: int
    number: int
    state: Raw


class Words(Struct, kw_only=True, omit_defaults=True):
    """Runner → keeper."""

    declared: list[Declared] | None = None  # the first word of every runner
    pid: int = 0  # goes with it: the keeper started the reaper above
    ended: list[Ended] = []
    progress: list[Progress] = []
    checkpoints: list[Checkpoint] = []
    stuck: bool = False  # too many of its threads are lost to jobs that would not stop


class Pipe(asyncio.Protocol, Generic[Message]):
    """One end of the pipe. `on_message` is called for each frame, `on_close` once."""

    def __init__(
        self,
        kind: type[Message],
        on_message: Callable[[Message], None],
        on_close: Callable[[], None],
    ) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._encode = msgspec.json.Encoder().encode
        self._on_message = on_message
        self._on_close = on_close
        self._buffer = bytearray()
        self._transport: Any = None

    @classmethod
    async def join(
        cls,
        end: socket.socket,
        kind: type[Message],
        on_message: Callable[[Message], None],
        on_close: Callable[[], None],
    ) -> Pipe[Message]:
        end.setblocking(False)
        loop = asyncio.get_running_loop()
        _, pipe = await loop.create_unix_connection(
            lambda: cls(kind, on_message, on_close), sock=end
        )
        return pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._on_close()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= 4:
            end = start + 4 + _LENGTH.unpack_from(buffer, start)[0]
            if len(buffer) < end:
                break
            if end - start > LARGE_BYTES and end == len(buffer):
                self._buffer = bytearray()  # what was sent keeps the old one: no copy of megabytes
                self._on_message(self._decode(memoryview(buffer)[start + 4 :]))
                return
            self._on_message(self._decode(bytes(buffer[start + 4 : end])))
            start = end
        del buffer[:start]

    def send(self, message: Struct) -> None:
        self.send_text([self._encode(message)])

    def send_text(self, parts: list[bytes | memoryview]) -> None:
        """A message as it was encoded, in parts."""
        if not self._transport.is_closing():
            self._transport.writelines([_LENGTH.pack(sum(map(len, parts))), *parts])

    def close(self) -> None:
        self._transport.close()


def first_word(end: socket.socket) -> Duty | None:
    """Wait for it without an event loop; None when the keeper went away instead."""
    length = end.recv(_LENGTH.size, socket.MSG_WAITALL)
    if len(length) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(length)
    text = end.recv(size, socket.MSG_WAITALL)
    return msgspec.json.decode(text, type=Duty) if len(text) == size else None
