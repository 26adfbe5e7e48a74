"""Schemas: every field is described, and every example obeys its own."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, get_type_hints

import msgspec
import pytest
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


def examples() -> list[Any]:
    """Every example in the document beside the schema it stands under."""
    found = []
    for path, methods in document()["paths"].items():
        for method, node in methods.items():
            bodies = [node["requestBody"]] if "requestBody" in node else []
            for part in (*bodies, *node["responses"].values()):
                for content in part.get("content", {}).values():
                    shown = [one["value"] for one in content.get("examples", {}).values()]
                    shown += [content["example"]] if "example" in content else []
                    found += [
                        pytest.param(content["schema"], one, id=f"{method} {path}") for one in shown
                    ]
    return found


@pytest.mark.parametrize(("schema", "example"), examples())
def test_every_example_obeys_its_schema(schema: dict[str, Any], example: Any) -> None:
    whole = schema | {"components": document()["components"]}
    OAS31Validator(whole).validate(example)
