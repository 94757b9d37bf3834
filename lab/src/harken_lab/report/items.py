"""The tables and figures of the five papers: 23 items, each with its claim and the experiments that measure it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harken_lab.experiments.definition import (
    GRYPHON,
    LE_SUBSCRIBE,
    OVERLAPPING,
    RELATIONAL_XML,
    TOPSS,
    ExperimentResult,
)
from harken_lab.experiments.figure_rows import WorkloadRows
from harken_lab.experiments.findings import Claim, Finding
from harken_lab.experiments.margins import ALIKE, LESS, LINEAR_PATHS
from harken_lab.experiments.ordered import NAIVE, SUBORDER, as_published, ratios
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.spreads import within
from harken_lab.experiments.xml_nasa import IN_DATABASES
from harken_lab.harness.charts import shown


@dataclass(frozen=True, slots=True)
class Item:
    """A table or figure of a paper."""

    key: str
    label: str
    claim: str
    """The claim of the paper, in a sentence."""
    experiments: tuple[str, ...]
    """The names of the experiments that measure it. Names that are not registered are ignored."""
    about: str = ""
    """A regular expression on a finding's figure and claim: it selects the findings of this item. Empty selects all."""
    plots: tuple[str | Plot, ...] = ()
    """The plots that show it: names of the experiment's plots, or further plots."""
    headline: str = ""
    """A regular expression on claims: the finding that sums up the item in a line. If empty, the first plot does."""
    judge: Callable[[ExperimentResult], Finding] | None = None
    """Makes a finding that the experiment itself does not have."""

    def findings(self, result: ExperimentResult) -> list[Finding]:
        """The findings of a result that are about this item."""
        findings = [each for each in result.findings if re.search(self.about, f"{each.paper_figure} | {each.claim}")]
        return findings if self.judge is None else [*findings, self.judge(result)]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with its items."""

    key: str
    short: str
    title: str
    items: tuple[Item, ...]


_TABLES = ("topss-dbms", "topss-tables")


def _predicates(result: ExperimentResult) -> Finding:
    """Judge table 5.3, which describes the workload: a subscription has as many linear paths as the paper's."""
    claim = Claim(
        "A subscription has about 7 linear path predicates",
        "table 5.3: 1 million of 0.13 million subscriptions, 20 million of 2.7 million (7.7 and 7.4 each)",
        "They are drawn with 2 to 10 linear paths, as the paper's are.",
        "They are drawn with another number of linear paths.",
    )
    rows = [row for row in result.rows if row.get("predicates") and row.get("workload") == "nasa"]
    if not rows:
        return claim.unmeasured("there is no NASA data set: set HARKEN_DATA")
    last = max(rows, key=lambda row: int(row["subscriptions"]))
    mean = last["predicates"] / last["subscriptions"]
    ours = f"{shown(mean)} of each of {last['subscriptions']:,} subscriptions (holds within {ALIKE:g} times of 7.4)"
    return claim.judged(LINEAR_PATHS[0] <= mean <= LINEAR_PATHS[1], ours)


def _larger_lead(result: ExperimentResult) -> Finding:
    """Judge figure 5 beside figure 4: how much Sub-Order saves with Zipf and with uniform popularity."""
    claim = Claim(
        "Sub-Order is further ahead of naive with Zipf popularity than with uniform popularity",
        "figure 5 beside figure 4, without numbers",
        "A few predicates are in most subscriptions, and settle these if they fail.",
        "Few subscriptions share predicates at this size.",
    )
    rows = WorkloadRows(result.rows)
    shares = []
    for figure in (4, 5):
        quotients = {place: each for (of, place), each in ratios(rows, SUBORDER, NAIVE).items() if of == figure}
        if not quotients:
            return claim.unmeasured("there are no rows of both figures")
        shares.append(quotients[max(quotients)])
    uniform, zipf = shares
    ours = (
        f"suborder by naive, at the most subscriptions: uniform {uniform}, Zipf {zipf} (holds if the first is {LESS:g} "
        "times the second)"
    )
    (finding,) = as_published([claim.judged(within(uniform / zipf, LESS), ours)], rows)
    return finding


def _by_size(name: str, title: str, y: str, y_title: str, table: str | None = None) -> Plot:
    """A plot by size, of `xpath` alone or of the rows of a table."""
    return Plot(name, title, y=y, y_title=y_title, facet=None, where={"table": table})


_TOPSS_ITEMS = (
    Item(
        "topss-figure-2",
        "Figure 2",
        "The time and memory of tables grow with the domain, those of ordered lists do not; on mixed domains lists are "
        "ahead with few predicates, tables with many.",
        ("topss-predicates",),
        plots=("time", "memory"),
        headline="With tables, the time",
    ),
    Item(
        "topss-figure-3",
        "Figure 3",
        "Counting by lists is the quickest; by bits takes about a third of the time of by bytes, which runs out of "
        "memory.",
        ("topss-counting",),
        "figure 3",
        ("time",),
    ),
    Item(
        "topss-figure-4",
        "Figure 4",
        "Lists need the least memory, until what deletion needs is counted: then bits do.",
        ("topss-counting", "topss-dbms"),
        r"figure 4|section 5\.1\.2",
        ("memory", "memory_with_rows"),
    ),
    Item(
        "topss-table-1",
        "Table 1",
        "Matching an event by lists is quicker than by bits at every size, and both are far quicker than a DBMS.",
        _TABLES,
        "table 1",
        ("time",),
    ),
    Item(
        "topss-table-2",
        "Table 2",
        "Bits load the quickest; lists take longer than a DBMS once there are very many subscriptions.",
        _TABLES,
        "table 2",
        ("loading",),
    ),
    Item(
        "topss-updates",
        "Update times",
        "Adding to bits and deleting from them is very efficient.",
        ("topss-tables",),
        "section 3.3",
        ("insert", "delete"),
    ),
)
_LE_SUBSCRIBE_ITEMS = (
    Item(
        "le-subscribe-figure-9",
        "Figure 9",
        "At p = 0.5 quarantining is the quickest, equality-preferred the next, the fair predicate algorithm the last.",
        ("le-subscribe-sizes",),
        "figure 9|10,000 times",
        ("three",),
    ),
    Item(
        "le-subscribe-figure-10",
        "Figure 10",
        "The more equalities, the quicker; without ranges equality-preferred and quarantining are the same.",
        ("le-subscribe-equality",),
        plots=("time",),
        headline="With as many ranges as equalities",
    ),
    Item(
        "le-subscribe-figure-11",
        "Figure 11",
        "With equalities only, the time hardly grows with the number of subscriptions after a threshold.",
        ("le-subscribe-all-equal",),
        plots=("time",),
        headline="After a threshold",
    ),
    Item(
        "le-subscribe-insertion",
        "Cost of an insertion",
        "Adding one subscription to 3,200,000 takes quarantining 32.2 ms, equality-preferred about as long, and the "
        "fair predicate algorithm less.",
        ("le-subscribe-insertion",),
        plots=("time",),
    ),
)
_GRYPHON_ITEMS = (
    Item(
        "gryphon-time",
        "Time",
        "Matching time grows less than linearly, and the optimisations make it shorter.",
        ("gryphon-tree",),
        "time of an event|makes? .*quicker|milliseconds|pre-processing",
        ("time",),
    ),
    Item(
        "gryphon-space",
        "Space",
        "The space of the matching tree is linear in the number of subscriptions; factoring costs space.",
        ("gryphon-tree",),
        "Space|space",
        ("space",),
        "Space is linear",
    ),
    Item(
        "gryphon-exponent",
        "Exponent",
        "Visited nodes grow at most as |S|^(1−λ), and stay below the bound of the theorem.",
        ("gryphon-tree",),
        "λ|theorem|worst case",
        ("visited",),
        "Visited nodes grow",
    ),
)
_OVERLAP_ITEMS = (
    Item(
        "overlap-figure-4",
        "Figure 4",
        "With uniform popularity Sequential and Sub-Order evaluate almost 80 % less than naive, and grow slower with "
        "the number of subscriptions.",
        ("overlap-orders",),
        "figures? 4",
        ("figure_4",),
    ),
    Item(
        "overlap-figure-5",
        "Figure 5",
        "With Zipf popularity the same holds, with a larger lead.",
        ("overlap-orders",),
        "figures 4|figure 5",
        ("figure_5",),
        judge=_larger_lead,
    ),
    Item(
        "overlap-figure-6",
        "Figure 6",
        "Sequential and Sub-Order grow slower than naive with the number of predicates.",
        ("overlap-orders",),
        "figures 4 to 8|figure 6",
        ("figure_6",),
    ),
    Item(
        "overlap-figure-7",
        "Figure 7",
        "Longer subscriptions hardly cost Sequential more, and its distance from Sub-Order shrinks.",
        ("overlap-orders",),
        "figures 4 to 8|figure 7",
        ("figure_7",),
    ),
    Item(
        "overlap-figure-8",
        "Figure 8",
        "The more unequal popularity is, the less is evaluated.",
        ("overlap-orders",),
        "figures 4 to 8|figure 8",
        ("figure_8",),
        "The more unequal",
    ),
)
_XML_ITEMS = (
    Item(
        "xml-table-5.1",
        "Table 5.1",
        "The time grows much less than the number of notifications; Unroll is flat, and buckets help inequalities.",
        ("xml-stock",),
        r"(table|section) 5\.1",
        ("notifications", "plans"),
    ),
    Item(
        "xml-table-5.2",
        "Table 5.2",
        "The time grows less than the number of subscriptions.",
        ("xml-stock",),
        r"table 5\.2",
        ("sizes", "plan_sizes"),
    ),
    Item(
        "xml-table-5.3",
        "Table 5.3",
        "0.13 to 2.7 million subscriptions have 1 to 20 million linear path predicates.",
        ("xml-nasa",),
        r"table 5\.3",
        (_by_size("predicates", "Linear path predicates", "predicates", "linear path predicates"),),
        judge=_predicates,
    ),
    Item(
        "xml-table-5.4",
        "Table 5.4",
        "Distinct linear paths are few, and matching them with the tag paths takes less time than parsing.",
        ("xml-nasa",),
        r"table 5\.4|section 5\.2",
        (
            _by_size("linear_paths", "Distinct linear paths", "linear_paths", "distinct linear paths"),
            _by_size("path_seconds", "Matching linear paths with tag paths", "path_seconds", "seconds", IN_DATABASES),
        ),
    ),
    Item(
        "xml-figure-5.2",
        "Figure 5.2",
        "On the NASA data set the time grows less than the number of subscriptions.",
        ("xml-nasa",),
        r"figure 5\.2",
        ("time", "plans"),
    ),
)
PAPERS: tuple[Paper, ...] = (
    Paper("topss", "ToPSS", TOPSS, _TOPSS_ITEMS),
    Paper("le-subscribe", "Le Subscribe", LE_SUBSCRIBE, _LE_SUBSCRIBE_ITEMS),
    Paper("gryphon", "Gryphon", GRYPHON, _GRYPHON_ITEMS),
    Paper("overlap", "Overlapping subscriptions", OVERLAPPING, _OVERLAP_ITEMS),
    Paper("xml", "XML on a relational database", RELATIONAL_XML, _XML_ITEMS),
)


def all_items(papers: Sequence[Paper] = PAPERS) -> list[Item]:
    """The items of all papers, in order."""
    return [item for paper in papers for item in paper.items]
