"""Fetches jars from Maven, with their dependencies, into a folder of the user's cache.

Jars are fetched by `mvn` if it is on the PATH, with the mirrors, proxies and passwords of the user's settings.xml. Else
by Ivy, whose jar comes with PySpark and which Spark itself uses for `spark.jars.packages`. Both fetch a requested
package in the requested version, even if another package depends on a different one.

Packages whose folder has jars are not fetched and need no network, even if the user put the jars there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from harken.errors import HarkenError
from harken.spark.java import find_java
from harken.versions.atomic import placing_folder

_COORDINATES = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+")
_FETCH_SECONDS = 900
_MAVEN_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

# Spark's own POMs name a mirror, which Maven tries first; it fails if the mirror cannot be reached. A disabled
# repository of the same id overrides the mirror.
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>harken</groupId><artifactId>jars</artifactId><version>1</version>
  <repositories>
    <repository>
      <id>gcs-maven-central-mirror</id>
      <url>file:///nowhere</url>
      <releases><enabled>false</enabled></releases>
      <snapshots><enabled>false</enabled></snapshots>
    </repository>
  </repositories>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_POM_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_IVY = """\
<ivy-module version="2.0">
  <info organisation="harken" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_IVY_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" conf="default->default" force="true"/>'

# Patterns for the cause of a failure in the output of Maven or Ivy, the most specific first.
_REASONS = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"Could not (?:find|transfer) artifact (?:.(?!Could not (?:find|transfer) artifact))*?(?= -> \[Help|$)",
        r"Host \S+ not found|Server access error at url .*\S",
        r"^\s*:: (\S+#\S+: .*\S)",
        r"\[FATAL\] (\S.*)",
        r"\[ERROR\] (\S.*?)(?= -> \[Help|$)",
    )
]


def resolve_jars(packages: Iterable[str], cache: Path | None = None) -> list[Path]:
    """The jars of packages `group:artifact:version` and of their dependencies.

    Jars that are not in the cache are fetched. Raises HarkenError if that fails.
    """
    unique_packages = sorted(set(packages))
    for package in unique_packages:
        if not _COORDINATES.fullmatch(package):
            raise HarkenError(f"{package!r} is not a Maven package", hint="write it as group:artifact:version")
    if not unique_packages:
        return []
    folder = jar_folder(unique_packages, cache)
    if not any(folder.glob("*.jar")):
        _fetch(unique_packages, folder)
    return sorted(folder.glob("*.jar"))


def jar_folder(packages: Iterable[str], cache: Path | None = None) -> Path:
    """The folder in the cache for the jars of these packages. It may not exist yet."""
    unique_packages = sorted(set(packages))
    _, artifact, version = unique_packages[0].split(":")
    digest = hashlib.sha256("\n".join(unique_packages).encode()).hexdigest()[:12]
    return (cache or _user_cache()).absolute() / f"{artifact}-{version}-{digest}"


def spark_jars() -> Path:
    """The folder of Spark's own jars."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars")


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "harken", "jars")


def _fetch(packages: Sequence[str], folder: Path) -> None:
    """Fetch the jars into a folder, which appears only when it is complete."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as scratch,
            placing_folder(folder) as jars,
        ):
            work = Path(scratch)
            command = _maven(packages, work, jars) if shutil.which("mvn") else _ivy(packages, work, jars, folder)
            _run(command, packages, work, jars, folder)
    except OSError as error:
        if any(folder.glob("*.jar")):  # Another process has fetched the same jars.
            return
        hint = "set XDG_CACHE_HOME to a writable folder"
        raise HarkenError(f"jars cannot be stored in {folder.parent}: {error.strerror}", hint=hint) from error


def _maven(packages: Sequence[str], scratch: Path, jars: Path) -> list[str]:
    _write(scratch / "pom.xml", _POM, _POM_DEPENDENCY, packages)
    goal = [_MAVEN_GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    # -U: look again for packages that an earlier run did not find. -C: fail if a checksum is wrong.
    return ["mvn", "-B", "-q", "-U", "-C", *goal]


def _ivy(packages: Sequence[str], scratch: Path, jars: Path, folder: Path) -> list[str]:
    ivy = next(spark_jars().glob("ivy-*.jar"), None)
    if ivy is None:
        raise _fetch_error(packages, folder, "there is no mvn on the PATH, and no Ivy among Spark's jars")
    _write(scratch / "ivy.xml", _IVY, _IVY_DEPENDENCY, packages)
    java = find_java().home / "bin" / "java"
    pattern = jars / "[artifact]-[revision](-[classifier]).[ext]"
    return [str(java), "-jar", str(ivy), "-cache", str(scratch / "cache"), "-ivy", "ivy.xml", "-retrieve", str(pattern)]


def _write(file: Path, template: str, line: str, packages: Sequence[str]) -> None:
    lines = ["    " + line.format(*package.split(":")) for package in packages]
    file.write_text(template.format(dependencies="\n".join(lines)))


def _run(command: list[str], packages: Sequence[str], scratch: Path, jars: Path, folder: Path) -> None:
    try:
        process = subprocess.run(
            command,
            cwd=scratch,
            env=dict(os.environ) | {"JAVA_HOME": str(find_java().home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_FETCH_SECONDS,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _fetch_error(packages, folder, str(error)) from error
    if process.returncode != 0 or not any(jars.glob("*.jar")):
        reason = _reason(process.stdout) or f"{command[0]} ended with code {process.returncode}"
        raise _fetch_error(packages, folder, reason)


def _reason(output: str) -> str | None:
    for pattern in _REASONS:
        match = pattern.search(output)
        if match is not None:
            return " ".join(match[match.lastindex or 0].split())
    return None


def _fetch_error(packages: Sequence[str], folder: Path, reason: str) -> HarkenError:
    names = ", ".join(packages)
    hint = f"put the jars of these packages and of their dependencies into {folder}, or name them in spark.jars"
    return HarkenError(f"the jars of {names} cannot be fetched: {reason}", hint=hint)
