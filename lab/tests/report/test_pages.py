"""The pages of the report: all items on both, nothing loaded from elsewhere, and the committed one is up to date."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harken.errors import SourceError
from harken_lab.report.benchmarks import read_benchmarks
from harken_lab.report.html import html, inline, inlined
from harken_lab.report.items import all_items
from harken_lab.report.markdown import markdown
from harken_lab.report.measuring import Measurements, read
from harken_lab.report.outcomes import Verdict, outcomes
from harken_lab.report.report_document import Block, Chart, Command, DataTable, Folded, Heading, Paragraph
from harken_lab.report.report_files import write
from harken_lab.report.sections import report

pytestmark = [pytest.mark.seconds, pytest.mark.together]

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"
COMMAND = "harken report --mixed --from benchmarks/results/experiments --output docs"
VOID = {"meta", "br", "img", "hr", "link", "input"}
LOADS = {"src", "href", "xlink:href", "srcset", "data", "action", "poster"}
KEYS = [item.key for item in all_items()]


class Page(HTMLParser):
    """What a page has, and whether its tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [str(value) for name, value in attrs if name == "id"]
        self.loads += [str(value) for name, value in attrs if name in LOADS]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


@pytest.fixture(scope="module")
def committed() -> list[Block]:
    return report(read(RESULTS / "experiments", mixed=True), read_benchmarks(RESULTS), COMMAND)


@pytest.fixture(scope="module")
def folder(committed: list[Block], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    write(committed, place)
    return place


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_committed_report_is_up_to_date(committed: list[Block]) -> None:
    """Otherwise: harken report --mixed --from benchmarks/results/experiments --output docs"""
    assert (ROOT / "docs" / "report.md").read_text(encoding="utf-8") == markdown(committed, "report")


def test_the_first_table_has_all_items(text: str) -> None:
    found = read(RESULTS / "experiments", mixed=True)
    _, *rows = Page(text).tables[0]
    assert [row[1] for row in rows] == [item.label for item in all_items()]
    assert [row[2] for row in rows] == [item.claim for item in all_items()]
    assert [row[-1] for row in rows] == [str(each.verdict) for each in outcomes(found.results, found.failures)]
    assert all(row[3] for row in rows)


def test_the_markdown_twin_says_the_same(text: str, folder: Path) -> None:
    twin = (folder / "report.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| \[([^\]]+)\]\(#([^)]+)\) \|.*\| ([a-z ]+) \|$", twin, re.MULTILINE)
    assert [key for _, key, _ in rows] == KEYS
    assert [verdict for *_, verdict in rows] == [row[-1] for row in Page(text).tables[0][1:]]
    assert all(f'<a id="{key}"></a>\n\n### ' in twin for key in KEYS)
    charts = re.findall(r"\]\((report/[^)]+\.svg)\)", twin)
    assert len(set(charts)) == len(charts) > 20
    assert sorted(charts) == sorted(f"report/{path.name}" for path in (folder / "report").iterdir())


def test_the_page_needs_nothing_else(text: str) -> None:
    page = Page(text)
    assert {each for each in page.loads if not each.startswith("#")} == set()
    assert {"script", "link", "iframe", "object", "img"} & set(page.tags) == set()
    assert re.findall(r"url\((?!#)|@import|\bsrc=", text) == []


def test_links_and_clips_lead_somewhere(text: str) -> None:
    page = Page(text)
    assert [id for id, count in Counter(page.ids).items() if count > 1] == []
    assert {each.removeprefix("#") for each in page.loads} <= set(page.ids)
    assert {f"#{key}" for key in KEYS} <= set(page.loads)
    clips = set(re.findall(r"url\(#([^)]+)\)", text))
    assert clips <= set(page.ids)


def test_every_item_tells_where_it_was_measured_and_how_to_do_it_again(text: str) -> None:
    found = read(RESULTS / "experiments", mixed=True)
    for outcome in outcomes(found.results, found.failures):
        section = text.partition(f'id="{outcome.item.key}"')[2].partition("</section>")[0]
        for each in outcome.measured:
            assert f"harken experiment {each.result.experiment} --scale laptop --seed 0" in section
            assert each.result.environment["processor"] in section
            assert section.count("<svg") >= len(each.plots)


def test_the_papers_numbers_stand_beside_ours_on_the_same_axes(folder: Path) -> None:
    drawn = (folder / "report" / "topss-tables_time.svg").read_text(encoding="utf-8")
    assert ">in the paper<" in drawn
    assert ">here<" in drawn
    assert ">Kdb<" in drawn
    alone = (folder / "report" / "topss-counting_time.svg").read_text(encoding="utf-8")
    assert "in the paper" not in alone


def test_without_results_there_are_all_lines_and_the_papers_numbers() -> None:
    failed = Measurements({}, {"xml-stock": "there is no lxml"})
    page = Page(html(report(failed, [], "harken report"), "t"))
    assert [row[-1] for row in page.tables[0][1:]] == [str(Verdict.NOT_MEASURED)] * 23
    assert any("33,473,100" in cell for table in page.tables for row in table for cell in row)
    assert "there is no lxml" in page.tables[0][19][3]


def test_smoke_says_that_it_tells_nothing() -> None:
    found = read(RESULTS / "experiments", mixed=True)
    blocks = report(found, [], "c")
    assert "tell nothing" not in markdown(blocks, "report")
    (name, result), *_ = found.results.items()
    object.__setattr__(result, "scale", "smoke")
    assert "tell nothing" in markdown(report(Measurements({name: result}), [], "c"), "report")


def test_texts_are_escaped() -> None:
    assert (
        inline("a < b & `c<d>` **e** [f](#g)") == 'a &lt; b &amp; <code>c&lt;d&gt;</code> <b>e</b> <a href="#g">f</a>'
    )
    blocks: list[Block] = [
        Heading(1, "a<b"),
        Paragraph("x | y"),
        DataTable(("h",), (("1 | <2>",),)),
        Command("a && b"),
        Folded("more", (Paragraph("in"),)),
    ]
    assert Page(html(blocks, "<t>")).tables == [[["h"], ["1 | <2>"]]]
    assert "| 1 \\| <2> |" in markdown(blocks, "report")


def test_two_charts_on_a_page_do_not_share_ids() -> None:
    clip = '<clipPath id="{0}c"/><g clip-path="url(#{0}c)"/></svg>'
    svg = '<?xml?><svg class="m" width="10" height="20" viewBox="0 0 10 20">' + clip.format("")
    assert inlined(svg, "one") == '<svg class="m" style="width:10px" viewBox="0 0 10 20">' + clip.format("one-")


def test_a_table_with_a_missing_cell_is_rejected() -> None:
    with pytest.raises(ValueError, match="number of cells"):
        DataTable(("a", "b"), (("1",),))


def test_charts_of_an_earlier_report_go(tmp_path: Path) -> None:
    write([Chart("old", "o", lambda: "<svg/>")], tmp_path)
    write([Chart("new", "n", lambda: "<svg/>")], tmp_path)
    assert [path.name for path in (tmp_path / "report").iterdir()] == ["new.svg"]
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="cannot be written to"):
        write([], tmp_path / "file")
