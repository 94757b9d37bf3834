"""The queries of the paper's plans, up to the branch check. All values are in tables: a query never changes.

Databases have to join tables in the order in which they are written: planners cannot estimate a recursion. A step
carries on which subscriptions may still match, but not their rows: these are looked up again for the branch check.
"""

from __future__ import annotations

from harken_lab.plans.xml.path_predicates import COMPARISON
from harken_lab.plans.xml.unrolled import LEVELS

_FITS = "m.tagpath_id = s.tagpath_id AND m.linearpath_id = "
_STEP = "f.event_id, q.chain_id, q.final"
_REACHED = "s.event_id = f.event_id AND s.tagpath_id = m.tagpath_id"


def recursive() -> str:
    """Figure 3.9 in two stages: first the equalities, then all other predicates."""
    return f"""WITH RECURSIVE equal(event_id, chain_id, final) AS (
  SELECT s.event_id, q.chain_id, q.final
  FROM sax_parse_result s CROSS JOIN query_predicate q CROSS JOIN pathmatch m
  WHERE q.pre_id = 0 AND q.is_equal = 1 AND q.value = s.value AND {_FITS} q.linearpath_id
  UNION
  SELECT {_STEP}
  FROM equal f CROSS JOIN query_predicate q CROSS JOIN sax_parse_result s CROSS JOIN pathmatch m
  WHERE f.final = 0 AND q.pre_id = f.chain_id AND q.is_equal = 1
    AND s.event_id = f.event_id AND s.value = q.value AND {_FITS} q.linearpath_id
), entered(event_id, chain_id, final) AS (
  SELECT event_id, chain_id, final FROM equal WHERE final = 0
  UNION ALL SELECT event_id, 0, 0 FROM sax_parse_result WHERE tagpath_id = 0
), other(event_id, chain_id, final) AS (
  SELECT event_id, chain_id, final FROM entered
  UNION
  SELECT {_STEP}
  FROM other f CROSS JOIN query_predicate q CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE f.final = 0 AND q.pre_id = f.chain_id AND q.is_equal = 0 AND m.linearpath_id = q.linearpath_id
    AND {_REACHED} AND {COMPARISON.format(p="q.", s="s.")}
)
SELECT event_id, chain_id FROM equal WHERE final = 1 UNION ALL SELECT event_id, chain_id FROM other WHERE final = 1"""


def unrolled() -> str:
    """Figure 4.2: one join for each predicate of a row, and a recursion for the rest of long subscriptions."""
    levels = ",\n".join(_level(level) for level in range(2, LEVELS + 1))
    first = _carried("u", 2)
    return f"""WITH RECURSIVE level1 AS MATERIALIZED (
  SELECT s.event_id, {first}
  FROM sax_parse_result s CROSS JOIN predicate_unroll u CROSS JOIN pathmatch m
  WHERE u.is_equal = 1 AND u.value1 = s.value AND {_FITS} u.path1
  UNION
  SELECT s.event_id, {first}
  FROM predicate_unroll u CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE u.is_equal = 0 AND m.linearpath_id = u.path1 AND s.tagpath_id = m.tagpath_id
    AND {_compares_at("u", 1)}
),
{levels},
rest(event_id, chain_id, final) AS (
  SELECT event_id, chain_id, final FROM level{LEVELS} WHERE final = 0
  UNION
  SELECT {_STEP}
  FROM rest f CROSS JOIN query_predicate q CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE f.final = 0 AND q.pre_id = f.chain_id AND m.linearpath_id = q.linearpath_id
    AND {_REACHED} AND {COMPARISON.format(p="q.", s="s.")}
)
SELECT event_id, chain_id FROM level{LEVELS} WHERE final = 1
UNION ALL SELECT event_id, chain_id FROM rest WHERE final = 1"""


def _level(level: int) -> str:
    return f"""level{level} AS MATERIALIZED (
  SELECT DISTINCT f.event_id, {_carried("f", level + 1)}
  FROM level{level - 1} f CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE m.linearpath_id = f.path{level} AND {_REACHED}
    AND {_compares_at("f", level)}
)"""


def _carried(table: str, first: int) -> str:
    """The columns that later levels need."""
    names = [f"{name}{level}" for level in range(first, LEVELS + 1) for name in ("path", "op", "value", "number")]
    return ", ".join(f"{table}.{name}" for name in (*names, "chain_id", "final"))


def _compares_at(table: str, level: int) -> str:
    comparison = COMPARISON.format(p="p.", s="s.")
    for name in ("op", "value", "number"):
        comparison = comparison.replace(f"p.{name}", f"{table}.{name}{level}")
    return comparison
