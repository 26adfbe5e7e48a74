"""The judge's pools: one a language, so that no language waits for another, and one for contests.

`python -m examples.judge.pools` tells the platform about them, once, with the operator's key. What
is reserved for contests are the slots that workers give to that pool and to nobody else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import httpx2
import msgspec
from examples.judge.languages import LANGUAGES

CONTEST = "contest"
TERMS = {
    "lease_seconds": 30.0,
    "run_mode": "thread",
    "checkpoint": "none",
    "attempts": 10,
    "pickup_target_seconds": 5.0,
}
NAMES = (*(language.pool for language in LANGUAGES.values()), CONTEST)


def declare(url: str, operator_key: str) -> None:
    """Safe to repeat: a pool that is there keeps its jobs."""
    headers = {"authorization": f"Bearer {operator_key}"}
    with httpx2.Client(base_url=url, headers=headers, trust_env=False) as client:
        for name in NAMES:
            reply = client.put(f"/v1/pools/{name}", json=TERMS)
            if reply.is_error:
                raise RuntimeError(f"the pool {name} was refused: {reply.text}")


class Keys(msgspec.Struct):
    url: str
    operator_key: str


def main() -> None:
    data = Path(os.environ.get("FAIRWAY_DATA_DIR") or ".fairway")
    try:
        keys = msgspec.json.decode((data / "client.json").read_bytes(), type=Keys)
    except FileNotFoundError:
        sys.exit(f"judge: no platform has been started in {data}; run `fairway up` first.")
    declare(os.environ.get("FAIRWAY_URL", keys.url), keys.operator_key)
    print(f"judge: pools {', '.join(NAMES)}")


if __name__ == "__main__":
    main()
