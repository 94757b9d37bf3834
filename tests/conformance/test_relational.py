"""The golden cases for the relational matchers on the databases that are not their default."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.cases import CaseFile, case_files
from conformance.test_matchers import check_golden_cases
from harken import Engine
from harken.matchers import ALGORITHMS
from services.postgres import running_postgres

pytestmark = pytest.mark.together

RELATIONAL = {"sequential_search", "predicate_grouping", "relational_anchored"}
INSTALLED = [name for name in ALGORITHMS if name in RELATIONAL]
FILES = case_files()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_postgres() as server:
        yield f"postgresql://{server.user}:{server.password}@127.0.0.1:{server.port}/{server.database}"


@pytest.mark.parametrize("cases", FILES, ids=lambda cases: cases.name)
@pytest.mark.parametrize("algorithm", INSTALLED)
def test_golden_cases_on_sqlite(algorithm: str, cases: CaseFile) -> None:
    check_golden_cases(Engine(cases.schema, algorithm, database="sqlite"), algorithm, cases)


@pytest.mark.processes
@pytest.mark.parametrize("cases", FILES, ids=lambda cases: cases.name)
@pytest.mark.parametrize("algorithm", INSTALLED)
def test_golden_cases_on_postgresql(algorithm: str, cases: CaseFile, url: str) -> None:
    check_golden_cases(Engine(cases.schema, algorithm, database=url), algorithm, cases)
