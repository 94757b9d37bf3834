"""`harken demo`, in its small form on a Spark of its own: the folder, and a report whose numbers are the files'."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from harken.errors import SourceError
from harken.matchers.columnar.costs import LAYOUT_NAMES
from harken_lab.demo.demo_folder import DemoFolder, prepare
from harken_lab.demo.layouts import LAYOUTS, as_sentences, reached
from harken_lab.demo.outcome import DemoOutcome, gather
from harken_lab.demo.page import page
from harken_lab.demo.plots import Bar, bars, day, doubling, heat, nice
from harken_lab.demo.timeline import INDEX, LETTERS, MATCH, NOTIFY, STEPS
from unit.cli.conftest import PROGRAM, Run, lines

pytestmark = pytest.mark.processes

EVENTS, SUBSCRIPTIONS = 5_000, 2_000
VOID = {"meta", "br", "polygon", "polyline", "rect"}


@dataclass(frozen=True)
class Ran:
    folder: DemoFolder
    stdout: str
    stderr: str

    @property
    def told(self) -> dict[str, Any]:
        (line,) = lines(self.stdout)
        return line


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("demo") / "auction"
    command = [*PROGRAM, "demo", "--quick", "--folder", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return Ran(DemoFolder(folder), done.stdout, done.stderr)


@pytest.fixture(scope="module")
def outcome(ran: Ran) -> DemoOutcome:
    return gather(ran.folder)


class Page(HTMLParser):
    """Checks that every tag is closed, and keeps text, tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.prose: list[str] = []
        """The words that are neither code nor style."""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if not {"code", "pre", "style"} & set(self.open):
            self.prose.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


# The run


def test_the_folder_has_what_went_in_and_what_came_out(ran: Ran) -> None:
    names = {each.name for each in ran.folder.path.iterdir() if not each.name.startswith(".")}
    assert names == {
        *("pipeline.toml", "auction.toml", "events", "subscriptions.parquet", "sellers.parquet", "index"),
        *("notifications", "dead-letters", "metrics.jsonl", "spark-log", "report.html"),
    }
    assert pq.read_metadata(ran.folder.subscriptions).num_rows == SUBSCRIPTIONS


def test_what_is_told_is_what_the_files_say(ran: Ran) -> None:
    told = ran.told
    came = [line for path in ran.folder.events.iterdir() for line in path.read_text("utf-8").splitlines()]
    assert told["events"] == len(came) >= EVENTS
    assert told["subscriptions"] == SUBSCRIPTIONS
    assert told["notifications"] == pq.read_table(ran.folder.notifications).num_rows > 0
    letters = [line for path in ran.folder.dead_letters.rglob("*.json") for line in lines(path.read_text("utf-8"))]
    assert Counter(letter["stage"] for letter in letters) == told["dead_letters"]
    assert {"decode", "validate"} <= told["dead_letters"].keys()
    assert told["duplicates"] > 0


def test_steps_are_told_while_it_goes_on(ran: Ran) -> None:
    told = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    steps = [line for line in told if line["kind"] == "step"]
    assert len(steps) == 3
    assert {line["kind"] for line in told} <= {"step", "log"}, "that kernels are compiled, on a new machine, is a log"
    assert all(step["seconds"] > 0 for step in steps)


def test_spark_leaves_nothing_in_the_working_folder(ran: Ran) -> None:
    assert not (Path.cwd() / "spark-warehouse").exists()


# What the report is made of


def test_every_event_is_accounted_for(outcome: DemoOutcome) -> None:
    rejected = sum(outcome.metrics["dead_letters"].values())
    assert outcome.matched == outcome.events - rejected - outcome.metrics["duplicates"]
    assert sum(outcome.events_by_minute) == sum(outcome.events_by_category.values()) == outcome.matched
    assert sum(outcome.letters_by_reason.values()) == rejected


def test_the_pairs_of_the_report_add_up(outcome: DemoOutcome, report: Page) -> None:
    left_out = outcome.rejected + outcome.duplicates
    assert 0 < outcome.rejected < left_out
    assert outcome.matched == outcome.events - left_out
    assert outcome.pairs == outcome.matched * outcome.subscriptions
    for told in (
        f"{outcome.events:,} events came in. {outcome.rejected:,} were rejected",
        f"{outcome.duplicates:,} were duplicates of earlier ones, and the other {outcome.matched:,} were matched",
        f"{outcome.matched:,} × {outcome.subscriptions:,} = {outcome.pairs:,} pairs",
    ):
        assert told in report.text


def test_every_notification_is_in_every_plot(ran: Ran, outcome: DemoOutcome) -> None:
    count = pq.read_table(ran.folder.notifications).num_rows
    assert outcome.notifications == count
    assert sum(outcome.notifications_by_minute) == count
    assert sum(outcome.notifications_by_category.values()) == count
    assert sum(map(sum, outcome.by_area_and_hour.values())) == count
    assert sum(told for _, told in outcome.by_kind.values()) == count
    for histogram in (outcome.matches_of_events, outcome.notifications_of_subscriptions):
        assert sum(number * many for number, many in enumerate(histogram)) == count
    assert sum(outcome.notifications_of_subscriptions) == SUBSCRIPTIONS


def test_the_busiest_are_those_with_most_notifications(ran: Ran, outcome: DemoOutcome) -> None:
    told = pq.read_table(ran.folder.notifications, columns=["subscription_id"])["subscription_id"]
    counts = {each["values"]: each["counts"] for each in pc.value_counts(told).to_pylist()}
    assert outcome.busiest[0].count == max(counts.values())
    assert all(counts[busy.id] == busy.count for busy in outcome.busiest)
    assert len({busy.where for busy in outcome.busiest}) == len(outcome.busiest)


def test_the_reference_agrees(outcome: DemoOutcome) -> None:
    assert outcome.reference_check.notifications >= 500
    assert outcome.reference_check.pairs >= 500
    assert outcome.reference_check.disagreements == 0


def test_a_hit_and_a_near_miss_are_explained(outcome: DemoOutcome) -> None:
    assert outcome.hit is not None
    assert outcome.hit.explanation.matched
    assert outcome.near_miss is not None
    truths = [part.truth for part in outcome.near_miss.explanation.tree.parts]
    assert not outcome.near_miss.explanation.matched
    assert 0 < truths.count(True) < len(truths)


def test_the_time_is_spark_s_own(outcome: DemoOutcome) -> None:
    names = {step.name for step in outcome.steps}
    assert {MATCH, NOTIFY, LETTERS} <= names <= set(STEPS)
    assert INDEX not in names, "few subscriptions are indexed without Spark"
    assert all(outcome.start - 1 <= step.start <= step.end for step in outcome.steps)
    assert sum(step.seconds for step in outcome.steps) <= outcome.metrics["seconds"] + 1
    assert all(step.tasks > 0 for step in outcome.steps if step.name == MATCH)


# The report


@pytest.fixture(scope="module")
def report(ran: Ran) -> Page:
    return Page(ran.folder.report.read_text("utf-8"))


def test_the_report_is_sound_html_with_plots(report: Page) -> None:
    assert (report.tags["html"], report.tags["body"], report.tags["h1"]) == (1, 1, 1)
    assert report.tags["svg"] > 20
    assert report.tags["table"] >= 5


def test_the_report_needs_nothing_else(ran: Ran, report: Page) -> None:
    names = {name for name, _ in report.attributes}
    assert not names & {"src", "href", "srcset", "data", "xlink:href", "onload", "onclick"}
    assert not {"script", "link", "iframe", "img", "object"} & report.tags.keys()
    text = ran.folder.report.read_text("utf-8")
    assert not re.search(r"https?:|url\(|@import|//[a-z]", text)
    assert str(ran.folder.path) not in text


def test_the_report_shows_the_numbers_of_the_files(ran: Ran, report: Page, outcome: DemoOutcome) -> None:
    count = pq.read_table(ran.folder.notifications).num_rows
    for number in (ran.told["events"], SUBSCRIPTIONS, count, outcome.owners, outcome.pairs):
        assert f"{number:,}" in report.text
    assert outcome.busiest[0].where in report.text
    assert outcome.busiest[0].owner in report.text
    assert f"{ran.told['seconds_of_pipeline']:.1f}" in report.text
    assert "It agreed with all of them" in report.text


def test_numbers_have_one_format(report: Page) -> None:
    """Thousands have commas; times, sizes and means have one digit behind the point."""
    told = " ".join(report.prose)
    assert not re.search(r"\d{5,}|\d[kM]\b|\d[eE][+-]?\d", told)
    assert {len(digits) for digits in re.findall(r"\d\.(\d+) (?:s|µs|ns|MB)\b", told)} == {1}


def test_the_plan_is_told_in_words(report: Page, outcome: DemoOutcome) -> None:
    groups = [group for layer in outcome.plan["layers"] for group in layer["groups"]]
    first = max(groups, key=lambda group: group["rows"])
    assert f"The first row says: {as_sentences(first)}" in report.text
    shown = sorted(groups, key=lambda group: -group["rows"])[:12]
    for layout in {group["layout"] for group in shown}:
        assert LAYOUTS[layout] in report.text
    assert LAYOUTS.keys() == set(LAYOUT_NAMES)


KEYED = {"layout": "cluster", "rows": 1_200, "attributes": ["category string", "price number"], "filter": []}
COSTS = {"expected_candidates": 3.25, "expected_ns": 45.0, "verified": False}


@pytest.mark.parametrize(
    ("group", "way"),
    [
        ({"key": "category string", "range": "price number"}, "by its category, then by the range of price"),
        ({"key": "category string", "range": None}, "by its category"),
        (
            {"key": "category string", "range": None, "filter": ["maker string"]},
            "if any row asks for its category and maker, then by its category",
        ),
        ({"key": None, "range": None}, "all rows are compared"),
        ({"directory": ["category string", "kind string"]}, "by its category and kind"),
        ({"directory": []}, "by bitmaps alone"),
    ],
)
def test_how_an_event_finds_rows(group: dict[str, Any], way: str) -> None:
    assert reached(KEYED | COSTS | group) == way


def test_a_group_in_sentences() -> None:
    assert as_sentences(KEYED | COSTS | {"key": "category string", "range": None}) == (
        "1,200 rows ask for category and price, and are stored as a cluster. An event finds its rows by its category. "
        "On average it is compared with 3.2 of them, which is expected to take 45.0 ns."
    )


def test_the_report_works_in_light_and_dark_and_on_a_phone(ran: Ran) -> None:
    text = ran.folder.report.read_text("utf-8")
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert "max-width: 560px" in text


def test_the_report_is_the_same_again(ran: Ran, outcome: DemoOutcome) -> None:
    command = f"harken demo --events {EVENTS} --subscriptions {SUBSCRIPTIONS} --seed 1"
    assert page(outcome, command) == ran.folder.report.read_text("utf-8")


# The folder


def test_a_folder_of_somebody_else_s_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    result = run("demo", "--quick", "--folder", tmp_path)
    assert result.exit_code == 3
    assert "did not make" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("notes")
    assert run("demo", "--folder", tmp_path / "notes").exit_code == 3
    assert (tmp_path / "notes").read_text() == "notes"


def test_a_folder_of_the_demo_s_is_emptied(tmp_path: Path) -> None:
    first = prepare(tmp_path / "own")
    (first.path / "notifications").mkdir()
    (first.events / "hour-00.jsonl").write_text("{}\n")
    (first.path / "link").symlink_to(tmp_path)
    again = prepare(tmp_path / "own")
    assert sorted(each.name for each in again.path.iterdir()) == [".harken-demo", "events", "spark-log"]
    assert not list(again.events.iterdir())
    assert tmp_path.exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="cannot be written"):
        prepare(tmp_path / "file" / "below")


# Plots


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([3], [("0", 3), ("1", 0), ("2", 0)]),
        ([3, 1, 4, 1, 5], [("0", 3), ("1", 1), ("2", 4), ("3–4", 6)]),
        ([0, 0, 0, 0, 0, 2, 0, 0, 1, 7], [("0", 0), ("1", 0), ("2", 0), ("3–4", 0), ("5–8", 3), ("9–16", 7)]),
    ],
)
def test_counts_are_gathered_by_doubling(counts: list[int], found: list[tuple[str, int]]) -> None:
    assert doubling(counts) == found


def test_the_last_column_has_all_the_rest() -> None:
    counts = [1] * 1_000
    found = doubling(counts, most=6)
    assert len(found) == 6
    assert found[-1] == ("9+", 991)
    assert sum(count for _, count in found) == 1_000


@pytest.mark.parametrize(("most", "top"), [(0, 1), (1, 1), (7, 8), (10, 10), (26_663, 30_000), (99, 100)])
def test_an_axis_ends_at_a_round_number(most: int, top: int) -> None:
    assert nice(most) == top


def test_plots_are_sound_and_escape_what_they_are_given() -> None:
    drawn = (
        bars([Bar("<b>&", 2, "<i>", '"hint"')]) + heat({"<x>": [1] * 24}, "a<b") + day([0, 5, 1] * 480, "<u>", "one")
    )
    parsed = Page(drawn)
    assert {"i", "b"} & parsed.tags.keys() == {"i", "b"}
    assert "<b>&" in parsed.text
    assert "u" not in parsed.tags
    assert ("title", '"hint"') in parsed.attributes


def test_plots_bear_nothing() -> None:
    Page(bars([]) + heat({}, "x") + day([0] * 1_440, "x", "one"))
