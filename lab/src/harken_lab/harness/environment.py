"""The machine and the versions of a measurement, written beside every result."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harken_lab.harness.source_state import source_state

_PACKAGES = ("harken", "numba", "numpy", "pyarrow")


def environment(*more_packages: str) -> dict[str, Any]:
    """The processor, the memory, the system, the versions and the sources of what was measured, and when.

    `load` is the load average of the minute before the call.
    """
    state = source_state()
    return {
        "commit": state.commit,
        "sources": state.sources,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": round(os.getloadavg()[0], 2),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in (*_PACKAGES, *more_packages)},
    }


def _processor() -> str:
    try:
        model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        model = None
    return model[1] if model else platform.processor() or "unknown"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
