"""A JSON schema in words that people read: a table of fields, each with its kind in a few words."""

from __future__ import annotations

from typing import Any, TypeAlias

from fairway.api.docs.markup import escape, inline, table

Node: TypeAlias = dict[str, Any]


def fields(schema: Node) -> str:
    required = schema.get("required", ())
    rows = [
        (
            f"<code>{escape(name)}</code>"
            + ("<small>required</small>" if name in required else ""),
            f"{inline(field['description'])}<small>{_kind(field)}{_default(field)}</small>",
        )
        for name, field in schema["properties"].items()
    ]
    return table(("Field", "Meaning"), rows)


def _kind(field: Node) -> str:
    """A schema in a few words."""
    if "anyOf" in field:
        return " or ".join(_kind(option) for option in field["anyOf"])
    if "$ref" in field:
        return link(name_of(field))
    if "enum" in field:
        return " · ".join(escape(value) for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}"
    return escape(field.get("format") or field.get("type", "any JSON")) + _range(field)


def _range(field: Node) -> str:
    low = field.get("minimum", field.get("exclusiveMinimum"))
    high = field.get("maximum")
    if low is None or high is None:
        return ""
    return f", {'over ' if 'exclusiveMinimum' in field else ''}{low:,} to {high:,}"


def _default(field: Node) -> str:
    default = field.get("default")
    return "" if default in (None, [], {}) else f", default {escape(default)}"


def name_of(schema: Node) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[-1]


def link(name: str) -> str:
    return f'<a href="#{escape(name)}">{escape(name)}</a>'
