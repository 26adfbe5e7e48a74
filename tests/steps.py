"""How much is done, counted and not timed: the same on every machine, however busy."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(act: Callable[[], object]) -> int:
    """Steps of the interpreter."""
    return _events(act, "opcode")


def lines_of(act: Callable[[], object]) -> int:
    """Lines of Python: quicker to count, and coarser."""
    return _events(act, "line")


def _events(act: Callable[[], object], kind: str) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = kind == "opcode"
        count += event == kind
        return trace

    before = sys.gettrace()
    gc.disable()  # what it finds would be counted, and it comes when it likes
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
        gc.enable()
    return count
