"""The folder of the demo: its files, and those written before the pipeline runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from harken.errors import SourceError

_MARK = ".harken-demo"
_PIPELINE = '''\
# The pipeline of the demo. Edit it, or any of the files beside it, and run it again: harken run {folder}/pipeline.toml
name = "auction-day"
schema = "auction.toml"

[source]
format = "json"
path = "events"
columns = """{columns}"""
event_id = "id"
event_time = "at"
deduplicate = "1 day"

[[enrich]]
path = "sellers.parquet"
on = ["seller"]
columns = ["country", "rating", "since", "business"]
prefix = "seller_"

[subscriptions]
path = "subscriptions.parquet"
keep = "index"

[match]
columns = ["kind", "item", "category", "price"]

[[sink]]
format = "parquet"
path = "notifications"

[dead_letters]
path = "dead-letters"

[metrics]
json = "metrics.jsonl"
'''


class DemoFolder:
    """The demo's own folder, and the files in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pipeline = path / "pipeline.toml"
        self.schema = path / "auction.toml"
        self.events = path / "events"
        self.subscriptions = path / "subscriptions.parquet"
        self.sellers = path / "sellers.parquet"
        self.index = path / "index"
        self.notifications = path / "notifications"
        self.dead_letters = path / "dead-letters"
        self.metrics = path / "metrics.jsonl"
        self.spark_log = path / "spark-log"
        self.report = path / "report.html"


def prepare(path: Path) -> DemoFolder:
    """Make an empty folder. A folder of an earlier demo is emptied. Raises SourceError if it has other files."""
    try:
        if path.exists() and not path.is_dir():
            raise SourceError(f"{path} is not a folder")
        if path.is_dir() and any(path.iterdir()):
            if not (path / _MARK).exists():
                hint = "name another folder: --folder NAME"
                raise SourceError(f"{path} has files that the demo did not make, and is left alone", hint=hint)
            _empty(path)
        path.mkdir(parents=True, exist_ok=True)
        (path / _MARK).write_text("`harken demo` made this folder, and may empty it.\n", "utf-8")
        folder = DemoFolder(path.absolute())
        for each in (folder.events, folder.spark_log):
            each.mkdir()
    except OSError as error:
        raise SourceError(f"{path} cannot be written to: {error.strerror or error}") from error
    return folder


def write_market(folder: DemoFolder, events: int, subscriptions: int, seed: int) -> None:
    """Write everything that the pipeline reads. Raises SourceError."""
    import pyarrow as pa
    from pyarrow import parquet

    from harken_lab.workloads.auction.day import COLUMNS, SCHEMA_FILE, event_lines, sellers, text_of, wishes

    try:
        folder.schema.write_text(text_of(SCHEMA_FILE), "utf-8")
        folder.pipeline.write_text(_PIPELINE.format(folder=folder.path.name, columns=COLUMNS), "utf-8")
        parquet.write_table(sellers(seed), folder.sellers)
        for hour, lines in groupby(event_lines(events, seed), key=lambda pair: pair[0]):
            _write_lines(folder.events / f"hour-{hour:02d}.jsonl", (line for _, line in lines))
        drawn = list(wishes(subscriptions, seed, events))
        columns = {name: [getattr(wish, name) for wish in drawn] for name in ("id", "owner", "kind", "where")}
        parquet.write_table(pa.table(columns), folder.subscriptions)
    except OSError as error:
        raise SourceError(f"{folder.path} cannot be written to: {error.strerror or error}") from error


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def _empty(path: Path) -> None:
    for each in path.iterdir():
        if each.name == _MARK:
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
