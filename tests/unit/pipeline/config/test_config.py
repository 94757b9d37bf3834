"""A pipeline's configuration: what is read, and that whatever is wrong is told at its own line."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.errors import ConfigError, SourceError
from harken.pipeline.config import MAX_CONFIG_BYTES, Config, check_config, load_config
from harken.pipeline.config.config_tables import TableOf, TablesOf, keys_of
from harken.pipeline.config.value_types import seconds_of
from harken.schema import load_schema

PAGE = Path(__file__).parents[4] / "docs" / "pipeline.md"
ENVIRONMENT = {"DB_PASSWORD": "hunter2", "REGION": "eu", "EMPTY": ""}

BATCH = """\
name = "auction-alerts"
mode = "batch"
schema = "auction.toml"

[source]
format = "json"
path = "events/"
columns = "id STRING, price DOUBLE, seller STRING, at TIMESTAMP"
event_id = "id"
event_time = "at"
deduplicate = "1 hour"
options = { multiLine = true, "sasl.token" = "${DB_PASSWORD}", samplingRatio = 0.5 }

[[enrich]]
path = "sellers.parquet"
format = "parquet"
on = ["seller"]
how = "inner"
columns = ["rating", "country"]
prefix = "seller_"

[subscriptions]
path = "subscriptions.jsonl"
keep = "kept/"
on_fault = "skip"
owner = "customer"

[match]
strategy = "shard"
shards = 4
on_mismatch = "fail"
operators = ["harken.operators.box:matches"]
order = "suborder"
columns = ["price", "seller_rating"]

[[sink]]
name = "alerts"
format = "parquet"
path = "out/"

[sink.options]
compression = "zstd"

[dead_letters]
path = "dead/"
format = "parquet"

[metrics]
json = "metrics.jsonl"
prometheus = "metrics.prom"

[spark]
master = "local[*]"

[spark.config]
"spark.sql.shuffle.partitions" = 8
"""

FILES = """\
mode = "stream"
checkpoint = "state/"
trigger = "available-now"

[source]
format = "csv"
path = "events/"
columns = "id STRING, at TIMESTAMP"
event_id = "id"
event_time = "at"
max_files_per_trigger = 100
late_after = "10 minutes"
late = "reject"

[[enrich]]
table = "catalog.sellers"
on = ["id"]

[subscriptions]
index = "index/"

[[sink]]
format = "json"
path = "out/"

[[sink]]
format = "console"
limit = 5
"""

KAFKA = """\
mode = "stream"
checkpoint = "s3://bucket/state/"
schema = "auction.toml"

[source]
format = "kafka"
servers = "127.0.0.1:9092"
topic = "events"
starting_offsets = "latest"
max_offsets_per_trigger = 100000

[subscriptions]
table = "catalog.rules"

[[sink]]
format = "kafka"
servers = "127.0.0.1:9092,127.0.0.1:9093"
topic = "notifications"

[[sink]]
format = "jdbc"
url = "jdbc:postgresql://127.0.0.1/alerts"
table = "public.notifications"
user = "harken"
password = "${DB_PASSWORD}"
driver = "org.postgresql.Driver"
"""

RATE = """\
mode = "stream"
checkpoint = "state/"
[source]
format = "rate"
rows_per_second = 100
[subscriptions]
path = "subscriptions.jsonl"
[[sink]]
format = "console"
"""

SOCKET = """\
mode = "stream"
checkpoint = "state/"
[source]
format = "socket"
host = "localhost"
port = 9999
columns = "id STRING"
event_id = "id"
[subscriptions]
path = "subscriptions.jsonl"
[[sink]]
format = "console"
"""

XML = """\
[source]
format = "xml"
path = "events/"
row_tag = "dataset"
event_time = "modified"

[[enrich]]
path = "sellers.parquet"
on = ["seller"]
document_key = "/dataset/seller/@id"
columns = ["country"]
element = "of_seller"

[subscriptions]
path = "subscriptions.jsonl"

[match]
columns = ["path", "position", "modified"]

[[sink]]
format = "json"
path = "out/"
"""

STORE = """\
mode = "stream"
checkpoint = "state/"
[source]
format = "rate"
[subscriptions]
store = "postgresql://harken:${DB_PASSWORD}@db.example.org/harken"
[[sink]]
format = "store"
store = "postgresql://harken:${DB_PASSWORD}@db.example.org/harken"
"""

EXAMPLES = {"batch": BATCH, "files": FILES, "kafka": KAFKA, "rate": RATE, "socket": SOCKET, "xml": XML, "store": STORE}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the examples read."""
    made = tmp_path_factory.mktemp("pipeline")
    (made / "events").mkdir()
    (made / "events" / "one.json").touch()
    (made / "index").mkdir()
    (made / "sellers.parquet").touch()
    (made / "subscriptions.jsonl").touch()
    (made / "harken.db").touch()
    (made / "auction.toml").write_text('[attributes]\nid = "string"\nprice = "float"\n')
    return made


def checked(folder: Path, text: str) -> tuple[Config | None, list[ConfigError]]:
    return check_config(text, str(folder / "my-pipeline.toml"), ENVIRONMENT)


def good(folder: Path, text: str) -> Config:
    config, faults = checked(folder, text)
    assert [str(fault) for fault in faults] == []
    assert config is not None
    return config


def bad(folder: Path, text: str) -> list[tuple[int, str]]:
    config, faults = checked(folder, text)
    assert config is None
    return [(fault.place.line if fault.place else 0, fault.message) for fault in faults]


def with_line(text: str, old: str, new: str) -> str:
    """The text with one line of it, which is there once, replaced."""
    lines = text.split("\n")
    assert lines.count(old) == 1, old
    return "\n".join(new if line == old else line for line in lines)


def line_of(text: str, line: str) -> int:
    return text.split("\n").index(line) + 1


# What is read


def test_everything_is_read(folder: Path) -> None:
    config = good(folder, BATCH)
    assert (config.name, config.mode, config.is_stream) == ("auction-alerts", "batch", False)
    assert config.schema == str(folder / "auction.toml")
    assert config.load_schema() == load_schema(folder / "auction.toml")
    assert config.source.path == str(folder / "events")
    assert config.source.columns == "id STRING, price DOUBLE, seller STRING, at TIMESTAMP"
    assert (config.source.event_id, config.source.event_time) == ("id", "at")
    assert config.source.options == {"multiLine": "true", "sasl.token": "hunter2", "samplingRatio": "0.5"}
    (enrichment,) = config.enrichments
    assert (enrichment.path, enrichment.format) == (str(folder / "sellers.parquet"), "parquet")
    assert (enrichment.on, enrichment.how) == (("seller",), "inner")
    assert (enrichment.columns, enrichment.prefix) == (("rating", "country"), "seller_")
    assert config.subscriptions.path == str(folder / "subscriptions.jsonl")
    assert config.subscriptions.keep == str(folder / "kept")
    assert (config.subscriptions.on_fault, config.subscriptions.owner) == ("skip", "customer")
    assert (config.match.strategy, config.match.shards, config.match.columns) == (
        "shard",
        4,
        ("price", "seller_rating"),
    )
    (sink,) = config.sinks
    assert (sink.name, sink.format, sink.path) == ("alerts", "parquet", str(folder / "out"))
    assert sink.options == {"compression": "zstd"}
    assert config.dead_letters is not None
    assert (config.dead_letters.path, config.dead_letters.format) == (str(folder / "dead"), "parquet")
    assert config.metrics.json == str(folder / "metrics.jsonl")
    assert config.metrics.prometheus == str(folder / "metrics.prom")
    assert (config.spark.master, config.spark.config) == ("local[*]", {"spark.sql.shuffle.partitions": "8"})


def test_what_is_left_out_has_defaults(folder: Path) -> None:
    config = good(folder, RATE)
    assert (config.name, config.trigger, config.schema, config.enrichments) == ("my-pipeline", "10 seconds", None, ())
    assert config.load_schema() is None
    assert (config.match.strategy, config.match.shards, config.match.columns) == ("auto", None, ())
    assert (config.subscriptions.on_fault, config.subscriptions.owner) == ("reject", "owner")
    assert config.subscriptions.keep == str(folder / "state" / "index")
    assert config.dead_letters is not None
    assert (config.dead_letters.path, config.dead_letters.format) == (str(folder / "state" / "dead-letters"), "json")
    assert config.sinks[0].limit == 20
    assert (config.metrics.json, config.spark.master) == (None, None)


def test_a_stream_keeps_its_things_below_its_checkpoint_wherever_that_is(folder: Path) -> None:
    config = good(folder, KAFKA)
    assert config.checkpoint == "s3://bucket/state/"
    assert config.subscriptions.keep == "s3://bucket/state/index"
    assert config.dead_letters is not None
    assert config.dead_letters.path == "s3://bucket/state/dead-letters"


def test_an_index_that_is_given_is_kept_where_it_is(folder: Path) -> None:
    assert good(folder, FILES).subscriptions.keep is None


SMALL = """\
[source]
format = "json"
path = "events"
event_id = "id"
[subscriptions]
path = "subscriptions.jsonl"
[[sink]]
"""


def test_dead_letters_of_a_batch_lie_beside_the_first_sink_with_a_path(folder: Path) -> None:
    config = good(folder, SMALL + "format = 'console'\n[[sink]]\nformat = 'json'\npath = 'out/'\n")
    assert config.dead_letters is not None
    assert config.dead_letters.path == str(folder / "out-dead-letters")
    assert config.subscriptions.keep is None


def test_a_batch_without_a_place_for_dead_letters_has_none(folder: Path) -> None:
    text = SMALL + "format = 'console'\n"
    assert good(folder, text).dead_letters is None
    assert bad(folder, text + "[dead_letters]\nformat = 'json'\n") == [(9, "[dead_letters] needs `path`")]


def test_the_format_of_dead_letters_alone(folder: Path) -> None:
    config = good(folder, RATE + "[dead_letters]\nformat = 'parquet'\n")
    assert config.dead_letters is not None
    assert (config.dead_letters.format, config.dead_letters.path) == ("parquet", str(folder / "state/dead-letters"))


def test_sinks_without_names_are_named_by_their_formats(folder: Path) -> None:
    text = RATE + "".join(
        f"[[sink]]\n{name}format = 'json'\npath = 'out-{number}'\n"
        for number, name in enumerate(["", "name = 'json'\n", "", "name = 'json-3'\n", ""])
    )
    assert [sink.name for sink in good(folder, text).sinks] == [
        "console",
        "json-2",
        "json",
        "json-4",
        "json-3",
        "json-5",
    ]


@pytest.mark.parametrize(
    ("path", "found"), [("a.parquet", "parquet"), ("a.jsonl", "json"), ("a.NDJSON", "json"), ("a.csv.gz", "csv")]
)
def test_the_format_of_a_reference_table_is_told_by_its_ending(tmp_path: Path, path: str, found: str) -> None:
    (tmp_path / path).touch()
    (tmp_path / "subscriptions.jsonl").touch()
    config = good(tmp_path, RATE + f"[[enrich]]\npath = '{path}'\non = ['value']\n")
    assert config.enrichments[0].format == found


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("out", "{folder}/out"),
        ("./out/../there/", "{folder}/there"),
        ("../out", "{parent}/out"),
        ("/absolute/out", "/absolute/out"),
        ("s3://bucket/out/", "s3://bucket/out/"),
        ("hdfs:///out", "hdfs:///out"),
        ("file:/absolute/out", "file:/absolute/out"),
        ("${REGION}/out", "{folder}/eu/out"),
        ("$${REGION}/out", "{folder}/${REGION}/out"),
        ("$REGION}{", "{folder}/$REGION}{"),
        ("s3://${REGION}-bucket${EMPTY}/$${x}", "s3://eu-bucket/${x}"),
    ],
)
def test_paths_and_variables(folder: Path, written: str, read: str) -> None:
    config = good(folder, RATE + f"[[sink]]\nformat = 'json'\npath = '{written}'\n")
    expected = read.replace("{folder}", str(folder)).replace("{parent}", str(folder.parent))
    assert config.sinks[1].path == expected


def test_paths_are_relative_to_the_file_wherever_one_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "here.toml").write_text(RATE)
    monkeypatch.chdir(folder.parent)
    config = load_config(f"{folder.name}/here.toml")
    assert (config.name, config.checkpoint) == ("here", str(folder / "state"))


@pytest.mark.parametrize(
    ("written", "kept"),
    [("1 second", "1 second"), ("10  Seconds", "10 seconds"), ("0 seconds", "0 seconds"), ("500 millisecond", None)],
)
def test_intervals_are_kept_as_spark_writes_them(folder: Path, written: str, kept: str | None) -> None:
    assert good(folder, f"trigger = '{written}'\n{RATE}").trigger == (kept or "500 milliseconds")


def test_seconds() -> None:
    assert [seconds_of(text) for text in ("500 milliseconds", "1 second", "2 minutes", "1 week")] == [
        0.5,
        1,
        120,
        604_800,
    ]


# Every key, misspelt and with a value of a wrong type: driven by the dataclasses, so that none can be forgotten.


@dataclass(frozen=True)
class Occurrence:
    """A key of a table in one of the examples."""

    example: str
    line: int
    table: tuple[str, ...]
    key: str
    is_header: bool

    @property
    def path(self) -> tuple[str, ...]:
        return (*self.table, self.key)


def occurrences() -> Iterator[Occurrence]:
    for example, text in EXAMPLES.items():
        table: tuple[str, ...] = ()
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("["):
                table = tuple(line.strip("[]").split("."))
                yield Occurrence(example, number, table[:-1], table[-1], True)
            elif line and table not in (("sink", "options"), ("spark", "config")):
                yield Occurrence(example, number, table, line.split(" = ")[0], False)


def all_keys(section: type = Config, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, (_, key) in keys_of(section).items():
        yield (*above, name)
        if isinstance(key.type, (TableOf, TablesOf)):
            yield from all_keys(key.type.section, (*above, name))


def siblings(table: tuple[str, ...]) -> set[str]:
    return {keys[-1] for keys in all_keys() if keys[:-1] == table}


OCCURRENCES = list(occurrences())


def test_the_examples_are_right_and_have_every_key(folder: Path) -> None:
    for text in EXAMPLES.values():
        good(folder, text)
    assert {each.path for each in OCCURRENCES} == set(all_keys())


def named(each: Occurrence) -> str:
    return f"{each.example}-{'.'.join(each.path)}"


def misspellings(word: str) -> list[str]:
    dropped = [word[:place] + word[place + 1 :] for place in range(len(word))]
    doubled = [word[:place] + word[place] + word[place:] for place in range(len(word))]
    swapped = [word[:p] + word[p + 1] + word[p] + word[p + 2 :] for p in range(len(word) - 1)]
    return [each for each in {*dropped, *doubled, *swapped} if each]


@pytest.mark.parametrize("which", OCCURRENCES, ids=named)
def test_a_misspelt_key_is_told_at_its_line(folder: Path, which: Occurrence) -> None:
    lines = EXAMPLES[which.example].split("\n")
    known = siblings(which.table)
    for wrong in [each for each in misspellings(which.key) if each not in known]:
        changed = list(lines)
        changed[which.line - 1] = re.sub(rf"\b{which.key}\b", wrong, lines[which.line - 1], count=1)
        faults = bad(folder, "\n".join(changed))
        assert [line for line, message in faults if f"unknown key `{wrong}`" in message] == [which.line]
        if get_close_matches(wrong, known, n=1) == [which.key] and not which.is_header:
            assert {line for line, _ in faults} == {which.line}, "one slip, and others are told of it elsewhere"


VALUES = {
    "str": '"text"',
    "int": "5",
    "float": "1.5",
    "bool": "true",
    "date": "1979-05-27",
    "list": "[1]",
    "dict": "{ a = 1 }",
}


@pytest.mark.parametrize("which", OCCURRENCES, ids=named)
def test_a_value_of_a_wrong_type_is_told_at_its_line(folder: Path, which: Occurrence) -> None:
    text = EXAMPLES[which.example]
    if which.is_header:
        right: object = {}
    else:
        right = tomllib.loads(text.split("\n")[which.line - 1])[which.key]
    for name, wrong in VALUES.items():
        if name == type(right).__name__:
            continue
        changed, line = replaced(text, which, wrong)
        faults = bad(folder, changed)
        assert {line for line, _ in faults} == {line}, (wrong, faults)
        assert f"`{which.key}` is " in faults[0][1]


def replaced(text: str, which: Occurrence, value: str) -> tuple[str, int]:
    """The text with another value for a key, and the line of it. In place of tables it stands where their keys may."""
    lines = text.split("\n")
    assignment = f"{which.key} = {value}"
    if not which.is_header:
        lines[which.line - 1] = assignment
        return "\n".join(lines), which.line
    kept, inside = [], False
    for line in lines:
        if line.startswith("["):
            header = tuple(line.strip("[]").split("."))
            inside = header[: len(which.path)] == which.path
        if not inside:
            kept.append(line)
    above = next((number for number, line in enumerate(kept, 1) if line.strip("[]") == ".".join(which.table)), 0)
    above = above if which.table else 0
    kept.insert(above, assignment)
    return "\n".join(kept), above + 1


# Single faults


@pytest.mark.parametrize(
    ("example", "old", "new", "message"),
    [
        ("batch", 'mode = "batch"', 'mode = "bacth"', "`mode` is one of batch, stream, not 'bacth'"),
        ("batch", 'name = "auction-alerts"', 'name = " "', "`name` is a text, not an empty text"),
        ("batch", 'path = "events/"', 'path = "event/"', "there is no file or folder {folder}/event"),
        ("batch", 'path = "events/"', 'path = "events/*.csv"', "there is no file or folder {folder}/events/*.csv"),
        ("batch", 'path = "events/"', 'path = "evnts/*/[a-z]*"', "there is no folder {folder}/evnts"),
        ("batch", 'path = "events/"', 'path = "nul\\u0000"', "it has a null character"),
        ("batch", 'path = "events/"', 'path = "file:events"', "what follows file: is not absolute"),
        ("batch", 'path = "events/"', 'path = "file:/no/where"', "there is no file or folder /no/where"),
        ("batch", 'event_id = "id"', 'event_id = "seller.id"', "not a path into one"),
        ("batch", 'event_id = "id"', 'event_id = "idd"', "events have no column `idd`"),
        ("batch", 'event_time = "at"', 'event_time = "price"', "has the type DOUBLE, which is no time"),
        ("batch", 'deduplicate = "1 hour"', 'deduplicate = "1 huor"', "a number and a unit of time, not '1 huor'"),
        ("batch", 'deduplicate = "1 hour"', 'deduplicate = "0 hours"', "from 1 hour to 100 years"),
        ("batch", 'deduplicate = "1 hour"', 'deduplicate = "999999 weeks"', "from 1 week to 100 years"),
        ("batch", 'on = ["seller"]', 'on = ["seler"]', "events have no column `seler`"),
        ("batch", 'on = ["seller"]', "on = []", "`on` is a list of names of columns, not an empty list"),
        ("batch", 'on = ["seller"]', 'on = ["seller", "seller"]', "`on` has column `seller` twice"),
        (
            "batch",
            'columns = ["rating", "country"]',
            'columns = ["seller", "rating"]',
            "column `seller` is in `on`",
        ),
        ("batch", 'prefix = "seller_"', 'prefix = "a.b"', "`prefix` is the beginning of names of columns"),
        ("batch", 'path = "sellers.parquet"', 'path = "seller.parquet"', "there is no file or folder"),
        ("batch", 'path = "subscriptions.jsonl"', 'path = "subscription.jsonl"', "there is no file or folder"),
        ("batch", 'path = "subscriptions.jsonl"', 'path = "auction.toml"', "does not tell its format"),
        ("batch", "shards = 4", "shards = 0", "`shards` is a whole number from 1 to 65,536, not 0"),
        (
            "batch",
            'on_mismatch = "fail"',
            'on_mismatch = "fial"',
            "`on_mismatch` is one of fail, warn, ignore, not 'fial'",
        ),
        (
            "batch",
            'strategy = "shard"',
            'strategy = "replicate"',
            "`shards` belongs to strategy shard, not to replicate",
        ),
        ("batch", 'columns = ["price", "seller_rating"]', 'columns = ["prize"]', "events have no column `prize`"),
        (
            "batch",
            'columns = ["price", "seller_rating"]',
            'columns = ["owner"]',
            "every notification already has a column `owner`",
        ),
        ("batch", 'name = "alerts"', 'name = "my alerts"', "`name` is a name, not 'my alerts'"),
        ("batch", 'prometheus = "metrics.prom"', 'prometheus = "s3://b/m"', "`prometheus` is a path on this machine"),
        ("batch", 'master = "local[*]"', 'master = "loacl[*]"', "`master` is the address of a cluster"),
        ("batch", '"spark.sql.shuffle.partitions" = 8', "spark.sql.shuffle.partitions = 8", "`spark` is a table"),
        ("batch", '"spark.sql.shuffle.partitions" = 8', '"sql.x" = 8', "`sql.x` does not begin with `spark.`"),
        ("batch", '"spark.sql.shuffle.partitions" = 8', '"spark.master" = "x"', "`spark.master` is set by the key"),
        ("batch", 'compression = "zstd"', "compression = [1]", "`compression` is a string, a number or a boolean"),
        ("batch", 'compression = "zstd"', 'PATH = "x"', "`PATH` is set by the key `path`"),
        ("files", 'path = "events/"', 'path = "events/one.json"', "`path` is not a folder"),
        ("files", 'path = "events/"', 'path = "evnts/"', "there is no folder {folder}/evnts"),
        ("files", 'index = "index/"', 'index = "inedx/"', "there is no folder {folder}/inedx"),
        ("files", 'index = "index/"', 'index = "subscriptions.jsonl"', "`index` is not a folder"),
        ("files", 'event_time = "at"', "", "`late_after` needs `event_time`"),
        ("files", 'late_after = "10 minutes"', "", "`late` needs `late_after`"),
        ("files", 'trigger = "available-now"', 'trigger = "available_now"', "`trigger` is 'available-now' or a number"),
        ("files", 'checkpoint = "state/"', "", "the configuration needs `checkpoint`"),
        ("kafka", 'servers = "127.0.0.1:9092"', 'servers = "localhost"', "`servers` is the addresses of servers"),
        ("kafka", 'topic = "events"', 'topic = "my events"', "`topic` is the name of a topic"),
        ("kafka", 'topic = "events"', "", "[source] needs `topic`"),
        ("kafka", 'schema = "auction.toml"', "", "[source] needs `columns`"),
        ("kafka", 'schema = "auction.toml"', 'schema = "action.toml"', "cannot read the schema file"),
        ("kafka", 'table = "catalog.rules"', 'table = "catalog rules"', "`table` is the name of a table"),
        ("kafka", 'table = "catalog.rules"', "", "[subscriptions] needs one of path, index, table and store"),
        ("kafka", 'table = "public.notifications"', 'table = "x; DROP"', "`table` is the plain name of a table"),
        ("kafka", 'url = "jdbc:postgresql://127.0.0.1/alerts"', 'url = "postgresql://x"', "begins with jdbc:"),
        (
            "kafka",
            'url = "jdbc:postgresql://127.0.0.1/alerts"',
            'url = "jdbc:postgresql://h/d?password=x"',
            "`url` has a password",
        ),
        ("kafka", 'password = "${DB_PASSWORD}"', 'password = "${DB_PASWORD}"', "has no variable `DB_PASWORD`"),
        ("kafka", 'password = "${DB_PASSWORD}"', 'password = "${DB PASSWORD}"', "`${` is not followed by a name"),
        ("xml", 'row_tag = "dataset"', "", "events have no column `position`"),
        ("xml", 'row_tag = "dataset"', 'row_tag = "<dataset>"', "`row_tag` is the name of an element"),
        ("xml", 'row_tag = "dataset"', 'row_tag = "a"\ncolumns = "id INT"', "`columns` belongs to format json, csv"),
        (
            "xml",
            'event_time = "modified"',
            'event_time = "path"',
            "column `path` has the type STRING, which is no time",
        ),
        ("xml", 'event_time = "modified"', 'event_id = "id"', "events have no column `id`"),
        ("xml", 'document_key = "/dataset/seller/@id"', 'document_key = "//a"', "'//a' is no plain path to a key"),
        ("xml", 'document_key = "/dataset/seller/@id"', 'document_key = "a"', "`document_key` is a path such as"),
        ("files", 'on = ["id"]', 'on = ["id"]\ndocument_key = "/a"', "events have no column `document`"),
        ("batch", 'prefix = "seller_"', 'prefix = "seller_"\nelement = "a"', "`element` needs `document_key`"),
        ("xml", 'on = ["seller"]', 'on = ["seller", "country"]', "a document has one key"),
        ("xml", 'columns = ["country"]', 'columns = ["a b"]', "'a b' is no name of an XML element"),
        ("xml", 'element = "of_seller"', 'prefix = "seller_"', "`prefix` is for columns"),
        ("files", 'format = "csv"', 'format = "csv"\nrow_tag = "a"', "`row_tag` belongs to format xml, not to csv"),
        ("rate", 'format = "rate"', 'format = "rate"\nport = 5', "`port` belongs to format socket, not to rate"),
        ("rate", 'format = "rate"', 'format = "rate"\ncolumns = "id INT"', "`columns` belongs to format json, csv"),
        ("rate", 'format = "rate"', 'format = "rate"\nevent_id = "id"', "events have no column `id`"),
        ("socket", "port = 9999", "port = 99999", "`port` is a whole number from 1 to 65,535, not 99999"),
        ("socket", 'event_id = "id"', "", "[source] needs `event_id`"),
        ("rate", 'path = "subscriptions.jsonl"', 'store = "harkn.db"', "there is no file or folder {folder}/harkn.db"),
        ("rate", 'path = "subscriptions.jsonl"', 'store = "events"', "`store` is a folder: {folder}/events"),
        ("rate", 'path = "subscriptions.jsonl"', 'store = "mysql://u:pw@h/d"', "`store` is a path, or a URL such as"),
        ("rate", 'path = "subscriptions.jsonl"', 'store = "file:x.db"', "what follows file: is not absolute"),
        ("rate", 'format = "console"', 'format = "store"\nstore = "harkn.db"', "there is no file or folder"),
        ("rate", 'format = "console"', 'format = "console"\nstore = "harken.db"', "`store` belongs to format store"),
    ],
)
def test_a_fault(folder: Path, example: str, old: str, new: str, message: str) -> None:
    text = with_line(EXAMPLES[example], old, new)
    ((line, found),) = bad(folder, text)
    assert message.replace("{folder}", str(folder)) in found
    if new and "belongs to" not in message:
        assert line == line_of(text, new.rsplit("\n", 1)[-1])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the configuration needs `source`"),
        (BATCH.replace('mode = "batch"', 'mode = "batch"\ncheckpoint = "x"'), 3, "`checkpoint` belongs to mode stream"),
        (BATCH.replace('mode = "batch"', 'mode = "batch"\ntrigger = "1 day"'), 3, "`trigger` belongs to mode stream"),
        (
            SMALL.replace("event_id", "late = 'match'\nevent_id") + "format = 'console'",
            4,
            "`late` belongs to mode stream",
        ),
        (RATE.replace('mode = "stream"\ncheckpoint = "state/"\n', ""), 2, "a source of format rate has no end"),
        (SMALL + "format = 'console'\nlimit = 0", 9, "`limit` is a whole number from 1, not 0"),
        (SMALL + "format = 'console'\npath = 'out'", 9, "`path` belongs to format parquet and json, not to console"),
        (SMALL + "format = 'console'\n[sink.options]\ncheckpointLocation = 'x'", 10, "set by the key `checkpoint`"),
        (SMALL + "format = 'console'\n[[sink]]", 9, "[[sink]] number 2 needs `format`"),
        (SMALL.replace("[[sink]]", "[sink]") + "format = 'console'", 7, "`sink` is not a list of tables"),
        (SMALL.replace("[source]", "[[source]]") + "format = 'console'", 1, "`source` is not a table"),
        (RATE + "[[enrich]]\npath = 'events'\non = ['value']", 11, "does not tell its format"),
        (RATE + "[[enrich]]\non = ['value']", 10, "[[enrich]] number 1 needs one of path and table"),
        (RATE + "[[enrich]]\npath = 'sellers.parquet'\ntable = 'x'\non = ['value']", 12, "has `path` already"),
        (RATE + "[[enrich]]\ntable = 'x'\nformat = 'csv'\non = ['value']", 12, "`format` belongs to `path`"),
        (RATE + "[[enrich]]\ntable = 'x'\non = ['value']\ncolumns = ['timestamp']", 13, "`timestamp` already"),
        (RATE.replace("[[sink]]", "index = 'index'\n[[sink]]"), 8, "has `path` already"),
        (FILES.replace('[[sink]]\nformat = "json"', "keep = 'x'\n[[sink]]\nformat = 'json'"), 22, "built already"),
        (
            FILES.replace('[[sink]]\nformat = "json"', "on_fault = 'skip'\n[[sink]]\nformat = 'json'"),
            22,
            "built already",
        ),
    ],
)
def test_a_fault_of_more_than_a_line(folder: Path, text: str, line: int, message: str) -> None:
    found = bad(folder, text)
    assert found[0][0] == line
    assert message in found[0][1]


def test_what_is_missing_is_told_with_how_to_write_it(folder: Path) -> None:
    _, faults = checked(folder, "")
    assert [fault.hint for fault in faults] == ["write [source]", "write [subscriptions]", "write [[sink]]"]


def test_a_batch_from_kafka_reads_what_is_there(folder: Path) -> None:
    text = KAFKA.replace('mode = "stream"\ncheckpoint = "s3://bucket/state/"', "").replace(
        "max_offsets_per_trigger", "# "
    )
    assert bad(folder, text) == [(8, "a batch that starts at the latest offsets reads nothing")]
    config = good(folder, text.replace('"latest"', '"earliest"').replace('schema = "auction.toml"', ""))
    assert (config.mode, config.source.starting_offsets) == ("batch", "earliest")


def test_columns_are_wrong_where_they_are_wrong(folder: Path) -> None:
    columns = 'columns = "id STRING, price DUBLE, seller STRNG, at TIMESTAMP"'
    text = with_line(BATCH, 'columns = "id STRING, price DOUBLE, seller STRING, at TIMESTAMP"', columns)
    _, faults = checked(folder, text)
    assert [(str(fault.place).split(", ", 1)[1], fault.hint) for fault in faults] == [
        (f"line 8, column {columns.index('DUBLE') + 1}", "did you mean `DOUBLE`?"),
        (f"line 8, column {columns.index('STRNG') + 1}", "did you mean `STRING`?"),
    ]


def test_faults_of_the_schema_are_told_too(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "wrong.toml").write_text("[attributes]\nprice = 'flaot'\nid = 'strng'\n")
    text = BATCH.replace('"auction.toml"', f'"{tmp_path}/wrong.toml"').replace('"batch"', '"bacth"')
    text = text.replace('master = "local[*]"', "master = 5")
    _, faults = checked(folder, text)
    places = [(Path(fault.place.source or "").name, fault.place.line) for fault in faults if fault.place]
    assert places == [
        ("my-pipeline.toml", 2),
        ("wrong.toml", 2),
        ("wrong.toml", 3),
        ("my-pipeline.toml", line_of(text, "master = 5")),
    ]
    assert faults[1].hint == "did you mean `float`?"


def test_a_schema_without_attributes_gives_no_columns(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty.toml").touch()
    text = KAFKA.replace('"auction.toml"', f'"{tmp_path}/empty.toml"')
    assert [message for _, message in bad(folder, text)] == [
        "[source] needs `columns`: a stream of kafka cannot infer them"
    ]


# Places that stand in each other's way


@pytest.mark.parametrize(
    ("sinks", "line", "message"),
    [
        (
            "format = 'json'\npath = 'a'\n[[sink]]\nformat = 'json'\npath = './b/../a/'",
            12,
            "both be written to {folder}/a",
        ),
        (
            "format = 'json'\npath = 'a'\n[[sink]]\nformat = 'json'\npath = 'file:{folder}/a'",
            12,
            "both be written to",
        ),
        ("format = 'json'\npath = 'a'\n[[sink]]\nformat = 'json'\npath = 'a/b'", 12, "into the folder of sink `json`"),
        ("format = 'json'\npath = 'a/b'\n[[sink]]\nformat = 'json'\npath = 'a'", 12, "around sink `json`"),
        ("format = 'json'\npath = 'events/out'", 9, "where the source is read"),
        ("format = 'json'\npath = 'events'", 9, "where the source is read"),
        ("format = 'json'\npath = '.'", 9, "around the source"),
        (
            "format = 'json'\npath = 's3://b/x'\n[[sink]]\nformat = 'json'\npath = 'S3://b/y/../x/'",
            12,
            "both be written to",
        ),
        ("format = 'json'\npath = 'a'\n[dead_letters]\npath = 'a/dead'", 11, "into the folder of sink `json`"),
        ("format = 'json'\npath = 'a'\n[dead_letters]\npath = 'a'", 11, "dead letters and sink `json`"),
        ("format = 'console'\n[dead_letters]\npath = 'events'", 10, "where the source is read"),
        ("format = 'json'\npath = 'a'\n[metrics]\njson = 'a/m.jsonl'", 11, "into the folder of sink `json`"),
        ("format = 'console'\n[metrics]\njson = 'events/m.jsonl'", 10, "where the source is read"),
        ("format = 'console'\n[metrics]\njson = 'm'\nprometheus = 'm'", 11, "both be written to"),
        (
            "format = 'console'\n[[sink]]\nformat = 'console'",
            10,
            "sink `console-2` and sink `console` have the same console",
        ),
        ("name = 'a'\nformat = 'console'\n[[sink]]\nname = 'a'\nformat = 'json'\npath = 'b'", 11, "have the name `a`"),
        (
            "format = 'json'\npath = 'a'\n[[sink]]\nformat = 'json'\npath = 'a-dead-letters'",
            12,
            "dead letters and sink",
        ),
    ],
)
def test_places_that_clash(folder: Path, sinks: str, line: int, message: str) -> None:
    faults = bad(folder, SMALL + sinks.replace("{folder}", str(folder)))
    assert message.replace("{folder}", str(folder)) in faults[0][1]
    assert {found for found, _ in faults} == {line}


def test_a_link_does_not_hide_a_clash(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "link").symlink_to(folder / "events")
    ((_, found),) = bad(folder, SMALL + f"format = 'json'\npath = '{tmp_path}/link/out'")
    assert "where the source is read" in found


@pytest.mark.parametrize(("path", "clash"), [("events/x", False), ("events/x.json", True), ("events/x.json/y", True)])
def test_a_glob_clashes_with_what_it_matches(folder: Path, path: str, clash: bool) -> None:
    text = SMALL.replace('path = "events"', 'path = "events/*.json"') + f"format = 'json'\npath = '{path}'"
    assert (checked(folder, text)[0] is None) == clash


def test_two_sinks_with_one_topic_or_table_and_a_circle(folder: Path) -> None:
    again = KAFKA.split("[[sink]]\n")
    text = "[[sink]]\n".join([*again[:2], *again[1:], again[2]])
    assert [message for _, message in bad(folder, text)] == [
        "sink `kafka-2` and sink `kafka` have the same topic",
        "sink `jdbc-2` and sink `jdbc` have the same jdbc",
    ]
    circle = KAFKA.replace("127.0.0.1:9092,127.0.0.1:9093", "127.0.0.1:9092").replace("notifications", "events", 1)
    assert [message for _, message in bad(folder, circle)] == ["sink `kafka` and the source have the same topic"]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("out/kept", "into the folder of sink `json`"),
        ("state", "both be written to"),
        ("subscriptions.jsonl", "is read"),
    ],
)
def test_kept_versions_have_a_place_of_their_own(folder: Path, keep: str, message: str) -> None:
    text = RATE.replace("[[sink]]", f"keep = '{keep}'\n[[sink]]\nformat = 'json'\npath = 'out'\n[[sink]]")
    ((_, found),) = bad(folder, text)
    assert message in found


def test_a_checkpoint_may_hold_everything_else(folder: Path) -> None:
    good(folder, RATE + "[[sink]]\nformat = 'json'\npath = 'state/out'\n[metrics]\njson = 'state/metrics.jsonl'\n")


# All of them together


BROKEN = """\
mode = "batch"
trigger = "1 second"
[source]
fromat = "json"
path = "nowhere"
event_id = 7
[subscriptions]
path = "${NOWHERE}"
[[sink]]
format = "parqet"
[[sink]]
format = "json"
pth = 5
"""


def test_every_fault_is_told_in_the_order_of_the_lines(folder: Path) -> None:
    _, faults = checked(folder, BROKEN)
    assert [(fault.place.line, fault.message) for fault in faults if fault.place] == [
        (2, "`trigger` belongs to mode stream, not to batch"),
        (4, "[source]: unknown key `fromat`"),
        (5, f"there is no file or folder {folder}/nowhere"),
        (6, "`event_id` is the name of a column, not 7"),
        (8, "the environment has no variable `NOWHERE`"),
        (10, "`format` is one of parquet, json, kafka, jdbc, store, console, not 'parqet'"),
        (13, "[[sink]] number 2: unknown key `pth`"),
        (13, "`path` is a path, or an address such as s3://bucket/folder, not 5"),
    ]
    assert all(fault.place and fault.place.source == str(folder / "my-pipeline.toml") for fault in faults)
    assert all(fault.excerpt for fault in faults)


def test_the_error_that_is_raised_stands_for_all(folder: Path) -> None:
    file = folder / "broken.toml"
    file.write_text(BROKEN)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    error = caught.value
    assert str(error).startswith(f"`trigger` belongs to mode stream, not to batch ({file}, line 2, column 1)\n")
    assert error.hint == "and 7 more faults"
    assert len(error.faults) == 8
    assert all(not fault.faults and str(fault) for fault in error.faults)
    assert [each["line"] for each in json.loads(json.dumps(error.to_dict()))["faults"]] == [2, 4, 5, 6, 8, 10, 13, 13]
    assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()


def test_what_is_not_toml(folder: Path) -> None:
    ((line, message),) = bad(folder, "mode = 'batch'\nname = \n")
    assert line == 2
    assert message.startswith("the configuration is not TOML")


def test_what_cannot_be_read_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes("größe".encode("latin-1"))
    (tmp_path / "big.toml").write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    for name, message in [
        ("none.toml", "No such file"),
        ("latin.toml", "not UTF-8"),
        ("big.toml", "more than 1,048,576"),
    ]:
        with pytest.raises(SourceError, match=message):
            load_config(tmp_path / name)


# Stores


def with_store(place: str, *more: str) -> str:
    return "\n".join([RATE.replace('path = "subscriptions.jsonl"', f'store = "{place}"').strip(), *more])


def test_a_store_is_a_path_or_a_url_and_that_of_a_sink_is_that_of_the_subscriptions(folder: Path) -> None:
    sink = "[[sink]]\nformat = 'store'"
    for written, expected in (
        ("harken.db", f"{folder}/harken.db"),
        (f"file:{folder}/harken.db", f"{folder}/harken.db"),
    ):
        config = good(folder, with_store(written, sink))
        assert (config.subscriptions.store, config.sinks[1].store) == (expected, expected)
        assert (config.sinks[1].name, config.subscriptions.keep) == ("store", f"{folder}/state/index")
    url = "postgresql://harken:hunter2@db.example.org/harken"
    config = good(folder, with_store(url.replace("hunter2", "${DB_PASSWORD}"), sink))
    assert config.subscriptions.store == config.sinks[1].store == url
    short = good(folder, with_store("postgres://db.example.org/harken"))
    assert short.subscriptions.store == "postgres://db.example.org/harken"
    apart = good(folder, RATE + "[[sink]]\nformat = 'store'\nstore = 'harken.db'\n")
    assert (apart.subscriptions.store, apart.sinks[1].store) == (None, f"{folder}/harken.db")


def test_a_sink_with_another_store_than_the_subscriptions_would_tell_nobody(folder: Path) -> None:
    (folder / "other.db").touch()
    text = with_store("harken.db", "[[sink]]", "format = 'store'", "store = 'other.db'")
    assert bad(folder, text) == [(12, "`store` is not that of [subscriptions], where the subscribers look")]
    good(folder, text.replace("other.db", "harken.db"))


def test_two_sinks_with_one_store_and_sinks_where_the_store_is(folder: Path) -> None:
    twice = with_store("harken.db", "[[sink]]", "format = 'store'", "[[sink]]", "format = 'store'")
    assert bad(folder, twice) == [(13, "sink `store-2` and sink `store` have the same store")]
    for path, message in ((".", "around the store"), ("harken.db", "where the store is read")):
        text = with_store("harken.db", "[[sink]]", "format = 'json'", f"path = '{path}'")
        assert any(message in found for _, found in bad(folder, text))


def test_a_sink_without_a_store_is_told_what_to_write(folder: Path) -> None:
    text = RATE.replace('"console"', '"store"')
    assert bad(folder, text) == [(8, "[[sink]] number 1 needs `store`")]
    _, (fault,) = checked(folder, text)
    assert fault.hint == "write store = …, or take the subscriptions from a store"


def test_an_index_and_a_store_exclude_each_other(folder: Path) -> None:
    text = with_store("harken.db").replace("[[sink]]", 'index = "index"\n[[sink]]')
    assert [message for _, message in bad(folder, text)] == [
        "[subscriptions] takes only one of path, index, table and store, and has `index` already"
    ]


# Secrets


def test_secrets_are_used_but_not_shown(folder: Path) -> None:
    text = (
        KAFKA + '[sink.options]\n"ssl.Keystore.Password" = "hunter2"\n"kafka.sasl.jaas.config" = "hunter2"\nfetch = 3\n'
    )
    for config in (good(folder, text), good(folder, BATCH)):
        told = repr(config) + repr(config.describe()) + str(config)
        assert "hunter2" not in told
        assert "***" in told
    jdbc = good(folder, text).sinks[1]
    assert jdbc.password == "hunter2"
    assert jdbc.options["kafka.sasl.jaas.config"] == "hunter2"
    assert "fetch=3" in dict(good(folder, text).describe())["sink jdbc"]


@pytest.mark.parametrize("line", ['password = "hunter2" x', 'password = ["hunter2"]', 'pasword = "hunter2"'])
def test_a_fault_does_not_show_a_secret(folder: Path, line: str) -> None:
    _, faults = checked(folder, with_line(KAFKA, 'password = "${DB_PASSWORD}"', line))
    assert faults
    assert "hunter2" not in "".join(str(fault) for fault in faults)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://harken:hunter2@h/d", "postgresql://harken:***@h/d"),
        ("postgresql://harken:hun@ter2@h:5432/d", "postgresql://harken:***@h:5432/d"),
        ("postgresql://harken:hun/ter2@h/d?x=1", "postgresql://harken:***@h/d?x=1"),
        ("postgresql://:hunter2@h/d", "postgresql://:***@h/d"),
        (
            "postgresql://h/d?user=x&password=hunter2&sslmode=require",
            "postgresql://h/d?user=x&password=***&sslmode=require",
        ),
        ("postgresql://h/d?sslpassword=hunter2", "postgresql://h/d?sslpassword=***"),
        ("postgresql://harken@h/d", "postgresql://harken@h/d"),
        ("postgresql://h:5432/d", "postgresql://h:5432/d"),
    ],
)
def test_a_store_is_shown_without_its_password(folder: Path, url: str, expected: str) -> None:
    config = good(folder, with_store(url, "[[sink]]", "format = 'store'"))
    assert config.subscriptions.store == url
    told = dict(config.describe())
    assert told["subscriptions"] == f"store {expected}; a fault rejects the change"
    assert told["sink store"] == f"store, {expected}"
    assert "hunter2" not in repr(config) + str(config) + repr(replace(config.sinks[1], name="x"))


@pytest.mark.parametrize(
    "line",
    [
        'store = "mysql://harken:hunter2@h/d"',
        'stor = "postgresql://harken:hunter2@h/d"',
        'store = "postgresql://harken:hunter2@h/d" x',
        'store = ["postgresql://harken:hunter2@h/d"]',
        'store = "postgresql://harken:hunter2${NOWHERE}@h/d"',
        'path = "postgresql://harken:hunter2@h/d.jsonl"\nstore = "harken.db"',
    ],
)
def test_a_fault_does_not_show_the_password_of_a_store(folder: Path, line: str) -> None:
    _, faults = checked(folder, RATE.replace('path = "subscriptions.jsonl"', line))
    assert faults
    assert "hunter2" not in "".join(str(fault) for fault in faults)


# In words


def test_description_of_a_batch(folder: Path) -> None:
    told = dict(good(folder, BATCH).describe())
    assert told["mode"] == "batch"
    assert told["source"] == f"json, {folder}/events"
    assert told["source options"] == "multiLine=true, sasl.token=***, samplingRatio=0.5"
    assert told["enrich"] == f"parquet, {folder}/sellers.parquet: inner join on seller for rating, country as seller_…"
    assert told["subscriptions"] == f"{folder}/subscriptions.jsonl; faulty ones are left out"
    assert told["strategy"] == "shard in 4 shards"
    assert told["sink alerts"] == f"parquet, {folder}/out (compression=zstd)"
    assert told["dead letters"] == f"parquet, {folder}/dead"
    assert told["Spark's settings"] == "spark.sql.shuffle.partitions=8"


def test_description_of_streams(folder: Path) -> None:
    files, kafka = dict(good(folder, FILES).describe()), dict(good(folder, KAFKA).describe())
    rate, socket = dict(good(folder, RATE).describe()), dict(good(folder, SOCKET).describe())
    assert (files["mode"], kafka["mode"]) == ("stream, until the source is used up", "stream, every 10 seconds")
    assert files["late events"] == "after 10 minutes, rejected"
    assert kafka["source"] == "kafka, topic events of 127.0.0.1:9092, from the latest offsets"
    assert kafka["event id"] == "topic, partition and offset"
    assert kafka["sink jdbc"] == "jdbc, table public.notifications of jdbc:postgresql://127.0.0.1/alerts as harken"
    assert rate["source"] == "rate, 100 rows a second"
    assert socket["source"] == "socket, localhost:9999"
    assert dict(good(folder, SMALL + "format = 'console'").describe())["dead letters"].startswith("none")


# The page


def test_the_page_has_every_key_in_the_part_of_its_table() -> None:
    parts = re.split(r"^###? ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    by_title = {part.split("\n")[0].strip("`[]"): part for part in parts}
    for *table, key in all_keys():
        part = by_title[table[0] if table else "At the top"]
        rows = [row.split("|")[1] for row in part.split("\n") if row.startswith("|")]
        assert key in by_title or any(f"`{key}`" in row for row in rows), f"{table} {key} is not on the page"


def test_the_example_of_the_page_is_right(folder: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= 2
    for block in blocks:
        good(folder, block)


# Whatever comes


PIECES = st.sampled_from([f"{line}\n" for text in EXAMPLES.values() for line in text.split("\n") if line])
ODD = st.sampled_from(["[", "]", "=", '"', "\n", "${", "${X}", "a = 1\n", "[[source]]\n", "[sink]\n", "options = 5\n"])


@settings(max_examples=200)
@given(st.lists(PIECES | ODD | st.text(max_size=3), max_size=25).map("".join))
def test_any_text_is_a_configuration_or_has_faults(text: str) -> None:
    config, faults = check_config(text, None, ENVIRONMENT)
    assert (config is None) == bool(faults)
    assert all(isinstance(fault, ConfigError) and fault.message and str(fault) for fault in faults)
    lines = text.split("\n")
    assert all(fault.place is None or 1 <= fault.place.line <= len(lines) for fault in faults)


def test_nothing_heavy_is_loaded() -> None:
    heavy = ("pyspark", "pandas", "numpy", "pyarrow", "numba")
    program = f"import sys, harken.pipeline.config; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"
