"""Jars are fetched by the real Maven and the real Ivy. A test that needs what is not to be reached is skipped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harken.errors import HarkenError
from harken.pipeline.jars import jar_folder, resolve_jars

pytestmark = pytest.mark.seconds

# The first needs commons-collections, and would like commons-logging 1.2.
PACKAGES = ["commons-beanutils:commons-beanutils:1.9.4", "commons-logging:commons-logging:1.1.3"]
JARS = ["commons-beanutils-1.9.4.jar", "commons-collections-3.2.2.jar", "commons-logging-1.1.3.jar"]


@pytest.fixture(params=["maven", "ivy"])
def tool(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The tool that does it: Maven where it is on the PATH, Ivy where it is not."""
    from harken.spark.java import find_java

    if request.param == "maven" and shutil.which("mvn") is None:
        pytest.skip("there is no mvn on the PATH")
    if request.param == "ivy":
        monkeypatch.setenv("JAVA_HOME", str(find_java().home))
        monkeypatch.setenv("PATH", str(tmp_path))
    return str(request.param)


def test_both_tools_fetch_what_is_needed_and_keep_the_versions_asked_for(tool: str, tmp_path: Path) -> None:
    try:
        jars = resolve_jars(PACKAGES, tmp_path)
    except HarkenError as error:
        if "Could not transfer" in error.message or "Host" in error.message:
            pytest.skip(error.message)
        raise
    assert [jar.name for jar in jars] == JARS
    assert [entry.name for entry in tmp_path.iterdir()] == [jars[0].parent.name], "nothing else is left behind"


def test_what_is_not_there_is_an_error_of_one_line_that_names_the_folder_to_fill(tool: str, tmp_path: Path) -> None:
    package = "org.example.nowhere:missing:1.0"
    with pytest.raises(
        HarkenError, match=r"the jars of org\.example\.nowhere:missing:1\.0 cannot be fetched: "
    ) as caught:
        resolve_jars([package], tmp_path)
    folder = jar_folder([package], tmp_path)
    assert "\n" not in caught.value.message
    assert str(folder) in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []

    folder.mkdir()
    (folder / "missing-1.0.jar").touch()
    assert resolve_jars([package], tmp_path) == [folder / "missing-1.0.jar"]


def test_jars_that_are_there_are_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = jar_folder(PACKAGES)
    assert folder.is_relative_to(tmp_path / "harken" / "jars")
    folder.mkdir(parents=True)
    for name in JARS:
        (folder / name).touch()
    assert resolve_jars(reversed(PACKAGES)) == [folder / name for name in JARS]


def test_every_set_of_packages_has_its_folder() -> None:
    sets = [PACKAGES, PACKAGES[:1], PACKAGES[1:], ["commons-beanutils:commons-beanutils:1.9.3"]]
    folders = {jar_folder(packages, Path("cache")) for packages in sets}
    assert len(folders) == len(sets)
    assert {folder.parent for folder in folders} == {Path.cwd() / "cache"}


def test_nothing_needs_nothing() -> None:
    assert resolve_jars([]) == []


@pytest.mark.parametrize("package", ["", "spark", "a:b", "a:b:c:d", "a:b:<c>", "a:b: c", "../a:b:c"])
def test_what_is_no_package_is_rejected(package: str, tmp_path: Path) -> None:
    with pytest.raises(HarkenError, match="is not a Maven package"):
        resolve_jars([package], tmp_path)


def test_a_file_in_the_way_of_the_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(HarkenError, match=r"jars cannot be stored in .*: Not a directory") as caught:
        resolve_jars(PACKAGES, tmp_path / "cache" / "jars")
    assert "XDG_CACHE_HOME" in str(caught.value.hint)
