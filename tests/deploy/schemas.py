"""JSON schemas of others, read from the packages that carry them: `make schemas` fetches these.

They are wheels, which are archives; nothing of them is installed or run.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

FOLDER = Path(sys.prefix) / "schemas"
COMPOSE = "check_jsonschema/builtin_schemas/vendor/compose-spec.json"
#: The oldest that has `preStop.sleep` switched on, and the newest there is.
VERSIONS = ("1.30.0", "1.37.0")


def _read(package: str, path: str) -> Any:
    wheels = sorted(FOLDER.glob(f"{package}-*.whl"))
    if not wheels:
        pytest.skip(f"{package} is not in {FOLDER.name}: `make schemas` fetches it")
    with zipfile.ZipFile(wheels[-1]) as archive:
        return json.loads(archive.read(path))


@cache
def _kubernetes(version: str, file: str) -> Any:
    folder = f"kubernetes_validate/kubernetes-json-schema/v{version}-local-strict"
    return _read("kubernetes_validate", f"{folder}/{file}")


@cache
def _validator(kind: str, api_version: str, version: str) -> Any:
    group, _, number = api_version.rpartition("/")
    parts = [kind.lower(), *([group.split(".")[0]] if group else []), number]
    return jsonschema_rs.validator_for(
        _kubernetes(version, f"{'-'.join(parts)}.json"),
        retriever=lambda uri: _kubernetes(version, uri.rsplit("/", 1)[-1]),
    )


def kubernetes_complaints(thing: dict[str, Any], version: str) -> Iterator[str]:
    """As the API server would have them, also of fields that nobody knows."""
    validator = _validator(thing["kind"], thing["apiVersion"], version)
    for error in validator.iter_errors(thing):
        yield f"{'/'.join(map(str, error.instance_path))}: {error.message}"


def compose_complaints(thing: dict[str, Any]) -> list[str]:
    validator = jsonschema_rs.validator_for(_read("check_jsonschema", COMPOSE))
    return [error.message for error in validator.iter_errors(thing)]
