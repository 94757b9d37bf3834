"""What is said of subscriptions that fit no event, against the answers of the golden cases."""

from __future__ import annotations

import pytest

from conformance.cases import CaseFile, case_files
from conformance.tables import tables_of
from harken import Engine


@pytest.mark.parametrize("algorithm", ["columnar", "naive"])
@pytest.mark.parametrize("cases", case_files(), ids=lambda cases: cases.name)
def test_what_can_never_match_matches_nothing(cases: CaseFile, algorithm: str) -> None:
    tables, _ = tables_of(cases.events)
    names = [set(table.column("event_name").to_pylist()) for table in tables]
    for where, expected in cases.expected:
        engine = Engine(cases.schema, algorithm)
        engine.subscribe("it", where)
        for table, those in zip(tables, names, strict=True):
            found = engine.mismatches(table.schema)
            assert not (found.never and expected & those), f"{where}: {found}"
            assert bool(found) or not (found.never or found.partly)
