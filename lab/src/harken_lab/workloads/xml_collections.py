"""Collections of XML documents that workloads are drawn from: NASA's, if it is at hand, and a made-up one."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import BinaryIO, cast

from harken.events.xml.splitting import split
from harken_lab.workloads.words import word

DATA = "HARKEN_DATA"
"""The environment variable that names the folder of third-party data."""
_NASA, _RECORD = "nasa.xml.xz", "dataset"
_RECORDS = 300
_NAMESPACE = "urn:harken:records"


def has_nasa() -> bool:
    """Whether the data set is in the folder that the environment variable names."""
    return DATA in os.environ and Path(os.environ[DATA], _NASA).exists()


@lru_cache(1)
def nasa() -> tuple[bytes, ...]:
    """The astronomical data sets of the University of Washington's XML repository, a document each."""
    with lzma.open(Path(os.environ[DATA], _NASA)) as stream:
        return tuple(piece.data for piece in split(cast(BinaryIO, stream), _RECORD))


@lru_cache(1)
def records() -> tuple[bytes, ...]:
    """Made-up documents like NASA's: nested, recursive, with mixed content and a namespace. Always the same ones."""
    rng = Random(4)
    return tuple(_record(number, rng).encode() for number in range(_RECORDS))


COLLECTIONS: dict[str, Callable[[], tuple[bytes, ...]]] = {"nasa": nasa, "records": records}


def _record(number: int, rng: Random) -> str:
    keywords = "".join(
        f'<keyword link:href="{each}.html">{each}</keyword>'
        for each in (_word(rng, 60) for _ in range(rng.randint(1, 4)))
    )
    authors = "".join(
        f"<author><initial>{rng.choice('ABCDEFGH')}</initial><lastName>{_word(rng, 80).title()}</lastName></author>"
        for _ in range(rng.randint(1, 3))
    )
    source = rng.choice(("journal", "book"))
    subject = rng.choice(("stars", "planets", "galaxies"))
    return (
        f'<record id="R{number:04d}" subject="{subject}" xmlns:link="{_NAMESPACE}">\n'
        f"  <title>{_words(rng, 3)}</title>\n  <keywords>{keywords}</keywords>\n"
        f"  <reference><{source}>{authors}<year>{rng.randint(1900, 2004)}</year></{source}></reference>\n"
        f"  {_section(rng, 0)}\n  <fields>{''.join(_field(rng) for _ in range(rng.randint(1, 5)))}</fields>\n</record>"
    )


def _section(rng: Random, depth: int) -> str:
    """A heading, a paragraph of mixed content, and sections of the same kind."""
    inner = "".join(_section(rng, depth + 1) for _ in range(rng.randint(0, 2))) if depth < 3 else ""
    return (
        f'<section level="{depth}"><heading>{_words(rng, 2)}</heading>'
        f"<para>{_words(rng, 4)} <term>{_word(rng, 40)}</term> {_words(rng, 2)}</para>{inner}</section>"
    )


def _field(rng: Random) -> str:
    name, units = _word(rng, 50), rng.choice(("mag", "km/s", "---", "deg"))
    least = f"{rng.uniform(-10, 90):.1f}"
    return f"<field><name>{name}</name><units>{units}</units><least>{least}</least></field>"


def _word(rng: Random, among: int) -> str:
    """One of the first `among` words; lower numbers are likelier."""
    return word(min(rng.randrange(among), rng.randrange(among)))


def _words(rng: Random, count: int) -> str:
    return " ".join(_word(rng, 100) for _ in range(count))
