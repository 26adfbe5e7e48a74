"""What a field of a message means, said on the field itself: `/docs` and OpenAPI are made from it.

Words only: the codec checks nothing more because of them.
"""

from __future__ import annotations

from typing import Any

from msgspec import Meta


def doc(text: str, told_as: Any = None) -> Meta:
    """For `Annotated`. `told_as`: the type that people are told, where the codec keeps raw JSON."""
    return Meta(description=text, extra=None if told_as is None else {"told_as": told_as})
