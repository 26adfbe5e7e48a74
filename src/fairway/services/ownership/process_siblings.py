"""What an owner knows of the other processes behind its address, besides what the table says.

They share their server's part of the work, so each says how busy it is; and one that ended is known
to be dead at once: it can grant nothing any more, and its shards need not wait until its term is
over. Whoever might still live (a number that another program has now) is waited for as ever.
Decides nothing about shards: that is `core/shard_spread.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from fairway.core.ownership.consolidation import UNKNOWN_PER_MILLE
from fairway.core.server_processes import ProcessGroup
from fairway.runtime.stalls import ThreadBusy

RISE_SECONDS = 3.0  # what lasts as long is seen by most of it
KNOWN_US = 10_000_000  # after which what is seen is how much the shards need
FALL_SECONDS = 30.0  # a pause in the work is not its end: shards do not come and go with it


class ProcessSiblings:
    def __init__(self, group: ProcessGroup | None, *, share_work: bool) -> None:
        self._group = group
        self.shared_group = group.name if group is not None and share_work else ""
        self._busy = ThreadBusy(RISE_SECONDS, FALL_SECONDS)
        self._known_from_us = 0

    def busy_per_mille(self, now_us: int, *, is_owner: bool) -> int:
        """How much of a core this thread used of late; of one that has just come to own shards it
        is not known yet how much they need."""
        self._busy.look()
        if not is_owner:
            self._known_from_us = now_us + KNOWN_US
        is_known = now_us >= self._known_from_us
        return self._busy.per_mille if is_known else max(self._busy.per_mille, UNKNOWN_PER_MILLE)

    def dead(self, names: Iterable[str]) -> set[str]:
        """Those of these servers that were processes of ours, and ended."""
        if self._group is None:
            return set()
        pids = {name: self._group.pid_of(name) for name in names}
        return {name for name, pid in pids.items() if pid is not None and not _is_there(pid)}


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's by now, or ours under another user: it may live
    return True
