"""An operation as a curl command that can be pasted: keys and ids come from shell variables."""

from __future__ import annotations

from typing import Any

import msgspec

from fairway.api.endpoint import Endpoint, KeyScope, Parameter

LINE_MAX = 50

KEY_VARIABLES: dict[KeyScope, str] = {
    "tenant": "$FAIRWAY_API_KEY",
    "worker": "$FAIRWAY_WORKER_KEY",
    "operator": "$FAIRWAY_OPERATOR_KEY",
}


def curl(operation: Endpoint) -> str:
    lines = [f'curl {_method(operation)}"$FAIRWAY_URL{_target(operation)}"']
    if operation.keys:
        lines.append(f'-H "Authorization: Bearer {KEY_VARIABLES[operation.keys[0]]}"')
    if operation.body is not None:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d '{_json(operation.body_example)}'")
    return " \\\n  ".join(lines)


def _json(value: Any) -> str:
    """On one line if it fits there; either way the shell takes it as it is."""
    line = msgspec.json.encode(value)
    return (line if len(line) <= LINE_MAX else msgspec.json.format(line)).decode()


def _method(operation: Endpoint) -> str:
    match operation.method:
        case "HEAD":
            return "--head "
        case "POST" if operation.body is None:
            return "-X POST "
        case "DELETE" | "PATCH" | "PUT":
            return f"-X {operation.method} "
        case _:
            return "-N " if operation.path.endswith(("/events", "/stream")) else ""


def _target(operation: Endpoint) -> str:
    path = operation.path
    for parameter in _shown(operation, "path"):
        path = path.replace(f"{{{parameter.name}}}", parameter.shell)
    query = "&".join(f"{one.name}={one.shell}" for one in _shown(operation, "query"))
    return f"{path}?{query}" if query else path


def _shown(operation: Endpoint, place: str) -> list[Parameter]:
    return [one for one in operation.parameters if one.place == place and one.shell]
