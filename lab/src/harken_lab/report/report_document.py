"""A document: what the report says, before it is written as HTML or as Markdown.

Texts may have `code`, **bold** and [links](#key) in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 4, which links lead to by its key."""

    level: int
    text: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: str
    is_aside: bool = False
    """Less important: where it was measured, how to run it again."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    are_numbers: bool = False
    """Whether all columns but the first hold numbers."""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.headings) for row in self.rows):
            raise ValueError(f"a row of the table below {self.headings} has another number of cells")


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed into a shell."""

    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, drawn when it is asked for."""

    name: str
    """Of its file, without the ending."""
    title: str
    svg: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks below a line that opens them."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Heading | Paragraph | DataTable | Command | Chart | Folded
