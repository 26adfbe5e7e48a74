"""`/openapi.json`: the OpenAPI 3.1 document, assembled from the table of operations.

The table says what there is, the wire types say how messages look, `wire/problems.py` says how
errors do. Nothing is written down twice; this file only joins them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Any, TypeAlias

from msgspec import Struct

from fairway.api.docs.curl import curl
from fairway.api.docs.problem_notes import PROBLEM_NOTES
from fairway.api.docs.schemas import REF, components
from fairway.api.endpoint import Endpoint, Parameter, Reply, ReplyHeader
from fairway.api.endpoint_parts import ACT_FOR, RETRY_AFTER
from fairway.api.routes import GROUPS, OPERATIONS
from fairway.wire.problems import CODES, CONTENT_TYPE, Problem, type_of

Node: TypeAlias = dict[str, Any]

ABOUT = """Accept now, process later, at each tenant's fair share of worker time.

202 means on disk. Every accepted job ends in exactly one recorded final state. A job may run more
than once, but only one run's result is recorded, and a run that lost its lease can write nothing.
A crash does not use up a retry. One tenant cannot take another's share."""

KEYS = {
    "tenant": "A tenant's key (`fw_tenant_…`): submit jobs and see your own.",
    "worker": "A worker's key (`fw_worker_…`): run jobs.",
    "operator": "The operator's key (`fw_operator_…`): manage tenants and keys.",
}


@cache
def document() -> Node:
    kinds = {kind for op in OPERATIONS for kind in _kinds(op)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairway",
            "version": version("fairway"),
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": group.name, "description": group.about} for group in GROUPS],
        "paths": _paths(),
        "components": {
            "schemas": components({*kinds, Problem}),
            "securitySchemes": {
                name: {"type": "http", "scheme": "bearer", "description": about}
                for name, about in KEYS.items()
            },
        },
    }


def _kinds(operation: Endpoint) -> Iterator[type[Struct]]:
    """Every message that it takes or gives."""
    replies = (reply.kind for reply in operation.replies)
    yield from filter(None, (operation.body, *operation.messages, *replies))


def _paths() -> Node:
    paths: dict[str, Node] = defaultdict(dict)
    for group in GROUPS:
        for operation in group.operations:
            paths[operation.path][operation.method.lower()] = _operation(operation, group.name)
    return dict(paths)


def _operation(operation: Endpoint, tag: str) -> Node:
    node: Node = {
        "operationId": operation.name,
        "tags": [tag],
        "summary": operation.summary,
        "description": operation.about + _needed(operation),
        "security": _security(operation),
        "parameters": [_parameter(parameter) for parameter in _parameters(operation)],
        "responses": _responses(operation),
        "x-codeSamples": [{"lang": "Shell", "source": curl(operation)}],
    }
    if operation.messages:  # OpenAPI has no word for them
        node["x-messages"] = [{"$ref": REF.format(name=one.__name__)} for one in operation.messages]
    if operation.body is not None:
        node["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": REF.format(name=operation.body.__name__)},
                    "example": operation.body_example,
                }
            },
        }
    return node


def _needed(operation: Endpoint) -> str:
    """A key may have fewer permissions than its scope: what this one takes."""
    return f"\n\nPermission: `{operation.permission}`." if operation.keys else ""


def _security(operation: Endpoint) -> list[Node]:
    """One of these kinds of key; `{}`, with others behind it, says that none is needed."""
    none: list[Node] = [{}] if operation.other_keys else []
    return none + [{name: []} for name in operation.keys + operation.other_keys]


def _parameters(operation: Endpoint) -> tuple[Parameter, ...]:
    acting = (ACT_FOR,) if operation.lets_operators_act else ()
    return (*operation.parameters, *acting)


def _parameter(parameter: Parameter) -> Node:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.about,
        "schema": parameter.schema,
        "example": int(parameter.example)
        if parameter.schema["type"] == "integer"
        else parameter.example,
    }


# -- answers -----------------------------------------------------------------------------------


def _responses(operation: Endpoint) -> Node:
    good: Node = {}
    for reply in operation.replies:
        status, node = str(reply.status), _reply(reply)
        if status in good:  # the same in another form
            good[status]["content"] |= node["content"]
        else:
            good[status] = node
    return good | _problems(operation)


def _reply(reply: Reply) -> Node:
    node: Node = {"description": reply.about}
    if reply.headers:
        node["headers"] = {header.name: _header(header) for header in reply.headers}
    if reply.kind is not None:
        schema: Node = {"$ref": REF.format(name=reply.kind.__name__)}
    elif reply.schema is not None:
        schema = reply.schema
    elif reply.example is not None:
        schema = {"type": "string"}
    else:
        return node
    node["content"] = {reply.media: {"schema": schema, "example": reply.example}}
    return node


def _header(header: ReplyHeader) -> Node:
    return {
        "description": header.about,
        "schema": {"type": "string"},
        "example": header.example,
    }


def _problems(operation: Endpoint) -> Node:
    """One response a status; where several codes share it, an example for each."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in sorted(set(operation.all_problems), key=list(CODES).index):
        by_status[CODES[code][0]].append(code)
    return {
        str(status): _problem_response(status, by_status[status]) for status in sorted(by_status)
    }


def _problem_response(status: int, codes: list[str]) -> Node:
    node: Node = {
        "description": " · ".join(f"`{code}` {CODES[code][1]}." for code in codes),
        "content": {
            CONTENT_TYPE: {
                "schema": {"$ref": REF.format(name="Problem")},
                "examples": {code: {"value": problem_example(code)} for code in codes},
            }
        },
    }
    if status in (429, 503):
        node["headers"] = {RETRY_AFTER.name: _header(RETRY_AFTER)}
    return node


def problem_example(code: str) -> Node:
    status, title = CODES[code]
    return {
        "type": type_of(code),
        "title": title,
        "status": status,
        "code": code,
        "detail": PROBLEM_NOTES[code].meaning,
        "request_id": "9f86d081884c7d65",
    }
