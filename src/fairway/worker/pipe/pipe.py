"""The pipe between a keeper and its runners: JSON frames with a length, over a socket pair.

Both ends are this program, so the messages are short and private; the contract with the platform
is the exchange, not this. But one end shares its process with user code, which may write anything,
and what a tenant uploaded passes through. So no end trusts a frame to be whole: whoever hears one
that cannot be read is told so, and decides. And what was fetched for a run goes beside the text of
its frame, by length, never into it: whatever it holds, it is that lease's payload and nothing else.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from fairway.core.ownership.tenant_parts import MARK, whole_name
from fairway.core.run.process_limits import CANCEL_GRACE_MS, UNLIMITED, RunLimits
from fairway.wire.exchange import NULL, Epoch, Lease, Report
from fairway.wire.messages import EMPTY_OBJECT
from fairway.wire.storage import CheckpointNumber

_LENGTH = struct.Struct("!I")
_BESIDE = 1 << 31  # in the length: bytes follow the text, whose own length comes first
LARGE_BYTES = 64 << 10  # a frame or result that is worth the trouble of not copying it
FRAME_BYTES_MAX = _BESIDE - 1
WORDS_BYTES_MAX = 256 << 20  # that a keeper hears in one frame: user code may say any length
STATE_BYTES_MAX = WORDS_BYTES_MAX - LARGE_BYTES  # of a checkpoint, with room for what is around it
Message = TypeVar("Message", bound=Struct)
Parts: TypeAlias = list[bytes | memoryview]


class RunLease(Lease, kw_only=True, omit_defaults=True, gc=False):
    """A lease with what was fetched for it: a large payload, the checkpoint its run begins from.

    On the pipe both are beside the text; `beside` says how many bytes each has there.
    """

    checkpoint: Raw = NULL
    beside: tuple[int, int] | None = None

    @property
    def whole_tenant(self) -> str:
        """Its tenant as people call it: a very large one has several parts, each with a name."""
        return whole_name(self.tenant) if MARK in self.tenant else self.tenant

    def apart(self) -> tuple[RunLease, Parts]:
        """As it goes into the text of a frame, and what goes beside it."""
        foreign: Parts = [memoryview(self.payload), memoryview(self.checkpoint)]
        sizes = len(self.payload), len(self.checkpoint)
        bare = msgspec.structs.replace(self, payload=EMPTY_OBJECT, checkpoint=NULL, beside=sizes)
        return bare, foreign

    def take_up(self, foreign: memoryview) -> memoryview:
        """Its own of what came beside the text; answers the rest. ValueError when it does not fit.

        How large its payload is, the platform said when it granted the lease.
        """
        if self.beside is None:
            return foreign
        payload_bytes, checkpoint_bytes = self.beside
        end = payload_bytes + checkpoint_bytes
        is_fetched = self.payload_bytes is not None
        if min(self.beside) < 0 or end > len(foreign):
            raise ValueError("bytes are missing beside the text")
        if is_fetched and payload_bytes != self.payload_bytes:
            raise ValueError(f"the payload has {payload_bytes} bytes, not {self.payload_bytes}")
        self.payload = Raw(bytes(foreign[:payload_bytes]))
        self.checkpoint = Raw(bytes(foreign[payload_bytes:end]))
        return foreign[end:]


class CheckpointAnswer(Struct, kw_only=True, omit_defaults=True):
    """Whether a checkpoint is safe now; else why not."""

    job: str
    epoch: Epoch
    number: int
    problem: str = ""
    is_refused: bool = False  # as it is, it can never be saved


class RunnerSetup(Struct, kw_only=True, omit_defaults=True):
    """Keeper → runner, the first word: which app, in how many threads, under which limits."""

    target: str
    threads: int
    limits: RunLimits | None = None


class DeadJob(Struct, kw_only=True):
    """A job that a run here was the last of."""

    job: str
    type: str
    tenant: str
    attempt: int
    failure: str
    error: Raw


class KeeperMessage(Struct, kw_only=True, omit_defaults=True):
    """Keeper → runner."""

    leases: Sequence[RunLease] = []  # the keeper sends those without a checkpoint as they came
    saved: list[CheckpointAnswer] = []
    cancel: list[str] = []  # ask these jobs to stop
    give_up: list[str] = []  # cancel these at once: nobody waits for them any more
    overdue: list[str] = []  # past their time limit and still here: report that, let them be
    drain: bool = False  # the worker ends soon: let handlers know
    dead: list[DeadJob] = []  # for hooks that want to know

    def take_up(self, foreign: memoryview) -> None:
        for lease in self.leases:
            foreign = lease.take_up(foreign)
        if foreign:
            raise ValueError("bytes are beside the text that belong to no lease")


class Declared(Struct, kw_only=True):
    """A job type as the app declares it: how its runs are held here, and what the platform hears.

    The keeper passes `terms` on unread: what is wrong with them the platform says.
    """

    name: str
    mode: str
    timeout_ms: int | None = None
    limits: RunLimits = UNLIMITED
    cancel_grace_ms: int = CANCEL_GRACE_MS
    runaway_after_ms: int | None = None
    is_mode_chosen: bool = False  # else the pool may know better
    terms: Raw = EMPTY_OBJECT  # `TypeTerms`


class RunReport(Report, kw_only=True, omit_defaults=True, gc=False):
    """A run's end as its runner says it: what the keeper knows better is left out."""

    n: int = 0
    tenant: str = ""
    token: str = ""


class Progress(Struct, kw_only=True, gc=False):
    job: str
    progress: Raw


class Checkpoint(Struct, kw_only=True, gc=False):
    """A state that a run wants to be saved."""

    job: str
    epoch: Epoch
    number: CheckpointNumber
    state: Raw


class RunLine(Struct, kw_only=True, omit_defaults=True, gc=False):
    """What a run said: a line, or a mark where lines were left out."""

    job: str
    epoch: Epoch
    n: int
    at_ms: int
    level: int
    text: str
    dropped: int = 0


class RunnerMessage(Struct, kw_only=True, omit_defaults=True):
    """Runner → keeper."""

    declared: list[Declared] | None = None  # the first word of every runner
    pid: int = 0  # goes with it: the keeper started the reaper above
    ended: list[RunReport] = []
    progress: list[Progress] = []
    checkpoints: list[Checkpoint] = []
    lines: list[RunLine] = []  # before the ends of their runs
    stuck: bool = False  # too many of its threads are lost to jobs that would not stop


class PipeHandlers(NamedTuple, Generic[Message]):
    """Who hears what comes through a pipe."""

    on_message: Callable[[Message], None]
    on_close: Callable[[], None]  # once
    on_garbage: Callable[[bytes, Exception], None]  # a frame's text that is no good, and why
    bytes_max: int = FRAME_BYTES_MAX  # of a frame; after a longer one nothing more is heard


class Pipe(asyncio.Protocol, Generic[Message]):
    """One end of the pipe."""

    def __init__(self, kind: type[Message], hearing: PipeHandlers[Message]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._encode = msgspec.json.Encoder().encode
        self._hearing = hearing
        self._on_message = hearing.on_message
        self._buffer = bytearray()
        self._is_deaf = False
        self._transport: Any = None

    @classmethod
    async def join(
        cls, end: socket.socket, kind: type[Message], hearing: PipeHandlers[Message]
    ) -> Pipe[Message]:
        end.setblocking(False)
        loop = asyncio.get_running_loop()
        _, pipe = await loop.create_unix_connection(lambda: cls(kind, hearing), sock=end)
        return pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._hearing.on_close()

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= 4:
            length = _LENGTH.unpack_from(buffer, start)[0]
            size = length & FRAME_BYTES_MAX
            if size > self._hearing.bytes_max:
                self._close_ears(size)
                return
            end = start + 4 + size
            if len(buffer) < end:
                break
            is_beside = length != size
            if size > LARGE_BYTES and end == len(buffer):
                self._buffer = bytearray()  # what was sent keeps the old one: no copy of megabytes
                self._receive(memoryview(buffer)[start + 4 :], is_beside)
                return
            self._receive(bytes(buffer[start + 4 : end]), is_beside)
            start = end
        del buffer[:start]

    def _close_ears(self, size: int) -> None:
        """Where the next frame would begin nobody can tell."""
        self._is_deaf = True
        self._buffer = bytearray()
        error = ValueError(f"a frame of {size} bytes; at most {self._hearing.bytes_max} are heard")
        self._hearing.on_garbage(b"", error)

    def _receive(self, frame: bytes | memoryview, is_beside: bool) -> None:
        try:
            if is_beside:
                message = self._with_foreign(memoryview(frame))
            else:
                if isinstance(frame, bytes) and not frame.isascii():
                    frame.decode()  # raw parts are passed on as they came
                message = self._decode(frame)
        except (ValueError, RecursionError) as error:  # the codec's own are ValueErrors
            text = text_of_frame(memoryview(frame)) if is_beside else frame
            self._hearing.on_garbage(bytes(text), error)
        else:
            self._on_message(message)

    def _with_foreign(self, frame: memoryview) -> Message:
        text = text_of_frame(frame)
        message = self._decode(text)
        if not isinstance(message, KeeperMessage):
            raise ValueError("nothing may stand beside this")
        message.take_up(frame[_LENGTH.size + len(text) :])
        return message

    def send(self, message: Struct) -> None:
        self.send_text([self._encode(message)])

    def send_text(self, parts: Parts) -> None:
        """A message as it was encoded, in parts."""
        if not self._transport.is_closing():
            self._transport.writelines([_LENGTH.pack(sum(map(len, parts))), *parts])

    def send_beside(self, message: Struct, foreign: Parts) -> None:
        """A message, and what goes beside its text."""
        text = self._encode(message)
        size = _LENGTH.size + len(text) + sum(map(len, foreign))
        if not self._transport.is_closing():
            head = _LENGTH.pack(size | _BESIDE) + _LENGTH.pack(len(text))
            self._transport.writelines([head, text, *foreign])

    def close(self) -> None:
        self._transport.close()


def text_of_frame(frame: memoryview) -> memoryview:
    """Of one that has something beside it; nothing, if it is too short for its own length."""
    length = _LENGTH.unpack_from(frame)[0] if len(frame) >= _LENGTH.size else 0
    return frame[_LENGTH.size : _LENGTH.size + length]


def first_word(end: socket.socket) -> RunnerSetup | None:
    """Wait for it without an event loop; None when the keeper went away instead."""
    length = end.recv(_LENGTH.size, socket.MSG_WAITALL)
    if len(length) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(length)
    text = end.recv(size, socket.MSG_WAITALL)
    return msgspec.json.decode(text, type=RunnerSetup) if len(text) == size else None
