"""The golden cases of tests/cases as data: events, subscriptions and which matches which, all written by hand."""

from __future__ import annotations

import io
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harken.events import read_rows
from harken.schema import Schema, parse_schema

FOLDER = Path(__file__).parent.parent / "cases"


@dataclass(frozen=True)
class CaseFile:
    """One file: every subscription with the names of the events that it matches."""

    name: str
    schema: Schema | None
    events: dict[str, dict[str, Any]]
    expected: list[tuple[str, set[str]]]


def case_files() -> list[CaseFile]:
    files = [_read(path) for path in sorted(FOLDER.glob("*.toml")) if path.stem != "rejections"]
    assert len(files) >= 6, "the golden cases are gone"
    return files


def rejections() -> tuple[Schema, list[dict[str, Any]]]:
    content = tomllib.loads((FOLDER / "rejections.toml").read_text(encoding="utf-8"))
    return parse_schema(content["schema"]), content["texts"]


def _read(path: Path) -> CaseFile:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    schema = parse_schema(content["schema"]) if "schema" in content else None
    rows = list(
        read_rows(io.BytesIO("\n".join(_one_line(text) for text in content["events"].values()).encode()), "jsonl")
    )
    assert all(row.error is None for row in rows), [row.error for row in rows]
    events = {name: row.content or {} for name, row in zip(content["events"], rows, strict=True)}
    expected = [(each["where"], set(each["matches"])) for each in content["subscriptions"]]
    unknown = {name for _, names in expected for name in names} - set(events)
    assert not unknown, f"{path.name} expects events that it does not have: {unknown}"
    return CaseFile(path.stem, schema, events, expected)


def _one_line(text: str) -> str:
    return text.strip().replace("\n", " ")
