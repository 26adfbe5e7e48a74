"""Whoever sends a wrong name hears what a right one is made of, not a pattern."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import msgspec
import pytest

from fairway import wire
from fairway.wire.pattern_messages import in_words


def named_kinds() -> Iterator[Any]:
    """Every kind of text with a pattern that the wire knows by name."""
    seen = set()
    for found in pkgutil.iter_modules(wire.__path__):
        module = importlib.import_module(f"fairway.wire.{found.name}")
        for name, kind in vars(module).items():
            patterns = [getattr(one, "pattern", None) for one in get_args(kind)[1:]]
            if get_origin(kind) is Annotated and any(patterns) and name not in seen:
                seen.add(name)
                yield pytest.param(kind, id=name)


@pytest.mark.parametrize("kind", list(named_kinds()))
def test_every_pattern_has_words(kind: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match="regex") as refused:
        msgspec.convert("¡no!", kind)
    said = in_words(str(refused.value))
    assert said.startswith("This must have ")
    assert not {"^", "{", "\\", "$"} & set(said)


def test_a_pattern_without_words_is_not_shown_either() -> None:
    kind = Annotated[str, msgspec.Meta(pattern="^[xyz]+$")]
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert({"a": "b"}, dict[str, kind])
    said = in_words(str(refused.value))
    assert said == "This text is not of the form it must have. - at `$[...]`"


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (0, Annotated[int, msgspec.Meta(ge=1)], "This must be a whole number, 1 or more."),
        (11, Annotated[int, msgspec.Meta(le=10)], "This must be a whole number, at most 10."),
        (0.0, Annotated[float, msgspec.Meta(gt=0.0)], "This must be a number, more than 0."),
        (0.0, Annotated[float, msgspec.Meta(ge=0.001)], "This must be a number, 0.001 or more."),
        ("", Annotated[str, msgspec.Meta(min_length=1)], "This must not be empty."),
        ("x", Annotated[str, msgspec.Meta(min_length=8)], "This must have at least 8 characters."),
        (
            [1, 2],
            Annotated[list[int], msgspec.Meta(max_length=1)],
            "This must have at most 1 entry.",
        ),
        ("x", int | None, "This must be a whole number or null, not text."),
        ([], bool, "This must be true or false, not a list."),
    ],
)
def test_bounds_and_kinds_are_in_words(value: Any, kind: Any, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(value, kind)
    assert in_words(str(refused.value)) == said


def test_a_field_that_is_missing_or_unknown_is_named() -> None:
    kind = msgspec.defstruct("Asked", [("name", str)], forbid_unknown_fields=True)
    with pytest.raises(msgspec.ValidationError) as missing:
        msgspec.convert({}, kind)
    assert in_words(str(missing.value)) == "The field `name` is missing."
    with pytest.raises(msgspec.ValidationError) as unknown:
        msgspec.convert({"name": "a", "nmae": "b"}, kind)
    assert in_words(str(unknown.value)) == "There is no field `nmae` here."
