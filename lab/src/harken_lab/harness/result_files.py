"""Results as JSON files, and the errors that leave out a figure or end a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from harken.errors import SourceError

Result = TypeVar("Result")


class Unavailable(Exception):  # noqa: N818 - no error: the result has `not measured` in its place
    """A figure cannot be measured; the message says why."""


class WrongAnswerError(Exception):
    """Contestants give different answers, or one gives a wrong answer: the run ends without a result."""


def to_json(data: Mapping[str, Any]) -> str:
    """Indented JSON. In a list of objects each object has a line of its own, so that two results can be diffed."""
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
    """The content of a JSON file. Raises SourceError."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise SourceError(f"{path} is not JSON: {error}") from error


def read_as(path: str | Path, make: Callable[[Any], Result], complaint: str, hint: str | None = None) -> Result:
    """Pass the content of a JSON file to `make`. If that fails, raises SourceError with the `complaint`."""
    data = read_json(path)
    try:
        return make(data)
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path} {complaint}: {error}", hint=hint) from error
