"""The parts of a document, which is written as HTML or as Markdown.

Texts may have `code`, **bold** and [links](#key) in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 4. Links refer to it by its key."""

    level: int
    text: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text."""

    text: str
    is_aside: bool = False
    """Whether it is of less importance, such as the machine or the command."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table with headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    are_numbers: bool = False
    """Whether all columns but the first hold numbers."""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.headings) for row in self.rows):
            raise ValueError(f"a row of the table below {self.headings} has another number of cells")


@dataclass(frozen=True, slots=True)
class Command:
    """A command for a shell."""

    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, drawn when its `svg` is called."""

    name: str
    """The name of its file, without the ending."""
    title: str
    svg: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that are hidden below a title until it is clicked."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Heading | Paragraph | DataTable | Command | Chart | Folded
