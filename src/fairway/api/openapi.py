"""OpenAPI 3.1, made from the wire types."""

from __future__ import annotations

from typing import Any


def document() -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {"title": "Fairway", "version": "1"}, "paths": {}}
