"""The cost of a plan by the paper's metric, with parameters taken from its tables, beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.databases.connection import Connection
from harken.relational.table_state import TableState
from harken_lab.plans.xml.cost import CostParameters
from harken_lab.plans.xml.messages import TABLE
from harken_lab.plans.xml.plan_tables import PredicateTables

_DOCUMENTS = 16
"""Documents of the last batch on which tuples are counted."""
_DROP = f"DELETE FROM {TABLE} WHERE event_id >= (SELECT min(event_id) FROM {TABLE}) + {_DOCUMENTS}"
_COUNT = f"SELECT count(*) AS n, count(DISTINCT event_id) AS events FROM {TABLE}"
_PAIRS = f"SELECT count(*) AS n FROM {TABLE} s CROSS JOIN pathmatch m WHERE m.tagpath_id = s.tagpath_id"


def measured_costs(
    database: Connection, plan: PredicateTables, state: TableState, seen: Mapping[str, float]
) -> dict[str, Any]:
    """The sizes of the tables and, once documents were matched, the cost of a document: expected and measured."""
    paths = _number(database, f"SELECT count(*) AS n FROM (SELECT DISTINCT path FROM ({_as_path(plan)}) AS u) AS d")
    sizes = {"rows": state["conjunctions"], "linear_paths": paths, "tag_paths": state["tags"]}
    database.run(_DROP)
    ((values, documents),) = database.integers(_COUNT).tolist()
    if not documents or not state["conjunctions"]:
        return sizes
    fitting = _number(database, _PAIRS) / values
    first = _number(database, plan.query.counting_first) / documents
    probes = fitting * values / documents
    selectivity = first / (probes * state["conjunctions"]) if probes else 0.0
    given = CostParameters(
        state["conjunctions"],
        state["predicates"] / state["conjunctions"],
        values / documents,
        fitting,
        selectivity,
    )
    expected = plan.cost(given)
    return {
        **sizes,
        "cost": {
            **given._asdict(),
            "expected_accesses": expected.accesses,
            "expected_tuples": expected.tuples,
            "measured_tuples": _number(database, plan.query.counting) / documents,
            "measured_seconds": seen["seconds"] / max(seen["documents"], 1),
        },
    }


def _as_path(plan: PredicateTables) -> str:
    """The query for the linear paths in use, in a column `path`, without that of rows that have no path."""
    return f"SELECT path FROM (SELECT linearpath_id AS path FROM ({plan.used_paths}) AS p) AS q WHERE path <> 0"


def _number(database: Connection, query: str) -> int:
    return int(database.integers(query)[0, 0])
