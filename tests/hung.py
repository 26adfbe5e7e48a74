"""What ends a test that hangs where its timeout cannot end it.

The timeout of pytest-timeout is an exception in the main thread, raised once. A task of the event
loop that happens to run then takes it for its own failure, and a teardown that hangs comes after
it: the test goes on for ever, and with it the whole run. So it is raised again and again; and
some time later the process is ended, with its stacks and those of its tasks on the terminal, and
pytest-xdist says which test it was.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import threading
from typing import TextIO

GRACE_SECONDS = 60.0
AGAIN_SECONDS = 20.0


def watch(test: str, seconds: float, terminal: TextIO) -> threading.Timer:
    """A timer that ends this process, unless it is cancelled before."""
    timer = threading.Timer(seconds, _end, (test, terminal))
    timer.daemon = True
    timer.start()
    return timer


def _end(test: str, terminal: TextIO) -> None:
    print(f"\n{test} hangs; the stacks of its threads:", file=terminal, flush=True)
    faulthandler.dump_traceback(terminal, all_threads=True)
    print("and of its tasks:", file=terminal)
    for task in list(asyncio.tasks._all_tasks):  # type: ignore[attr-defined]  # of all loops
        if not task.done():
            task.print_stack(file=terminal)
    terminal.flush()
    os._exit(1)
