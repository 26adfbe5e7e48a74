"""The web app's sources: exact versions, no registry by name, and a wheel is never without it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.laws.source import ROOT

WEB = ROOT / "web"


def test_every_version_is_one_and_the_lock_names_no_registry() -> None:
    package = json.loads((WEB / "package.json").read_text("utf-8"))
    wanted = package["dependencies"] | package["devDependencies"]
    assert {
        name: one for name, one in wanted.items() if not re.fullmatch(r"\d+\.\d+\.\d+", one)
    } == {}
    text = (WEB / "package-lock.json").read_text("utf-8")
    locked = json.loads(text)["packages"]
    assert '"resolved"' not in text
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert [name for name, one in locked.items() if name and not one.get("integrity")] == []


def test_pages_put_nothing_into_the_document_but_text() -> None:
    """Whatever a tenant wrote is shown, and never run."""
    unsafe = re.compile(r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|\beval\(")
    sources = [one for kind in ("ts", "tsx") for one in (WEB / "src").rglob(f"*.{kind}")]
    assert sources
    assert [str(one) for one in sources if unsafe.search(one.read_text("utf-8"))] == []


def test_a_wheel_without_it_is_refused_with_words(tmp_path: Path) -> None:
    hook = _hook()(str(tmp_path), {}, None, None, str(tmp_path), "wheel")
    hook.initialize("editable", {})
    with pytest.raises(SystemExit, match="make web"):
        hook.initialize("standard", {})
    built = tmp_path / "src/fairway/api/dashboard/static/index.html"
    built.parent.mkdir(parents=True)
    built.write_text("<!doctype html>")
    hook.initialize("standard", {})


def _hook() -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.WithDashboard
