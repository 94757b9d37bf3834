"""What every result shares: errors that decide whether there is one, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from harken.errors import SourceError

Made = TypeVar("Made")


class Unavailable(Exception):  # noqa: N818 - it is no error: it ends up in the result as `not measured`
    """A figure cannot be measured; the message says why."""


class WrongAnswerError(Exception):
    """Two contestants disagree, or one is wrong: the run ends without a result."""


def to_json(data: Mapping[str, Any]) -> str:
    """Indented, but with each item of a list of objects on a line of its own, so that two results can be diffed."""
    parts = []
    for name, value in data.items():
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            lines = ",".join(f"\n    {json.dumps(each, ensure_ascii=False)}" for each in value)
            text = f"[{lines}\n  ]"
        else:
            text = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ")
        parts.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read_json(path: str | Path) -> Any:
    """What a JSON file holds. Raises SourceError."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise SourceError(f"{path} is not JSON: {error}") from error


def read_as(path: str | Path, make: Callable[[Any], Made], otherwise: str, hint: str | None = None) -> Made:
    """What `make` makes of a JSON file. Raises SourceError with what it is `otherwise`."""
    data = read_json(path)
    try:
        return make(data)
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path} {otherwise}: {error}", hint=hint) from error
