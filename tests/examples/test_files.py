"""Files in object storage by the hash of what they say; trouble with them is never a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples.judge import files
from examples.judge.jobs import judge_python

from fairway.core.lifecycle import State
from fairway.sdk.handler.codec import InvalidArguments
from fairway.testing import perform


def _kept(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_file_comes_back_as_it_was_and_the_same_is_kept_once(tmp_path: Path) -> None:
    store = files.open_store(str(tmp_path))
    reference = await files.put(store, b"print(42)")
    assert files.get(store, reference) == b"print(42)"
    assert await files.put(store, b"print(42)") == reference
    assert len(_kept(tmp_path)) == 1


async def test_a_folder_may_be_written_as_an_address(tmp_path: Path) -> None:
    """As FAIRWAY_STORAGE_URL is; and it need not be there yet."""
    reference = await files.put(files.open_store(f"file://{tmp_path}/new"), b"print(42)")
    assert files.get(files.open_store(str(tmp_path / "new")), reference) == b"print(42)"


async def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    store = files.open_store(str(tmp_path))
    reference = await files.put(store, b"expected: 42")
    (tmp_path / reference[:2] / reference).write_bytes(b"expected: 43")
    with pytest.raises(files.FileMissing, match="not what was stored"):
        files.get(store, reference)


def test_a_store_in_trouble_fails_the_run_and_judges_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_STORE", str(tmp_path))
    performed = perform(judge_python, "0" * 64, [("1" * 64, "2" * 64)], 1.0, 64)
    assert performed.result is None
    assert performed.error["type"] == "FileMissing"
    assert performed.decision.state is State.SCHEDULED  # tried again, not judged


@pytest.mark.parametrize(
    "asked", [{"cpu_seconds": 1e9}, {"memory_mb": 1_000_000}, {"tests": [["a", "b"]] * 101}]
)
def test_a_job_that_asks_for_more_than_the_service_would_is_refused(asked: dict[str, Any]) -> None:
    """Whoever has a tenant's key may submit one past the service."""
    payload: dict[str, Any] = {"source": "s", "tests": [["a", "b"]], "cpu_seconds": 1.0}
    payload |= {"memory_mb": 64} | asked
    with pytest.raises(InvalidArguments, match="expected"):
        perform(judge_python, **payload)
