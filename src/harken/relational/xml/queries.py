"""The queries of the paper's plans. All values are in tables: a query is the same for every batch.

Sessions join tables in the order in which they are written: planners know too little of what a recursion will bring.
Rows that differ only below every branching point are one (`kept` of PathMatch), so that a document with many equal
nodes does not multiply.
"""

from __future__ import annotations

from harken.relational.xml.predicates import COMPARISON
from harken.relational.xml.unrolled import LEVELS

_LAID = "'|' || s.tagpath_id || ':' || substr(s.idpath, 1, CAST(m.kept AS INTEGER))"
"""A row that a branch is laid on, as BrPred takes it."""
_FITS = "m.tagpath_id = s.tagpath_id AND m.linearpath_id = "
_STEP = "f.event_id, q.chain_id, q.final, f.packed || " + _LAID


def _answer(found: str, brpred: str) -> str:
    """The distinct pairs of an event and a subscription whose branches meet."""
    return (
        f"SELECT DISTINCT t.event_id, t.chain_id FROM ({found}) t CROSS JOIN query_branchpoint b\n"
        "WHERE b.sub_id = t.chain_id AND CASE WHEN b.branchpoint_info = '' THEN 1 = 1\n"
        f"  ELSE {brpred}(b.branchpoint_info, t.packed) END"
    )


def recursive(brpred: str) -> str:
    """Figure 3.9 in two stages: equalities first, and then whatever else is asked for."""
    compares = COMPARISON.format(p="q.", s="s.")
    return f"""WITH RECURSIVE equal(event_id, chain_id, final, packed) AS (
  SELECT s.event_id, q.chain_id, q.final, {_LAID}
  FROM sax_parse_result s CROSS JOIN query_predicate q CROSS JOIN pathmatch m
  WHERE q.pre_id = 0 AND q.is_equal = 1 AND q.value = s.value AND {_FITS} q.linearpath_id
  UNION
  SELECT {_STEP}
  FROM equal f CROSS JOIN query_predicate q CROSS JOIN sax_parse_result s CROSS JOIN pathmatch m
  WHERE f.final = 0 AND q.pre_id = f.chain_id AND q.is_equal = 1
    AND s.event_id = f.event_id AND s.value = q.value AND {_FITS} q.linearpath_id
), entered(event_id, chain_id, final, packed) AS (
  SELECT event_id, chain_id, final, packed FROM equal WHERE final = 0
  UNION ALL SELECT event_id, 0, 0, '' FROM sax_parse_result WHERE tagpath_id = 0
), other(event_id, chain_id, final, packed) AS (
  SELECT event_id, chain_id, final, packed FROM entered
  UNION
  SELECT {_STEP}
  FROM other f CROSS JOIN query_predicate q CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE f.final = 0 AND q.pre_id = f.chain_id AND q.is_equal = 0
    AND m.linearpath_id = q.linearpath_id AND s.event_id = f.event_id AND s.tagpath_id = m.tagpath_id
    AND {compares}
)
""" + _answer(
        "SELECT event_id, chain_id, packed FROM equal WHERE final = 1\n"
        "  UNION ALL SELECT event_id, chain_id, packed FROM other WHERE final = 1",
        brpred,
    )


def unrolled(brpred: str) -> str:
    """Figure 4.2: a join a predicate, and the recursion for what is left of long subscriptions."""
    compares = COMPARISON.format(p="q.", s="s.")
    levels = ",\n".join(_level(level) for level in range(2, LEVELS + 1))
    first = _carried("u", 2)
    return f"""WITH RECURSIVE level1 AS MATERIALIZED (
  SELECT s.event_id, {first}, {_LAID} AS packed
  FROM sax_parse_result s CROSS JOIN predicate_unroll u CROSS JOIN pathmatch m
  WHERE u.is_equal = 1 AND u.value1 = s.value AND {_FITS} u.path1
  UNION
  SELECT s.event_id, {first}, {_LAID} AS packed
  FROM predicate_unroll u CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE u.is_equal = 0 AND m.linearpath_id = u.path1 AND s.tagpath_id = m.tagpath_id
    AND {_compares_at("u", 1)}
),
{levels},
rest(event_id, chain_id, final, packed) AS (
  SELECT event_id, chain_id, final, packed FROM level{LEVELS} WHERE final = 0
  UNION
  SELECT {_STEP}
  FROM rest f CROSS JOIN query_predicate q CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE f.final = 0 AND q.pre_id = f.chain_id
    AND m.linearpath_id = q.linearpath_id AND s.event_id = f.event_id AND s.tagpath_id = m.tagpath_id
    AND {compares}
)
""" + _answer(
        f"SELECT event_id, chain_id, packed FROM level{LEVELS} WHERE final = 1\n"
        "  UNION ALL SELECT event_id, chain_id, packed FROM rest WHERE final = 1",
        brpred,
    )


def _level(level: int) -> str:
    return f"""level{level} AS MATERIALIZED (
  SELECT DISTINCT l.event_id, {_carried("l", level + 1)}, l.packed || {_LAID} AS packed
  FROM level{level - 1} l CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE m.linearpath_id = l.path{level} AND s.event_id = l.event_id AND s.tagpath_id = m.tagpath_id
    AND {_compares_at("l", level)}
)"""


def _carried(table: str, first: int) -> str:
    """What later levels need."""
    names = [f"{name}{level}" for level in range(first, LEVELS + 1) for name in ("path", "op", "value", "number")]
    return ", ".join(f"{table}.{name}" for name in (*names, "chain_id", "final"))


def _compares_at(table: str, level: int) -> str:
    found = COMPARISON.format(p="p.", s="s.")
    for name in ("op", "value", "number"):
        found = found.replace(f"p.{name}", f"{table}.{name}{level}")
    return found
