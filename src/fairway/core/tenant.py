"""A tenant: a customer, with its weight and its limits. Identity comes from a key, never a body."""

from __future__ import annotations

from typing import NamedTuple


class Tenant(NamedTuple):
    id: int
    name: str
    weight: int
    depth_limit: int
