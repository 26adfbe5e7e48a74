"""Ties a process to the one that started it: when the parent dies, however it dies, so does this.

Linux only; elsewhere it does nothing, and the parent's own clean-up has to do.
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: signal.Signals) -> None:
    """Get this signal when the parent is gone."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    except (OSError, AttributeError):
        return


def follow(parent: int, number: signal.Signals) -> bool:
    """The same; whether that parent is still there: it may be gone before anybody asked."""
    die_with_parent(number)
    return os.getppid() == parent
