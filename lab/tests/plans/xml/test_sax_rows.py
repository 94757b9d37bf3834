"""Documents as rows: the tables of Fig. 3.5 to 3.14 of seed 004, row by row.

The scan of Fig. 3.5 has lost end tags; ids and tag paths say what stood there. Three slips of the paper are corrected:
its Inv_Tagpath of 312 lacks q; its Fig. 3.12 has a second row although the value at 1.16.17.18.19 is "v4", not the "v3"
that the subscription asks for there; and of {2,4},{3,4} in Fig. 3.11, 3.13 and 3.14 the first is no way to lay
/a//b/x/@y on /a/b/b/x/@y, because the b at 2 is not the parent of the x at 4. For /a//b//x/@y both are: LOOSE has it.
"""

from __future__ import annotations

import pytest

from harken.events.xml.documents import Documents, read_document
from harken.language.xpath.linear import Branch, LinearPath, conjunctions
from harken.language.xpath.parser import parse
from harken.reference.documents import holds
from harken_lab.plans.xml.sax_rows import (
    PlacedBranch,
    Relation,
    SaxRow,
    branches_meet,
    inverted,
    natural_join,
    position_text,
    positions,
    sax_rows,
)

SUBSCRIPTION = "/a//b[.//c/d/text() = 'v1' and p//q/text() = 'v2']/x[@y = 'v3']//z/text() = 'v4'"
MESSAGE = (
    b'<a><b><c><d>v1</d></c><p><p2><q>v2</q></p2></p><x y="v3"><z>v4</z><z>v5</z></x></b><b><b><x y="v4"/></b></b></a>'
)
LOOSE = LinearPath.parse("/a//b//x/@y")
TAG_PATHS = {
    "/a/b/c/d/text()": 311,
    "/a/b/p/p2/q/text()": 312,
    "/a/b/x/@y": 313,
    "/a/b/x/z/text()": 314,
    "/a/b/b/x/@y": 315,
}


def read(document: bytes) -> Documents:
    found = read_document(document)
    assert not found.errors
    return found


def branches() -> tuple[Branch, ...]:
    (found,) = conjunctions(parse(SUBSCRIPTION))
    return found.branches


def bound(branch: Branch, row: SaxRow) -> PlacedBranch:
    numbers = tuple(number for number, _ in branch.points)
    return PlacedBranch(numbers, positions(branch.path, row.tag_path, branch.points), row.id_path)


def test_figure_3_5_ids_of_all_nodes():
    rows = sax_rows(read(MESSAGE), has_elements=True)
    assert [row.id_path[-1:] for row in rows] == [(), *((number,) for number in range(1, 20))]
    names = ["", *"a b c d text() p p2 q text() x @y z text() z text() b b x @y".split()]
    assert [row.tag_path.rpartition("/")[2] for row in rows] == names
    assert [row.value for row in rows if row.tag_path in ("/", "/a/b", "/a/b/x")] == [
        "v1v2v4v5",
        "v1v2v4v5",
        "v4v5",
        "",
    ]


def test_figure_3_6_sax_parsing_result():
    assert [(row.tag_path, row.id_text, row.value) for row in sax_rows(read(MESSAGE))] == [
        ("/a/b/c/d/text()", "1.2.3.4.5", "v1"),
        ("/a/b/p/p2/q/text()", "1.2.6.7.8.9", "v2"),
        ("/a/b/x/@y", "1.2.10.11", "v3"),
        ("/a/b/x/z/text()", "1.2.10.12.13", "v4"),
        ("/a/b/x/z/text()", "1.2.10.14.15", "v5"),
        ("/a/b/b/x/@y", "1.16.17.18.19", "v4"),
    ]


def test_figure_3_7_tag_path_map_and_sax_parse_result():
    rows = sax_rows(read(MESSAGE))
    known = {path: number for number, path in enumerate(dict.fromkeys(row.tag_path for row in rows), 311)}
    assert known == TAG_PATHS
    assert [(path, inverted(path), number) for path, number in known.items()] == [
        ("/a/b/c/d/text()", "text()/d/c/b/a", 311),
        ("/a/b/p/p2/q/text()", "text()/q/p2/p/b/a", 312),
        ("/a/b/x/@y", "@y/x/b/a", 313),
        ("/a/b/x/z/text()", "text()/z/x/b/a", 314),
        ("/a/b/b/x/@y", "@y/x/b/b/a", 315),
    ]
    assert [(12, known[row.tag_path], row.id_text, row.value) for row in rows] == [
        (12, 311, "1.2.3.4.5", "v1"),
        (12, 312, "1.2.6.7.8.9", "v2"),
        (12, 313, "1.2.10.11", "v3"),
        (12, 314, "1.2.10.12.13", "v4"),
        (12, 314, "1.2.10.14.15", "v5"),
        (12, 315, "1.16.17.18.19", "v4"),
    ]


def test_figure_3_8_path_match():
    matched = [
        (number, 100 + place)
        for tag_path, number in TAG_PATHS.items()
        for place, branch in enumerate(branches())
        if positions(branch.path, tag_path)
    ]
    assert matched == [(311, 100), (312, 101), (313, 102), (314, 103), (315, 102)]


def test_figure_3_11_tag_path_br_info():
    rows = [
        (number, 50 + place, position_text([each for each, _ in branch.points], found))
        for tag_path, number in TAG_PATHS.items()
        for place, branch in enumerate(branches())
        if (found := positions(branch.path, tag_path, branch.points))
    ]
    assert rows == [
        (311, 50, "{bp#1},{2}"),
        (312, 51, "{bp#1},{2}"),
        (313, 52, "{bp#1,bp#2},{2,3}"),
        (314, 53, "{bp#1,bp#2},{2,3}"),
        (315, 52, "{bp#1,bp#2},{3,4}"),
    ]
    assert position_text((1, 2), positions(LOOSE, "/a/b/b/x/@y", ((1, 2), (2, 3)))) == "{bp#1,bp#2},{2,4},{3,4}"


def chosen(*ids: str) -> list[tuple[Branch, SaxRow]]:
    """The branches, each with the row of its id path."""
    rows = {row.id_text: row for row in sax_rows(read(MESSAGE))}
    return [(branch, rows[each]) for branch, each in zip(branches(), ids, strict=True)]


FIRST = chosen("1.2.3.4.5", "1.2.6.7.8.9", "1.2.10.11", "1.2.10.12.13")
SECOND = chosen("1.2.3.4.5", "1.2.6.7.8.9", "1.16.17.18.19", "1.2.10.12.13")


def test_figure_3_12_input_to_br_pred():
    assert [(TAG_PATHS[row.tag_path], row.id_text) for _, row in FIRST] == [
        (311, "1.2.3.4.5"),
        (312, "1.2.6.7.8.9"),
        (313, "1.2.10.11"),
        (314, "1.2.10.12.13"),
    ]
    assert [(TAG_PATHS[row.tag_path], row.id_text) for _, row in SECOND] == [
        (311, "1.2.3.4.5"),
        (312, "1.2.6.7.8.9"),
        (315, "1.16.17.18.19"),
        (314, "1.2.10.12.13"),
    ]


def test_figure_3_13_positions_and_id_paths():
    def row(pairs: list[tuple[Branch, SaxRow]]) -> list[tuple[str, str]]:
        made = [(bound(branch, row), row) for branch, row in pairs]
        return [(position_text(each.numbers, each.positions), row.id_text) for each, row in made]

    assert row(FIRST) == [
        ("{bp#1},{2}", "1.2.3.4.5"),
        ("{bp#1},{2}", "1.2.6.7.8.9"),
        ("{bp#1,bp#2},{2,3}", "1.2.10.11"),
        ("{bp#1,bp#2},{2,3}", "1.2.10.12.13"),
    ]
    assert row(SECOND) == [
        ("{bp#1},{2}", "1.2.3.4.5"),
        ("{bp#1},{2}", "1.2.6.7.8.9"),
        ("{bp#1,bp#2},{3,4}", "1.16.17.18.19"),
        ("{bp#1,bp#2},{2,3}", "1.2.10.12.13"),
    ]


def test_figure_3_14_relations_and_their_join():
    first = [bound(branch, row) for branch, row in FIRST]
    assert [each.relation() for each in first] == [
        Relation((1,), frozenset({(2,)})),
        Relation((1,), frozenset({(2,)})),
        Relation((1, 2), frozenset({(2, 10)})),
        Relation((1, 2), frozenset({(2, 10)})),
    ]
    assert natural_join(each.relation() for each in first) == Relation((1, 2), frozenset({(2, 10)}))
    assert branches_meet(first)
    second = [bound(branch, row) for branch, row in SECOND]
    assert second[2].relation() == Relation((1, 2), frozenset({(17, 18)}))
    assert natural_join(each.relation() for each in second).rows == frozenset()
    assert not branches_meet(second)
    loose = second[2]._replace(positions=positions(LOOSE, "/a/b/b/x/@y", ((1, 2), (2, 3))))
    assert loose.relation() == Relation((1, 2), frozenset({(16, 18), (17, 18)}))
    assert not branches_meet([*second[:2], loose, second[3]])


def test_the_first_position_array_of_315_would_be_a_false_match():
    """The x is no child of the b that has the other branches."""
    document = MESSAGE.replace(b'<x y="v3">', b'<b><x y="v3">').replace(b"</x></b>", b"</x></b></b>", 1)
    expression = parse(SUBSCRIPTION)
    assert not holds(expression, document)
    rows = [
        row for row in sax_rows(read(document)) if row.value in ("v1", "v2", "v3") or row.id_text.endswith(".13.14")
    ]
    made = [bound(branch, row) for branch, row in zip(branches(), rows, strict=True)]
    assert not branches_meet(made)
    by_figure = [each._replace(positions=[(2, 4)]) if len(each.numbers) == 2 else each for each in made]
    assert branches_meet(by_figure)


@pytest.mark.parametrize(
    ("path", "tag_path", "points", "expected"),
    [
        ("//a//b/c/b", "/a/b/c/b/b", (), []),
        ("//a//b/c//b", "/a/b/c/b/b", ((1, 2),), [(2,)]),
        ("//b//b", "/b/b/b", ((1, 1), (2, 2)), [(1, 3), (2, 3)]),
        ("//*", "/a/text()", (), []),
        ("//*", "/a/@x", (), []),
        ("//@*", "/a/@x", (), [()]),
        ("/a//@x", "/a/@x", ((1, 1),), [(1,)]),
        ("/a//text()", "/a/b/text()", ((1, 1), (2, 2)), [(1, 3)]),
        ("/", "/", (), [()]),
        ("/", "/a", (), []),
        ("/a", "/", (), []),
        ("/a/b", "/a", (), []),
        ("/*/*", "/a/b", ((7, 1), (3, 2)), [(1, 2)]),
    ],
)
def test_positions(path, tag_path, points, expected):
    assert positions(LinearPath.parse(path), tag_path, points) == expected


def test_a_join_of_nothing_has_one_empty_row():
    assert branches_meet([])
    assert not branches_meet([PlacedBranch((), [], (1, 2))])
    assert natural_join([Relation((1,), frozenset({(1,)})), Relation((2,), frozenset({(5,), (6,)}))]) == Relation(
        (1, 2), frozenset({(1, 5), (1, 6)})
    )


def test_names_with_namespaces_have_no_slash():
    (row,) = sax_rows(read(b'<p:a xmlns:p="http://u" p:x="1"/>'))
    assert row == SaxRow("/{http:%2F%2Fu}a/@{http:%2F%2Fu}x", (1, 2), "1")
    assert inverted(row.tag_path) == "@{http:%2F%2Fu}x/{http:%2F%2Fu}a"
    path = "declare namespace q = 'http://u'; /q:a/@q:x"
    ((branch,),) = (each.branches for each in conjunctions(parse(path)))
    assert positions(branch.path, row.tag_path) == [()]


def test_one_document_of_several():
    import numpy as np

    from harken.events.xml.documents import read_documents

    data = b"<a>1</a><b x='2'>3</b>"
    found = read_documents(np.frombuffer(data, np.uint8), np.array([0, 8, len(data)]), np.arange(2, dtype=np.int32))
    assert sax_rows(found, 0) == [SaxRow("/a/text()", (1, 2), "1")]
    assert sax_rows(found, 1) == [SaxRow("/b/@x", (1, 2), "2"), SaxRow("/b/text()", (1, 3), "3")]
