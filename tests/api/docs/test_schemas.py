"""Schemas: every field is described, and every example obeys its own."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
from openapi_schema_validator import OAS31Validator

from fairway import wire
from fairway.api.docs.openapi import document


def test_every_field_of_every_message_is_described() -> None:
    kinds = [
        kind
        for found in pkgutil.walk_packages(wire.__path__, "fairway.wire.")
        for kind in vars(importlib.import_module(found.name)).values()
        if isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and kind is not msgspec.Struct
    ]
    bare = [
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if not any(getattr(one, "description", "") for one in getattr(hint, "__metadata__", ()))
    ]
    assert bare == []
    assert set(document()["components"]["schemas"]) == {kind.__name__ for kind in kinds}


def examples() -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Every example in the document: whose it is, the schema that it stands under, and itself."""
    for path, methods in document()["paths"].items():
        for method, node in methods.items():
            bodies = [node["requestBody"]] if "requestBody" in node else []
            for part in (*bodies, *node["responses"].values()):
                for content in part.get("content", {}).values():
                    shown = [one["value"] for one in content.get("examples", {}).values()]
                    shown += [content["example"]] if "example" in content else []
                    yield from ((f"{method} {path}", content["schema"], one) for one in shown)


def test_every_example_obeys_its_schema() -> None:
    """All in one test: there are more than a thousand, and many are the same."""
    components, wrong = document()["components"], []
    told: set[bytes] = set()
    for where, schema, example in examples():
        said = msgspec.json.encode((schema, example))
        if said in told:
            continue
        told.add(said)
        validator = OAS31Validator(schema | {"components": components})
        wrong += [f"{where}: {error.message}" for error in validator.iter_errors(example)]
    assert wrong == []
    assert len(told) > 100
