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
