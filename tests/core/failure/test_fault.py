"""What a worker says of a failure: read whatever it is, kept within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.fault import (
    MESSAGE_CHARACTERS_MAX,
    NO_FAULT,
    STACK_CHARACTERS_MAX,
    Fault,
    error_document,
    fault_of,
)
from fairway.core.run.outcome import FailureClass

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from(Fault._fields), anything) | anything, st.integers(0, 3))
def test_whatever_a_worker_says_is_kept_within_bounds(said: Any, cut: int) -> None:
    text = json.dumps(said).encode()
    fault = fault_of(text[cut:])
    assert all(isinstance(part, str) for part in fault)
    document = error_document(FailureClass.TIMEOUT, "retrying", fault)
    told = json.loads(document)
    assert (told["failure"], told["reason"]) == ("timeout", "retrying")
    assert fault_of(document) == fault


def test_long_things_keep_the_end_that_matters() -> None:
    stack = "frame\n" * 5000 + "cause"
    fault = fault_of(json.dumps({"message": "m" * 99_999, "stack": stack}).encode())
    assert len(fault.message) == MESSAGE_CHARACTERS_MAX
    assert len(fault.stack) == STACK_CHARACTERS_MAX
    assert fault.stack.endswith("cause")


def test_halves_of_characters_can_be_written_down() -> None:
    fault = fault_of(b'{"message": "\\ud800 and \\u0000"}')
    fault.message.encode()
    assert "\x00" not in fault.message


@pytest.mark.parametrize("nothing", [None, b"null", b"{}"])
def test_no_error_is_no_fault(nothing: bytes | None) -> None:
    assert fault_of(nothing) == NO_FAULT
    assert error_document(FailureClass.APP_ERROR, "x", NO_FAULT) == (
        b'{"failure":"app_error","reason":"x"}'
    )


def test_an_error_nested_to_any_depth_is_read() -> None:
    """Some depths can be read and not written again."""
    for depth in [*range(1, 1100), 100_000]:
        assert fault_of(b"[" * depth + b"]" * depth).message
