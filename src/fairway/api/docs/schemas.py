"""JSON schemas of the wire types, as people need them: raw JSON parts get the type they stand for.

The codec keeps payloads and results as raw text, which a schema cannot express. So each message is
described by a twin whose raw fields have a real type. What fields mean is said where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct, UnsetType

from fairway.wire.messages import END

Schema: TypeAlias = dict[str, Any]
REF = "#/components/schemas/{name}"


def components(kinds: Iterable[type[Struct]]) -> dict[str, Schema]:
    """The schema of each of these messages, and of all that they are made of, by name."""
    _, found = msgspec.json.schema_components([_twin(kind) for kind in kinds], ref_template=REF)
    return {name: _tidied(schema) for name, schema in sorted(found.items())}


def _tidied(schema: Schema) -> Schema:
    schema.pop("title", None)
    for inner in schema["properties"].values():
        for part in (inner, *inner.get("anyOf", ())):
            if "pattern" in part:
                part["pattern"] = part["pattern"].replace(END, "$")
    return schema


@cache
def _twin(kind: type[Struct]) -> type[Struct]:
    hints = get_type_hints(kind, include_extras=True)
    fields: list[Any] = []
    for field in msgspec.structs.fields(kind):
        hint = hints[field.name]
        note = note_of(hint)
        told = (note.extra or {}).get("told_as", hint)
        described: Any = Annotated[_plain(told), Meta(description=note.description)]
        fields.append((field.name, described, _default(field)))
    twin = msgspec.defstruct(
        kind.__name__,
        fields,
        kw_only=True,
        forbid_unknown_fields=kind.__struct_config__.forbid_unknown_fields,
    )
    twin.__doc__ = kind.__doc__
    return twin


def note_of(hint: Any) -> Meta:
    """What is said of a field: the last of its annotations, a `doc`."""
    note: Meta = hint.__metadata__[-1]
    assert note.description, hint
    return note


def _plain(hint: Any) -> Any:
    """The same type with raw parts as any JSON and messages as their twins."""
    if hint is Raw:
        return Any
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _twin(hint)
    arguments = get_args(hint)
    if get_origin(hint) is Annotated:
        checks = [one for one in hint.__metadata__ if one.description is None]
        inner = _plain(arguments[0])
        return Annotated[(inner, *checks)] if checks else inner
    if get_origin(hint) in (list, dict):
        return get_origin(hint)[tuple(_plain(inner) for inner in arguments)]
    if arguments and get_origin(hint) is not Literal:
        return reduce(or_, [_plain(inner) for inner in arguments if inner is not UnsetType])
    return hint


def _default(field: Any) -> Any:
    if field.default_factory is not NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    if field.default is UNSET:
        return msgspec.field(default_factory=lambda: None)  # may be absent, and has no default
    if isinstance(field.default, Raw):
        value = msgspec.json.decode(field.default)
        return msgspec.field(default_factory=dict) if value == {} else value
    return field.default
