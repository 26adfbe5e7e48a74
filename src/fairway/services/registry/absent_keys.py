"""Keys that the store did not know: whoever shows one of them again costs it no question.

The newest ones only. Decides nothing: one that is made later is struck off by whoever reads it.
"""

from __future__ import annotations

ABSENT_KEYS_REMEMBERED = 10_000


class AbsentKeys:
    def __init__(self) -> None:
        self._ids: dict[str, None] = {}  # public parts, the oldest first

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._ids

    def add(self, key_id: str) -> None:
        self._ids[key_id] = None
        if len(self._ids) > ABSENT_KEYS_REMEMBERED:
            del self._ids[next(iter(self._ids))]

    def discard(self, key_id: str) -> None:
        self._ids.pop(key_id, None)
