"""Settings of the judge, from the environment; everything has a default.

| variable | default | |
|---|---|---|
| JUDGE_STORE | judge in Fairway's data folder | a folder (also file:///…), s3://, gs://, az:// |
| JUDGE_PORT | 8900 | where the service listens |
| JUDGE_SANDBOX | the strongest that works | a level by its name; then no other one is used |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Settings(NamedTuple):
    store: str
    port: int
    sandbox: str = ""


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    fairway = Path(environment.get("FAIRWAY_DATA_DIR") or ".fairway")
    store = environment.get("JUDGE_STORE", str((fairway / "judge").resolve()))
    return Settings(
        store=store,
        port=int(environment.get("JUDGE_PORT", "8900")),
        sandbox=environment.get("JUDGE_SANDBOX", ""),
    )
