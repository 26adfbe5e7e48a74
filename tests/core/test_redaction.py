"""Secrets are hidden by the names of their fields, however these are written, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.redaction import FIELDS, HIDDEN, USUAL, Redaction

MARKER = "s3cr3tmarker"
names = st.sampled_from(FIELDS).flatmap(
    lambda name: st.sampled_from(
        [name, name.upper(), name.title(), f"user_{name}", f"{name}s", f"x-{name}", f"{name}Value"]
    )
)
plain = st.sampled_from(["id", "discard", "name", "to", "key", "cardinality", "shopping", "opting"])
secret_or_not = st.recursive(
    st.dictionaries(plain, st.integers(), max_size=3),
    lambda inner: st.dictionaries(plain, inner | st.lists(inner, max_size=3), max_size=3),
    max_leaves=8,
)


@given(names, secret_or_not, plain)
def test_a_secret_is_hidden_wherever_it_stands(
    name: str, around: dict[str, Any], place: str
) -> None:
    whole = {"list": [around | {place: {name: {"deep": [MARKER]}}}], name: MARKER}
    shown = json.dumps(USUAL.of(whole))
    assert MARKER not in shown
    assert HIDDEN in shown


@given(secret_or_not)
def test_what_is_no_secret_stays(value: dict[str, Any]) -> None:
    assert USUAL.of(value) == value


@pytest.mark.parametrize(
    "text",
    [
        f"password={MARKER}",
        f'{{"api_key": "{MARKER}"}}',
        f"{{'apiKey': '{MARKER}'}}",
        f"Authorization: Bearer {MARKER}",
        f"postgresql://app:{MARKER}@db/app",
        f"refused: fw_tenant_3fa9c1d2_{MARKER}_0badc0de",
        f"card-number: {MARKER}; retry",
        f"?token={MARKER}&x=1",
        f"error: cause:password={MARKER}",
        rf'{{\"body\": \"{{\\\"x\\\": 1}}\", \"secret\": \"{MARKER}\"}}',
    ],
)  # fmt: skip
def test_sentences_lose_what_they_name(text: str) -> None:
    assert MARKER not in USUAL.text(text)


def test_sentences_keep_the_rest() -> None:
    said = "Connection to smtp.example.com:25 refused after 3 attempts: retry = yes"
    assert USUAL.text(said) == said


def test_a_huge_text_is_gone_through_once() -> None:
    for text in ("x" * 10**6, "a:" * 10**4, "'" * 10**5, "a=" * 10**4 + "~" * 10**5):
        assert USUAL.text(text) == text


def test_more_names_can_be_hidden() -> None:
    more = Redaction([" patientId ", ""])
    assert more.of({"patient_id": 7, "id": 8}) == {"patient_id": HIDDEN, "id": 8}
    assert USUAL.of({"patient_id": 7}) == {"patient_id": 7}


def test_what_is_nested_without_end_is_cut() -> None:
    deep: Any = MARKER
    for _ in range(5_000):
        deep = [deep]
    assert MARKER not in json.dumps(USUAL.of({"a": deep}))
