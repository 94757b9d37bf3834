"""A root of the plainest versions: each is a file that holds a text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harken.versions.files import LocalFiles
from harken.versions.root import KEPT, Root


@dataclass(frozen=True)
class Text:
    folder: str
    version: int
    text: str


class Texts(Root[Text]):
    how_to_publish = "publish a text"

    def publish(self, text: str, keep: int = KEPT) -> Text:
        def write(place: Path) -> dict[str, Any]:
            LocalFiles(place).write("text", text.encode())
            return {"text": text}

        return self._publish(write, keep)

    def read(self, version: Text) -> str:
        found = self.files.read(f"{version.folder}/text")
        assert found is not None
        return found.decode()

    def _parsed(self, plain: dict[str, Any]) -> Text:
        return Text(**plain)
