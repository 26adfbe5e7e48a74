"""`client.json`: how programs on this machine reach the platform that `fairway up` started here.

The file is readable by its owner only. Programs elsewhere get FAIRWAY_URL and FAIRWAY_API_KEY.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

FILE_NAME = "client.json"


class LocalKeys(msgspec.Struct, kw_only=True):
    url: str
    api_key: str
    worker_key: str
    operator_key: str


def read_keys(path: Path) -> LocalKeys | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=LocalKeys)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def write_keys(path: Path, keys: LocalKeys) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(keys), indent=2) + b"\n")
