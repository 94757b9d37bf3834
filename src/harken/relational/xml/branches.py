"""BrPred: whether branches meet (section 3.5.2), as a function that databases call on what a plan has found.

Its arguments are the BranchPoint_Info of a subscription, `&50&51&0`, and the rows that its branches were laid on,
`|311:0000100002|312:00001|0:`, a tag path and an id path each. A branch without branching points has 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harken.events.xml.sax_rows import Bound, branches_meet
from harken.relational.xml.linear_paths import ID_WIDTH, NO_POINTS, Positions

NAME = "brpred"
# The same natural join as in Python: partial answers are arrays with a place for each branching point, of which there
# are fewer than branches.
POSTGRES = f"""
CREATE FUNCTION pg_temp.{NAME}(info text, packed text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    ids text[] := string_to_array(substr(info, 2), '&');
    laid text[] := string_to_array(substr(packed, 2), '|');
    partial text[] := ARRAY[array_to_string(array_fill(NULL::int, ARRAY[cardinality(ids)]), ',', 'NULL')];
    joined text[];
    ways text[];
    numbers int[];
    places int[];
    answer int[];
    way text;
    each text;
    node int;
    fits boolean;
BEGIN
    FOR branch IN 1 .. cardinality(ids) LOOP
        CONTINUE WHEN ids[branch] = '{NO_POINTS}';
        SELECT string_to_array(bp_position, ';') INTO ways FROM tagpath_brinfo
            WHERE tagpath_id = split_part(laid[branch], ':', 1)::bigint AND brinfo_id = ids[branch]::bigint;
        numbers := string_to_array(ways[1], ',')::int[];
        joined := ARRAY[]::text[];
        FOREACH each IN ARRAY partial LOOP
            FOREACH way IN ARRAY ways[2:] LOOP
                places := string_to_array(way, ',')::int[];
                answer := string_to_array(each, ',', 'NULL')::int[];
                fits := true;
                FOR at IN 1 .. cardinality(numbers) LOOP
                    node := ('x' || lpad(substr(split_part(laid[branch], ':', 2),
                        {ID_WIDTH} * (places[at] - 1) + 1, {ID_WIDTH}), 8, '0'))::bit(32)::int;
                    IF answer[numbers[at]] <> node THEN
                        fits := false;
                        EXIT;
                    END IF;
                    answer[numbers[at]] := node;
                END LOOP;
                IF fits THEN
                    joined := joined || array_to_string(answer, ',', 'NULL');
                END IF;
            END LOOP;
        END LOOP;
        IF cardinality(joined) = 0 THEN
            RETURN false;
        END IF;
        SELECT array_agg(DISTINCT one) INTO partial FROM unnest(joined) AS one;
    END LOOP;
    RETURN true;
END $$
"""


def branch_check(positions: Callable[[], Mapping[tuple[int, int], Positions]]) -> Callable[[str, str], bool]:
    """The function, for databases inside the process. It looks TagPath_BrInfo up here."""

    def brpred(info: str, packed: str) -> bool:
        known = positions()
        bounds = []
        # An unrolled row may have more places than the subscription has branches.
        for points, laid in zip(info[1:].split("&"), packed[1:].split("|"), strict=False):
            if points != "0":
                tag, _, ids = laid.partition(":")
                numbers, found = known[int(tag), int(points)]
                path = tuple(int(ids[at : at + ID_WIDTH], 16) for at in range(0, len(ids), ID_WIDTH))
                bounds.append(Bound(numbers, found, path))
        return branches_meet(bounds)

    return brpred


def branch_info(points: Sequence[int]) -> str:
    """BranchPoint_Info, of the branching points of each branch; empty if there is nothing to check."""
    return "".join(f"&{each}" for each in points) if any(points) else ""
