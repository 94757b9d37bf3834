"""The files of the server's page: complete, free of markup from outside, and built with or without Vega's scripts."""

from __future__ import annotations

import importlib.util
import posixpath
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harken.server.page import CONTENT_SECURITY_POLICY, page_files

ROOT = Path(__file__).parents[3]
OWN = {path: content.decode() for path, (_, content) in page_files().items() if path != "/page/vega.js"}
SCRIPTS = {path: text for path, text in OWN.items() if path.endswith(".js")}


def test_every_file_has_the_content_type_of_its_kind() -> None:
    kinds = {path.rpartition(".")[2]: content_type for path, (content_type, _) in page_files().items()}
    assert kinds == {
        "/": "text/html; charset=utf-8",
        "css": "text/css; charset=utf-8",
        "js": "text/javascript; charset=utf-8",
    }


def test_what_the_page_loads_is_there() -> None:
    loaded = set(re.findall(r'(?:src|href)="(page/[^"]+)"', OWN["/"]))
    assert {"page/main.js", "page/page.css"} == loaded
    for path, text in SCRIPTS.items():
        loaded |= {posixpath.join(posixpath.dirname(path), name) for name in re.findall(r'from "([.]/[^"]+)"', text)}
    assert {posixpath.normpath(posixpath.join("/", path)) for path in loaded} | {"/"} == set(OWN)


def test_elements_that_scripts_look_for_are_in_the_page() -> None:
    named = set(re.findall(r'\bid="([^"]+)"', OWN["/"]))
    asked = {name for text in SCRIPTS.values() for name in re.findall(r'\bat\("([^"]+)"\)', text)}
    assert len(asked) > 40
    assert asked <= named


def test_ids_are_given_once() -> None:
    named = re.findall(r'\bid="([^"]+)"', OWN["/"])
    assert len(named) == len(set(named))


@pytest.mark.parametrize("path", sorted(SCRIPTS))
def test_no_script_makes_markup_or_code_from_text(path: str) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|\bstyle\b\s*:"
    assert re.search(forbidden, SCRIPTS[path]) is None


def test_the_page_has_no_inline_scripts_or_styles() -> None:
    assert re.search(r"<style|\sstyle=|\son[a-z]+=", OWN["/"]) is None
    assert re.findall(r"<script(?![^>]*\bsrc=)", OWN["/"]) == []


def test_the_policy_allows_nothing_that_is_not_the_servers_own() -> None:
    rules = dict(each.split(" ", 1) for each in CONTENT_SECURITY_POLICY.split("; "))
    assert rules.pop("img-src") == "'self' data:"
    assert set(rules.values()) == {"'none'", "'self'"}
    assert rules["default-src"] == "'none'"


def build_hook(root: Path, warnings: list[str]) -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    app = SimpleNamespace(display_warning=warnings.append)
    return module.VegaScripts(str(root), {}, None, None, str(root / "dist"), "wheel", app)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a build in a folder of its own puts the scripts."""
    target = tmp_path / "src/harken/server/page/vega.js"
    target.parent.mkdir(parents=True)
    return target


@pytest.mark.seconds
def test_a_build_writes_the_scripts_with_their_licence(tmp_path: Path, place: Path) -> None:
    pytest.importorskip("vl_convert")
    warnings: list[str] = []
    build_hook(tmp_path, warnings).initialize("standard", {})
    text = place.read_text()
    assert text.startswith("/*\nVega ")
    assert "University of Washington Interactive Data Lab" in text
    assert text.rstrip().endswith("as default};")
    assert warnings == []
    assert [each.name for each in place.parent.iterdir()] == ["vega.js"]


def test_a_build_leaves_scripts_that_are_there(tmp_path: Path, place: Path) -> None:
    place.write_text("there")
    build_hook(tmp_path, []).initialize("editable", {})
    assert place.read_text() == "there"


def test_a_build_without_vl_convert_warns_and_goes_on(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    warnings: list[str] = []
    build_hook(tmp_path, warnings).initialize("standard", {})
    assert not place.exists()
    assert warnings == ["vl-convert-python is missing: the server's page will have no charts"]
