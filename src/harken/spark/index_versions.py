"""An index: saved engines in versions below a root, as `harken.versions.root` keeps them.

version-00000002-3f6c…/          a saved engine, never changed: manifest.harken, *.segment, version.json
version-00000002-3f6c…/shards-4/ the same engine in four parts, made at first use
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.engine import Engine
from harken.errors import CapabilityError, HarkenError
from harken.live.saved import saved_algorithms
from harken.spark.index_files import files_of
from harken.spark.stream_leases import MicroBatch, hold
from harken.spark.worker_operators import NO_OPERATORS, WorkerOperators
from harken.versions.files import Files
from harken.versions.folder import fingerprint_of
from harken.versions.root import KEPT, Root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """A version of an index: its folder, and facts for which the index need not be opened."""

    root: str
    folder: str
    version: int
    fingerprint: str
    """Equal for versions with equal content."""
    subscriptions: int
    nbytes: int
    """The size of its files."""
    attributes: tuple[str, ...] | None = None
    """The columns that matching needs; None: all."""
    favourite: str | None = None
    """The column by which most subscriptions are found, if there is one."""
    built: float = 0.0
    """The time at which the index was built, in seconds since 1970."""
    source: str | None = None
    """The `source` that was passed to `build_index`."""
    asks: tuple[tuple[tuple[str, ...], str | None], ...] | None = None
    """The paths of the attributes that subscriptions use, each with the kind of its values, None for any. None if only
    the opened index can list them."""
    documents: tuple[tuple[str, ...], ...] = ()
    """The paths of the attributes that are read as XML documents."""
    validated: tuple[str, ...] | None = None
    """The columns whose values must be valid; others are for operators only, and may hold anything. None: all."""
    plugged: WorkerOperators = NO_OPERATORS
    """The operators that subscriptions call. They are not saved with the index: pass them when opening it."""

    def files(self, spark: SparkSession | None = None) -> Files:
        return files_of(self.root, spark)


class Index(Root[IndexVersion]):
    """The versions of an index. Many processes may read it, on any machine; one at a time may publish."""

    how_to_publish = "harken.spark.build_index(subscriptions, path) publishes one"

    def __init__(
        self, root: str | PathLike[str], spark: SparkSession | None = None, plugged: WorkerOperators = NO_OPERATORS
    ) -> None:
        super().__init__(files_of(root, spark))
        self._spark = spark
        self._plugged = plugged

    def publish(self, engine: Engine, *, source: str | None = None, keep: int = KEPT) -> IndexVersion:
        """Save an engine as the next version, and make it the current one.

        The last `keep` versions and the pinned ones are kept. Raises SegmentError or SourceError; the current version
        then stays.
        """
        return self._publish(partial(_saved, engine, source), keep)

    def hold(self, version: int, batch: MicroBatch | None = None) -> None:
        """Keep a version as long as its reader needs it, if the index is writable.

        `harken.spark.stream_leases` chooses the reader.
        """
        with suppress(HarkenError, OSError):
            hold(self, version, batch)

    def cut(self, version: IndexVersion, parts: int) -> list[IndexVersion]:
        """A version in parts, each an index of its own. The parts are made once, and stored in the version's folder."""
        from harken.spark.local import opened

        folders = [f"{version.folder}/shards-{parts}/part-{place:04d}" for place in range(parts)]
        with self._locked():
            read = [self._read_folder(folder) for folder in folders]
            if not all(read):
                self.files.remove(f"{version.folder}/shards-{parts}")
                engines = opened(version, spark=self._spark).internals.cut(parts)
                for folder, engine in zip(folders, engines, strict=True):
                    self._store(folder, version.version, partial(_saved, engine, None))
                read = [self._read_folder(folder) for folder in folders]
        # Every part validates the whole event, so that all parts reject the same events.
        attributes, validated, plugged = version.attributes, version.validated, version.plugged
        shards = [each for each in read if each is not None]
        return [replace(each, attributes=attributes, validated=validated, plugged=plugged) for each in shards]

    def _parsed(self, plain: dict[str, Any]) -> IndexVersion:
        attributes, asks = plain.pop("attributes"), plain.pop("asks", None)
        plain["attributes"] = None if attributes is None else tuple(attributes)
        plain["documents"] = tuple(map(tuple, plain.pop("documents", ())))
        validated = plain.pop("validated", None)
        plain["validated"] = None if validated is None else tuple(validated)
        plain["asks"] = None if asks is None else tuple((tuple(path), kind) for path, kind in asks)
        return IndexVersion(self.root, **plain, plugged=self._plugged)


def _reject_unreachable(place: Path) -> None:
    """Raise CapabilityError if workers could not load the engine in a folder."""
    algorithm = saved_algorithms(place).without_url
    if algorithm is not None:
        message = f"`{algorithm}` has its subscriptions in a database with a URL"
        message += ", which is not sent to workers because it may contain a password"
        raise CapabilityError(message, hint='with database="duckdb" or "sqlite" each worker has a database of its own')


def _saved(engine: Engine, source: str | None, place: Path) -> dict[str, Any]:
    """Save an engine to a local folder, and describe it."""
    engine.internals.export(place)
    _reject_unreachable(place)
    attributes, asks, validated = engine.attributes(), engine.internals.used_columns(), engine.internals.validated()
    return {
        "fingerprint": fingerprint_of(place),
        "subscriptions": len(engine),
        "nbytes": sum(each.stat().st_size for each in place.iterdir() if each.suffix == ".segment"),
        "attributes": None if attributes is None else sorted(attributes),
        "favourite": engine.internals.clustering_attribute(),
        "built": round(time.time(), 3),
        "source": source,
        "documents": engine.internals.document_paths(),
        "validated": None if validated is None or validated == attributes else sorted(validated),
        "asks": None if asks is None else [(path, None if kind is None else str(kind)) for path, kind in asks],
    }
