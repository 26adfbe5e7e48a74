"""Standard output and error of a program that outlives whoever reads them.

`fairway up 2>&1 | head` ends its reader, a terminal is closed or stopped, the disk under a log is
full: for a program that works for weeks this is no reason to fail, to stand still, or to end
otherwise than it was asked to. What nobody takes is dropped: a reader that reads no more has half a
second, once, and is not waited for again until it does. Otherwise a line of the log would raise
where it is written, in the midst of a reply or of a drain. Lines of several processes that share a
pipe, a socket or a terminal stay whole: whoever writes has it locked for so long; nobody waits for
one that was stopped in the midst of its line. Not for commands that only speak, such
as `jobs ls`: they end with their reader. Small: runners import it too.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

GONE = frozenset({errno.EPIPE, errno.EIO})  # a pipe or a terminal that nobody reads any more


PATIENCE_MS = 500
LOCK_TRIES, LOCK_REST_SECONDS = 300, 0.001  # a line takes microseconds, if its writer is let run
LINE_BYTES = 1 << 16  # a line of up to so many is handed on at once; one of a stack is far shorter
PART_BYTES = select.PIPE_BUF  # what has room for anything has room for so much


class LastingFile(io.FileIO):
    """Writes what is taken and drops what is not. Once nobody reads, it writes into nothing.

    So does all that is started from then on: a child would die by the signal of a broken pipe.
    """

    _is_stuck = False  # whoever reads had its time
    _lock_is_stuck = False  # whoever writes beside us had its time

    def write(self, data: ReadableBuffer, /) -> int:
        left = memoryview(data).cast("B")
        whole = left.nbytes
        try:
            if stat.S_ISREG(os.fstat(self.fileno()).st_mode):  # the kernel keeps these whole
                while left:
                    left = left[super().write(left) or left.nbytes :]
            else:
                with self._locked():
                    self._write_parts(left)
        except OSError as error:
            if error.errno in GONE:
                _lead_nowhere(self.fileno())
        return whole

    def _write_parts(self, left: memoryview) -> None:
        while left and self._has_room():
            left = left[super().write(left[:PART_BYTES]) or left.nbytes :]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Against other processes that write here: the lock is on the pipe, and known to all."""
        self._lock_is_stuck = not self._lock(1 if self._lock_is_stuck else LOCK_TRIES)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.lockf(self.fileno(), fcntl.LOCK_UN)

    def _lock(self, tries: int) -> bool:
        for left in range(tries, 0, -1):
            try:
                fcntl.lockf(self.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                if left > 1:
                    select.select([], [], [], LOCK_REST_SECONDS)
            except OSError:  # it cannot be locked: then as it is
                return True
            else:
                return True
        return False

    def _has_room(self) -> bool:
        room = select.poll()
        room.register(self.fileno(), select.POLLOUT)
        self._is_stuck = not room.poll(0 if self._is_stuck else PATIENCE_MS)
        return not self._is_stuck


def outlive_readers() -> None:
    """Once, at the start of the program; streams that somebody else put in place stay."""
    if sys.stdout is sys.__stdout__:
        sys.stdout = _lasting(sys.stdout, 1)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _lasting(sys.stderr, 2)


def _lasting(stream: object, number: int) -> io.TextIOWrapper:
    """In place of this stream, which is None when the program was started with it closed."""
    if not isinstance(stream, io.TextIOWrapper):
        _lead_nowhere(number)  # else the next file to be opened has this number
        return io.TextIOWrapper(LastingFile(number, "w", closefd=False), write_through=True)
    with suppress(OSError):
        stream.flush()
    raw = LastingFile(stream.fileno(), "w", closefd=False)
    is_direct = stream.write_through  # as PYTHONUNBUFFERED says
    return io.TextIOWrapper(
        raw if is_direct else io.BufferedWriter(raw, LINE_BYTES),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.set_inheritable(nowhere, True)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
