"""`fairway bench engine`."""

from __future__ import annotations


def run(*, json_output: bool, tenants: int, seconds: float, burn_jobs: int) -> int:
    raise NotImplementedError
