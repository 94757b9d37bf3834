"""The live set of subscriptions, in dictionaries and in columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from harken.live.catalogue import Catalogue, CatalogueColumns
from harken.live.subscriptions import Subscription


def table() -> pa.Table:
    columns = {
        "id": ["a", None, "c"],
        "where": ["x = 1", None, "x = 3"],
        "language": ["sql", None, "sql"],
        "fields": [None, None, '{"owner": "Carol"}'],
    }
    return pa.table({name: pa.array(values, pa.large_string()) for name, values in columns.items()})


def add(catalogue: Catalogue, subscription: Subscription) -> None:
    catalogue.announce([subscription])
    catalogue.add([subscription])


@pytest.fixture
def catalogue() -> Catalogue:
    """a (5) and c (7) in columns, where 6 is free; d (0) in front of them."""
    found = Catalogue([CatalogueColumns(5, table())])
    add(found, Subscription("d", "x = 4", "sql", 0))
    return found


def test_columns_and_dictionaries_are_one(catalogue: Catalogue) -> None:
    assert len(catalogue) == 3
    assert sorted(catalogue.ids()) == ["a", "c", "d"]
    assert "a" in catalogue
    assert "b" not in catalogue
    assert catalogue.get("c") == Subscription("c", "x = 3", "sql", 7, {"owner": "Carol"})
    assert catalogue.get("d") == catalogue.of(0)
    assert catalogue.get("nobody") is None
    assert catalogue.of(5).id == "a"


def test_ids_by_number(catalogue: Catalogue) -> None:
    assert catalogue.ids_by_number() == ["d", None, None, None, None, "a", None, "c"]
    numbers = np.array([7, 0, 7], np.int32)
    for found in (catalogue.encoded_ids(numbers), catalogue.plain_ids(numbers), catalogue.picked_ids(numbers)):
        assert found.to_pylist() == ["c", "d", "c"]


def test_what_is_removed_is_gone_but_for_its_number(catalogue: Catalogue) -> None:
    for id in ("a", "d"):
        removed = catalogue.get(id)
        assert removed is not None
        catalogue.remove(removed)
        assert id not in catalogue
        assert catalogue.of(removed.number).id == id, "a match that was found before may still ask"
    assert [each.id for each in catalogue] == ["c"]
    assert len(catalogue) == 1


def test_a_number_is_given_to_another(catalogue: Catalogue) -> None:
    catalogue.ids_by_number()
    removed = catalogue.get("a")
    assert removed is not None
    catalogue.remove(removed)
    add(catalogue, Subscription("a", "x = 9", "sql", 5))
    assert catalogue.of(5).where == "x = 9"
    found = catalogue.get("a")
    assert found is not None
    assert found.where == "x = 9"
    assert catalogue.ids_by_number()[5] == "a"
    assert len(catalogue) == 3


def test_ids_follow_what_is_added_later(catalogue: Catalogue) -> None:
    catalogue.ids_by_number()
    add(catalogue, Subscription("e", "x = 5", "sql", 10))
    assert catalogue.ids_by_number()[7:] == ["c", None, None, "e"]
    catalogue.add_columns(20, table())
    assert catalogue.ids_by_number()[20:] == ["a", None, "c"]


def test_all_of_it_as_a_table(catalogue: Catalogue) -> None:
    saved = catalogue.table(9)
    assert saved.column("id").to_pylist() == ["d", None, None, None, None, "a", None, "c", None]
    again = Catalogue([CatalogueColumns(0, saved)])
    assert sorted(again, key=lambda each: each.id) == sorted(catalogue, key=lambda each: each.id)
    assert Catalogue().table(0).num_rows == 0


def test_names_of_fields_are_those_of_the_living(catalogue: Catalogue) -> None:
    assert catalogue.field_counts() == {"owner": 1}
    add(catalogue, Subscription("e", "x = 5", "sql", 1, {"owner": "Eve", "channel": "mail"}))
    assert catalogue.field_counts() == {"owner": 2, "channel": 1}
    for id in ("c", "e"):
        removed = catalogue.get(id)
        assert removed is not None
        catalogue.remove(removed)
    assert catalogue.field_counts() == {}


def test_changes_are_counted(catalogue: Catalogue) -> None:
    seen = [catalogue.changes]
    add(catalogue, Subscription("e", "x = 5", "sql", 1))
    seen.append(catalogue.changes)
    catalogue.remove(catalogue.of(1))
    seen.append(catalogue.changes)
    catalogue.add_columns(8, table())
    seen.append(catalogue.changes)
    catalogue.drop_columns()
    assert sorted({*seen, catalogue.changes}) == [*seen, catalogue.changes]
