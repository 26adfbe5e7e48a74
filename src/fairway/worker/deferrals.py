"""How often in a row a job was put off here because what it needs could not be fetched.

Pure bookkeeping, bounded: of very many jobs, those put off longest ago are forgotten.
"""

from __future__ import annotations

REMEMBERED_MAX = 10_000


class Deferrals:
    def __init__(self, times_max: int, remembered_max: int = REMEMBERED_MAX) -> None:
        self._times_max = times_max
        self._remembered_max = remembered_max
        self._times: dict[str, int] = {}

    def once_more(self, job: str) -> bool:
        """Whether it may be put off again; when it may not, counting begins anew."""
        times = self._times.pop(job, 0) + 1
        if times > self._times_max:
            return False
        if len(self._times) >= self._remembered_max:
            self._times.pop(next(iter(self._times)))
        self._times[job] = times
        return True

    def forget(self, job: str) -> None:
        """All was fetched."""
        self._times.pop(job, None)
