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


def test_a_wheel_has_it_built_or_is_refused_with_words(tmp_path: Path) -> None:
    hatch = _hatch()
    hook = hatch.WithDashboard(str(tmp_path), {}, None, None, str(tmp_path), "wheel")
    assert hook.dependencies() == [hatch.NODE]
    hook.initialize("editable", {})
    with pytest.raises(SystemExit, match=hatch.WITHOUT):
        hatch.build(tmp_path, lambda words: 1, lambda words: 0)
    said: list[str] = []
    hatch.build(tmp_path, lambda words: said.extend(words), lambda words: said.extend(words))
    assert said == ["--prefix", f"{tmp_path}/web", "ci", "--silent", f"{tmp_path}/web/build.mjs"]
    built = tmp_path / hatch.INDEX
    built.parent.mkdir(parents=True)
    built.write_text("<!doctype html>")
    assert hook.dependencies() == []
    hook.initialize("standard", {})


def _hatch() -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
