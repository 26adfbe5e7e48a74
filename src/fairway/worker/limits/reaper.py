"""The process above a runner: it takes in what a job's processes leave behind, and reaps it.

Orphans must stay in their runner's tree, so that they are counted and killed with it; and whoever
takes them in has to wait for each, or every one stays a zombie. The runner cannot do that: it would
take the exit status of children that the user's code waits for. So a process without user code
stands above it, whose only child of its own is the runner. It ends as the runner does.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys

from fairway.runtime.parent_death import die_with_parent
from fairway.worker.limits import confine
from fairway.worker.limits.usage import kill_descendants

NAME = "fairway-reaper"


def stand_above(ends: list[socket.socket]) -> None:
    """Returns in the runner, which has the ends of the pipes to itself; the reaper stays here."""
    sys.stdout.flush()
    sys.stderr.flush()
    reaper = os.getpid()
    runner = os.fork()
    if runner == 0:
        die_with_parent(signal.SIGKILL)
        if os.getppid() != reaper:  # it was gone before we could ask for that
            os._exit(1)
        return
    for end in ends:
        end.close()
    confine.adopt_orphans()
    confine.name_process(NAME)
    _leave_as(_reap_until(runner))


def _reap_until(runner: int) -> int:
    """The runner's status, once it has ended."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == runner:
            return status


def _leave_as(status: int) -> None:
    """With the same status, or by the same signal; what the runner left goes first."""
    kill_descendants(os.getpid())
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the runner's was the one to keep
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
