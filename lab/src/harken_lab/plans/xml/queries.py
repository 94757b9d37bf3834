"""The queries of the paper's plans, up to the branch check. All values are in tables: a query never changes.

Databases have to join tables in the order in which they are written: planners cannot estimate a recursion. A step
carries on which subscriptions may still match, but not their rows: these are looked up again for the branch check.
"""

from __future__ import annotations

from typing import NamedTuple

from harken_lab.plans.xml.path_predicates import COMPARISON

_FITS = "m.tagpath_id = s.tagpath_id AND m.linearpath_id = "
_STEP = "f.event_id, q.chain_id, q.final"
_REACHED = "s.event_id = f.event_id AND s.tagpath_id = m.tagpath_id"
_FIRST_EQUAL = f"""SELECT s.event_id, q.chain_id, q.final
  FROM sax_parse_result s CROSS JOIN query_predicate q CROSS JOIN pathmatch m
  WHERE q.pre_id = 0 AND q.is_equal = 1 AND q.value = s.value AND {_FITS} q.linearpath_id"""
_FIRST_OTHER = f"""SELECT s.event_id, q.chain_id, q.final
  FROM query_predicate q CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE q.pre_id = 0 AND q.is_equal = 0 AND m.linearpath_id = q.linearpath_id AND s.tagpath_id = m.tagpath_id
    AND {COMPARISON.format(p="q.", s="s.")}"""


class PlanQuery(NamedTuple):
    """A query in two parts: common table expressions, and what is selected from them."""

    steps: str
    matches: str
    """Selects pairs of an event and a conjunction whose predicates all hold. A pair may occur twice."""
    relations: tuple[str, ...]
    """The relations that hold what the steps have retrieved."""
    first: str
    """Selects what the first step retrieves."""

    @property
    def text(self) -> str:
        return f"{self.steps}\n{self.matches}"

    @property
    def counting(self) -> str:
        """The query for how many rows the steps retrieve."""
        counts = " + ".join(f"(SELECT count(*) FROM {name})" for name in self.relations)
        return f"{self.steps}\nSELECT {counts} AS retrieved"

    @property
    def counting_first(self) -> str:
        """The query for how many rows the first step retrieves."""
        return f"SELECT count(*) AS retrieved FROM ({self.first}) AS first_step"


def recursive() -> PlanQuery:
    """Figure 3.9 in two stages: first the equalities, then all other predicates."""
    steps = f"""WITH RECURSIVE equal(event_id, chain_id, final) AS (
  {_FIRST_EQUAL}
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
)"""
    matches = """SELECT event_id, chain_id FROM equal WHERE final = 1
UNION ALL SELECT event_id, chain_id FROM other WHERE final = 1"""
    retrieved = "equal", "(SELECT event_id, chain_id FROM other EXCEPT SELECT event_id, chain_id FROM entered) AS later"
    return PlanQuery(steps, matches, retrieved, f"{_FIRST_EQUAL}\nUNION ALL {_FIRST_OTHER}")


def unrolled(levels: int) -> PlanQuery:
    """Section 4.3 without a cross product: one join for each of the `levels` predicates of a row, then the rest."""
    first = f"WITH RECURSIVE level1 AS MATERIALIZED (\n  {_first_level(_carried('u', 2, levels), 'UNION')}\n)"
    return _continued([first], 2, levels)


def _first_level(carried: str, union: str) -> str:
    return f"""SELECT s.event_id, {carried}
  FROM sax_parse_result s CROSS JOIN predicate_unroll u CROSS JOIN pathmatch m
  WHERE u.is_equal = 1 AND u.value1 = s.value AND {_FITS} u.path1
  {union}
  SELECT s.event_id, {carried}
  FROM predicate_unroll u CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE u.is_equal = 0 AND m.linearpath_id = u.path1 AND s.tagpath_id = m.tagpath_id
    AND {_compares_at("u", 1)}"""


def crossed(levels: int) -> PlanQuery:
    """Figure 4.2: a self cross product of the values of each event, whose pairs are looked up in the unrolled table."""
    carried = _carried("u", 3, levels)
    pairs = """WITH RECURSIVE fitting AS MATERIALIZED (
  SELECT s.event_id, s.value, s.number, m.linearpath_id
  FROM sax_parse_result s CROSS JOIN pathmatch m WHERE m.tagpath_id = s.tagpath_id
), pairs AS (
  SELECT s.event_id, s.value, s.number, s.linearpath_id AS path, t.value AS next_value, t.number AS next_number,
    t.linearpath_id AS next_path
  FROM fitting s CROSS JOIN fitting t WHERE t.event_id = s.event_id
)"""
    holds = f"u.path2 = p.next_path AND {_compares_at('u', 2, 'p.next_')}"
    level = f"""level2 AS MATERIALIZED (
  SELECT p.event_id, {carried}
  FROM pairs p CROSS JOIN predicate_unroll u
  WHERE u.is_equal = 1 AND u.value1 = p.value AND u.path1 = p.path AND {holds}
  UNION
  SELECT p.event_id, {carried}
  FROM pairs p CROSS JOIN predicate_unroll u
  WHERE u.is_equal = 0 AND u.path1 = p.path AND {_compares_at("u", 1, "p.")} AND {holds}
)"""
    return _continued([pairs, level], 3, levels)


def _continued(steps: list[str], first: int, levels: int) -> PlanQuery:
    """A plan for unrolled rows, from level `first` on."""
    rest = f"""rest(event_id, chain_id, final) AS (
  SELECT event_id, chain_id, final FROM level{levels} WHERE final = 0
  UNION
  SELECT {_STEP}
  FROM rest f CROSS JOIN query_predicate q CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE f.final = 0 AND q.pre_id = f.chain_id AND m.linearpath_id = q.linearpath_id
    AND {_REACHED} AND {COMPARISON.format(p="q.", s="s.")}
)"""
    matches = f"""SELECT event_id, chain_id FROM level{levels} WHERE final = 1
UNION ALL SELECT event_id, chain_id FROM rest WHERE final = 1"""
    later = [_level(level, levels) for level in range(first, levels + 1)]
    relations = (*(f"level{level}" for level in range(first - 1, levels + 1)), "rest")
    return PlanQuery(",\n".join([*steps, *later, rest]), matches, relations, _first_level("u.chain_id", "UNION ALL"))


def _level(level: int, levels: int) -> str:
    return f"""level{level} AS MATERIALIZED (
  SELECT DISTINCT f.event_id, {_carried("f", level + 1, levels)}
  FROM level{level - 1} f CROSS JOIN pathmatch m CROSS JOIN sax_parse_result s
  WHERE m.linearpath_id = f.path{level} AND {_REACHED}
    AND {_compares_at("f", level)}
)"""


def _carried(table: str, first: int, levels: int) -> str:
    """The columns that later levels need."""
    names = [f"{name}{level}" for level in range(first, levels + 1) for name in ("path", "op", "value", "number")]
    return ", ".join(f"{table}.{name}" for name in (*names, "chain_id", "final"))


def _compares_at(table: str, level: int, row: str = "s.") -> str:
    comparison = COMPARISON.format(p="#.", s=row)
    for name in ("op", "value", "number"):
        comparison = comparison.replace(f"#.{name}", f"{table}.{name}{level}")
    return comparison
