"""Columns that nobody declares: which types they have, and which are read value by value."""

from __future__ import annotations

import pytest
from pyspark.sql import types as t

from harken.errors import SegmentError
from harken.pipeline.source_columns import SourceColumns, TypeTally, csv_columns, json_columns
from harken.pipeline.used_attributes import UsedAttributes
from harken.schema import Kind, Path

NUMBER, STRING, BOOLEAN = Kind.NUMBER, Kind.STRING, Kind.BOOLEAN


TYPES: dict[str, t.DataType] = {
    **{"STRING": t.StringType(), "BIGINT": t.LongType(), "INT": t.IntegerType(), "DOUBLE": t.DoubleType()},
    **{"BOOLEAN": t.BooleanType(), "INSIDE": t.StructType([t.StructField("b", t.LongType())])},
    "DEEP": t.StructType(
        [t.StructField("b", t.ArrayType(t.StructType([t.StructField("c", t.StringType())])))],
    ),
}


def columns(text: str) -> t.StructType:
    """Columns such as `id STRING, delta BIGINT`."""
    pairs = (each.split() for each in text.split(", "))
    return t.StructType([t.StructField(name, TYPES[kind]) for name, kind in pairs])


def used(**kinds: set[Kind]) -> UsedAttributes:
    """What is asked of attributes; a path has two underscores for each dot."""
    paths: dict[Path, frozenset[Kind]] = {tuple(name.split("__")): frozenset(each) for name, each in kinds.items()}
    return UsedAttributes(frozenset(path[0] for path in paths), paths)


def types(found: SourceColumns) -> dict[str, str]:
    return {each.name: each.dataType.simpleString() for each in found.types}


@pytest.mark.parametrize(
    ("tally", "kind"),
    [(TypeTally(9, 9), "bigint"), (TypeTally(9, 8), "double"), (TypeTally(0, 0, 3), "string"), (TypeTally(), "string")],
)
def test_numbers_make_numbers_of_a_column_that_has_other_values_too(tally: TypeTally, kind: str) -> None:
    found = json_columns(columns("id STRING, delta STRING, user STRING"), used(delta={NUMBER}), ["id"], False)
    assert (found.loose, found.doubtful) == (("delta",), {"delta": NUMBER})
    resolved = found.resolved({"delta": tally})
    assert types(resolved) == {"id": "string", "delta": kind, "user": "string"}
    assert (resolved.loose, resolved.doubtful, resolved.mixed) == (("delta",), {}, ())


def test_booleans_too() -> None:
    found = json_columns(columns("flag STRING"), used(flag={BOOLEAN}), [], False)
    assert types(found.resolved({"flag": TypeTally(0, 0, 1)})) == {"flag": "boolean"}
    assert types(found.resolved({"flag": TypeTally(5, 5, 0)})) == {"flag": "string"}


@pytest.mark.parametrize(("kinds", "mixed"), [({NUMBER, STRING}, ("code",)), ({STRING}, ()), (set(), ())])
def test_where_subscriptions_disagree_the_type_stays(kinds: set[Kind], mixed: tuple[str, ...]) -> None:
    found = json_columns(columns("code STRING"), used(code=kinds), [], False)
    assert found.loose == ("code",), "each value is still seen as it is"
    found = found.resolved(dict.fromkeys(found.doubtful, TypeTally(1, 1)))
    assert (types(found), found.mixed) == ({"code": "string"}, mixed)


def test_what_spark_is_sure_of_is_read_as_it_is() -> None:
    inferred = columns("delta BIGINT, flag BOOLEAN, price DOUBLE, other STRING")
    ask = used(delta={NUMBER}, flag={BOOLEAN}, price={NUMBER})
    found = json_columns(inferred, ask, [], False)
    assert found.loose == ("price",), "an integer beyond 2^53 may be among its numbers"
    assert found.types == inferred
    later = json_columns(inferred, ask, [], True)
    assert later.loose == ("delta", "flag", "price", "other"), "a stream may bring whatever it likes"


def test_ids_times_and_keys_keep_their_types() -> None:
    found = json_columns(columns("id STRING"), used(id={NUMBER}), ["id"], False)
    assert (types(found), found.loose) == ({"id": "string"}, ("id",))
    assert csv_columns(columns("id STRING"), used(id={NUMBER}), ["id"], False).loose == ()


@pytest.mark.parametrize(("kinds", "loose"), [({NUMBER}, ("a",)), ({STRING}, ())])
def test_a_nested_column_is_loose_where_its_strings_are_to_be_numbers(kinds: set[Kind], loose: tuple[str]) -> None:
    inferred = columns("a DEEP")
    found = json_columns(inferred, used(a__b__c=kinds), [], False)
    assert (found.types, found.loose) == (inferred, loose)


def test_csv() -> None:
    inferred = columns("delta STRING, user STRING, count INT, flag BOOLEAN")
    ask = used(delta={NUMBER}, user={STRING}, count={NUMBER})
    found = csv_columns(inferred, ask, [], False)
    assert (found.loose, found.doubtful) == (("delta",), {"delta": NUMBER})
    assert csv_columns(inferred, ask, [], True).loose == ("delta", "count", "flag")


def test_columns_are_kept_as_text() -> None:
    found = json_columns(columns("id STRING, a INSIDE"), used(id={STRING}), [], True)
    assert SourceColumns.from_text(found.to_text().encode(), "here") == found
    with pytest.raises(SegmentError, match="here cannot be understood"):
        SourceColumns.from_text(b'{"format": 1}', "here")
