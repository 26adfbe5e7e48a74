"""Settings: flag over environment over default; typos get a hint, bad values a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.core.errors import InvalidRequest
from fairway.core.pools import MEDIUM, SHORT
from fairway.runtime.settings import FOREIGN, PREFIX, Settings, load, replaced


def test_the_defaults_are_right() -> None:
    assert load({}) == Settings()
    assert Settings().check() == []


def test_every_kind_of_value_is_read_from_the_environment() -> None:
    settings = load(
        {
            "FAIRWAY_PORT": "9000",
            "FAIRWAY_TERM_SECONDS": "1.5",
            "FAIRWAY_DATA_DIR": "place",
            "FAIRWAY_DATABASE_URL": "postgresql://db/x",
            "FAIRWAY_LEASE_SECONDS": "short=2,long=30.5",
            "FAIRWAY_POSTGRES_BIN": "bin",
            "FAIRWAY_METRICS_NAME_TYPES": "Yes",
            "PATH": "not ours",
        }
    )
    assert (settings.port, settings.term_seconds) == (9000, 1.5)
    assert (settings.data_dir, settings.postgres_bin) == (Path("place"), Path("bin"))
    assert settings.database_url == "postgresql://db/x"
    assert settings.metrics_name_types is True
    assert load({"FAIRWAY_METRICS_NAME_TYPES": "false"}).metrics_name_types is False
    assert settings.lease_seconds == {"short": 2, "long": 30.5}
    assert settings.lease_seconds_of(SHORT) == 2
    assert settings.lease_seconds_of(MEDIUM) == 300


def test_a_flag_wins_over_the_environment_and_none_is_no_flag() -> None:
    environment = {"FAIRWAY_PORT": "9000", "FAIRWAY_HOST": "localhost"}
    settings = load(environment, port=9001, host=None)
    assert (settings.port, settings.host) == (9001, "localhost")


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(InvalidRequest, match="Did you mean FAIRWAY_PORT") as refusal:
        load({"FAIRWAY_PROT": "1"})
    assert refusal.value.code == "UNKNOWN_SETTING"
    with pytest.raises(InvalidRequest) as refusal:
        load({"FAIRWAY_ZZZZZZZZZZ": "1"})
    assert "Did you mean" not in refusal.value.message


def test_names_of_other_programs_are_left_alone() -> None:
    assert load({PREFIX + name: "anything" for name in FOREIGN}) == Settings()
    assert load({"FAIRWAY_HOSTILE_SECONDS": "300"}) == Settings()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "many"),
        ("TERM_SECONDS", "soon"),
        ("LEASE_SECONDS", "short"),
        ("PORT", ""),
        ("STORE_WAIT_SECONDS", "nan"),
        ("TERM_SECONDS", "inf"),
        ("LEASE_SECONDS", "short=nan"),
        ("METRICS_NAME_TYPES", "maybe"),
        ("METRICS_NAME_TYPES", ""),
    ],
)
def test_a_bad_value_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        load({PREFIX + name: text})
    assert refusal.value.code == "BAD_SETTING"
    assert PREFIX + name in refusal.value.message
    assert repr(text) in refusal.value.message


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"retention_days": 0}, "RETENTION_DAYS"),
        ({"window_jobs": -1}, "WINDOW_JOBS"),
        ({"shard_count": 5000}, "SHARD_COUNT"),
        ({"term_seconds": 0.1}, "TERM_SECONDS"),
        ({"host": "0.0.0.0"}, "ADVERTISED_URL"),
        ({"lease_seconds": {"tiny": 1.0}}, "tiny"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(changes: dict[str, object], word: str) -> None:
    (found,) = replaced(Settings(), **changes).check()
    assert word in found
    assert found.endswith(".")


def test_everything_wrong_is_said_at_once() -> None:
    wrong = replaced(Settings(), retention_days=0, shard_count=0, term_seconds=0)
    assert len(wrong.check()) == 3


def test_a_server_knows_its_own_address() -> None:
    assert Settings(port=1234).url == "http://127.0.0.1:1234"
    assert Settings(advertised_url="https://jobs").url == "https://jobs"


def test_an_empty_address_or_folder_is_not_set() -> None:
    """As in files of containers; an empty folder name would put all state where one stands."""
    names = ("HOST", "DATABASE_URL", "DATA_DIR", "STORAGE_URL", "POSTGRES_BIN")
    assert load({PREFIX + name: "" for name in names}) == Settings()
    with pytest.raises(InvalidRequest, match="There is no setting FAIRWAY_PORTT"):
        load({"FAIRWAY_PORTT": ""})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"port": 99999}, "FAIRWAY_PORT must be from 1 to 65535, not 99999."),
        ({"drain_seconds": -1}, "FAIRWAY_DRAIN_SECONDS must not be negative."),
        ({"submit_waiting_max": 0}, "FAIRWAY_SUBMIT_WAITING_MAX must be above zero."),
        ({"lease_seconds": {"short": 0}}, "FAIRWAY_LEASE_SECONDS of short must be above zero."),
    ],
)
def test_numbers_that_cannot_be_meant(changes: dict[str, Any], sentence: str) -> None:
    assert replaced(Settings(), **changes).check() == [sentence]
