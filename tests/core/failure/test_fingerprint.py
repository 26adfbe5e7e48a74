"""Fingerprints and faults: the same cause has the same number, and nothing said can break it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.fault import (
    STACK_CHARACTERS_MAX,
    Fault,
)
from fairway.core.failure.fingerprint import as_text, fingerprint, frame, from_text, normalised
from fairway.core.ids import TypeId

PYTHON_STACK = """Traceback (most recent call last):
  File "/srv/app/jobs.py", line 10, in send
    deliver(address)
  File "/srv/app/mail.py", line {line}, in deliver
    raise ValueError(address)
ValueError: no such address
"""


@pytest.mark.parametrize(
    ("message", "other"),
    [
        ("order 4711 not found", "order 4712 not found"),
        ("no user 'ada'", "no user 'grace'"),
        ("timeout after 12.5 s", "timeout after 3.25 s"),
        ("mail to ada@example.com bounced", "mail to bo.b@mail.example.org bounced"),
        ("GET https://a.example/x?id=1 failed", "GET https://b.example/y failed"),
        ("object 0x7f3a at fault", "object 0xdeadbeef at fault"),
        ("job 01980a5e-7c1b-7000-8000-04a2b1c3d4e5", "job 01980a5e-7c1b-7000-8000-000000000001"),
        ("digest 9f86d081884c7d65 differs", "digest 60303ae22b998861 differs"),
        ("two  spaces\nand a line", "two spaces and a line"),
    ],
)
def test_what_differs_from_job_to_job_makes_no_difference(message: str, other: str) -> None:
    assert normalised(message) == normalised(other)
    assert fingerprint(TypeId(1), Fault("E", message)) == fingerprint(TypeId(1), Fault("E", other))


def test_what_makes_a_difference() -> None:
    base = Fault("ValueError", "bad value", PYTHON_STACK.format(line=20))
    others = [
        fingerprint(TypeId(2), base),
        fingerprint(TypeId(1), base._replace(type="TypeError")),
        fingerprint(TypeId(1), base._replace(message="bad address")),
        fingerprint(TypeId(1), base._replace(stack=base.stack.replace("deliver", "bounce"))),
        fingerprint(TypeId(1), base._replace(dependency="smtp")),
    ]
    assert len({fingerprint(TypeId(1), base), *others}) == 6


def test_a_moved_line_or_folder_is_the_same_cause() -> None:
    here = Fault(stack=PYTHON_STACK.format(line=20))
    there = Fault(stack=PYTHON_STACK.format(line=33).replace("/srv/app", "/opt/build-7/app"))
    assert frame(here) == frame(there) == "app/mail.py:deliver"


def test_frames_of_other_languages() -> None:
    stack = "Error: no\n    at deliver (/srv/mail.js:10:5)\n    at send (/srv/jobs.js:3:1)\n"
    assert frame(Fault(stack=stack)) == "deliver (/srv/mail.js"
    assert frame(Fault(stack="somewhere")) == ""


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_people_see_hexadecimal_digits(number: int) -> None:
    assert from_text(as_text(number)) == number
    assert from_text(as_text(number).upper() + "x") is None


# -- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stack",
    [
        "at " + ":1" * 4000 + "x",
        "\n" * 8000,
        " " * 8000,
        'File "' * 1300,
        ('File "' + "x" * 100 + "\n") * 70,
        "at x\n" * 1600,
        "\n".join(":1" * 20 for _ in range(200)),
    ],
)
def test_no_stack_takes_long_to_look_at(stack: str) -> None:
    """Some of these took a second, on the event loop, for each job that ended so."""
    fault = Fault("E", "m", stack[:STACK_CHARACTERS_MAX])
    frame(fault)
    began = time.process_time()
    for _ in range(10):
        frame(fault)
    assert time.process_time() - began < 0.1


@given(st.text(alphabet='at :1)x\n"File,lin', max_size=400))
def test_any_stack_has_a_frame_of_one_line(stack: str) -> None:
    assert "\n" not in frame(Fault("E", "m", stack))
