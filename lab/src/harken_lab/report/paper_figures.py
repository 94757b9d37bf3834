"""The numbers that the papers state, by table or figure, each with its source.

Most of the papers' figures are drawings without numbers in the text. They are left out here, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KDB, BITS, LISTS = "Kdb", "bit-wise", "list-based"
THE_PAPERS = "paper"
"""The name of the series in a table that has only one."""
_MS = 1_000
"""Factor from milliseconds, which the papers state, to microseconds, which Harken measures."""


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """Numbers of a paper, in the unit of our plot."""

    source: str
    plot: str
    """The name of the experiment's plot with the same axes."""
    series: Mapping[str, Mapping[int, float]]
    """Values by x, for each series. Series are named as the experiment names its contestants."""

    def __post_init__(self) -> None:
        if not self.series or not all(self.series.values()):
            raise ValueError(f"{self.source} has a series without numbers")


def _columns(
    names: tuple[str, ...], rows: Mapping[int, tuple[float, ...]], factor: float
) -> dict[str, dict[int, float]]:
    """The columns of a table as series. Products are rounded to six decimals to remove floating-point noise."""
    return {
        name: {place: round(cells[number] * factor, 6) for place, cells in rows.items()}
        for number, name in enumerate(names)
    }


_TABLE_1 = {
    1_000: (89.3, 0.3, 0.10),
    5_000: (206.4, 1.9, 0.27),
    10_000: (397.4, 3.8, 0.63),
    50_000: (1_800.3, 20.0, 3.85),
    100_000: (3_451.2, 40.4, 8.10),
    500_000: (17_299.7, 264.0, 79.00),
    1_000_000: (33_473.1, 562.4, 190.70),
    5_000_000: (338_166.1, 1_555.7, 1_056.00),
}
_TABLE_2 = {
    1_000: (52, 6, 6),
    5_000: (84, 26, 28),
    10_000: (196, 52, 58),
    50_000: (706, 261, 353),
    100_000: (1_699, 523, 862),
    500_000: (6_976, 2_712, 16_093),
    1_000_000: (15_658, 5_428, 97_746),
    5_000_000: (69_811, 26_976, 2_678_858),
}
_PLANS = ("Unroll", "Share", "Share-Bucket")
_TABLE_51 = {
    1_000: (56, 107, 26.3),
    10_000: (61, 154, 44.6),
    100_000: (70, 504, 195),
    1_000_000: (161, 2_369, 1_210),
}
_TABLE_52 = {100_000: (52, 101, 75), 200_000: (55, 221, 119), 1_000_000: (70, 504, 195)}
_TABLE_53: dict[int, float] = {130_000: 1e6, 700_000: 5e6, 1_400_000: 10e6, 2_100_000: 15e6, 2_700_000: 20e6}
_TABLE_54: dict[int, float] = {130_000: 6_565, 700_000: 21_637, 1_400_000: 32_159, 2_100_000: 38_026, 2_700_000: 42_271}
_TABLE_54_SECONDS: dict[int, float] = {130_000: 7, 700_000: 20, 1_400_000: 29, 2_100_000: 35, 2_700_000: 37}

PAPER_FIGURES: dict[str, tuple[PaperFigure, ...]] = {
    "topss-figure-4": (
        PaperFigure(
            "section 5.1.2: memory of bit-wise matching, about 122 KB and 248 MB; of the DBMS 4,400 KB and about 1 GB",
            "memory",
            {"counting_bits": {1_000: 122e3, 5_000_000: 248e6}, KDB: {1_000: 4_400e3, 5_000_000: 1e9}},
        ),
    ),
    "topss-table-1": (
        PaperFigure(
            "table 1, one event, wall-clock; Pentium III, 900 MHz", "time", _columns((KDB, BITS, LISTS), _TABLE_1, _MS)
        ),
    ),
    "topss-table-2": (
        PaperFigure(
            "table 2, bulk loading, wall-clock; Pentium III, 900 MHz; the last of the lists is stated as a bound",
            "loading",
            _columns((KDB, BITS, LISTS), _TABLE_2, 1 / 1_000),
        ),
    ),
    "le-subscribe-insertion": (
        PaperFigure(
            "section 4: the average of adding one to 3,200,000; Pentium, 500 MHz",
            "time",
            {"quarantine": {3_200_000: 32.2 * _MS}},
        ),
    ),
    "overlap-figure-4": (
        PaperFigure(
            "section 5.3.1, at 80,000 subscriptions",
            "figure_4",
            {"sequential": {80_000: 7_761}, "suborder": {80_000: 7_037}},
        ),
    ),
    "overlap-figure-6": (
        PaperFigure(
            "section 5.3.2, at 30,000 predicates",
            "figure_6",
            {"naive": {30_000: 16_251}, "sequential": {30_000: 3_267}, "suborder": {30_000: 1_977}},
        ),
    ),
    "overlap-figure-7": (
        PaperFigure(
            "section 5.3.3: Sequential at lengths 5 and 11, naive close to 5,000 at all",
            "figure_7",
            {"naive": {5: 5_000, 11: 5_000}, "sequential": {5: 1_593, 11: 1_784}},
        ),
    ),
    "xml-table-5.1": (
        PaperFigure(
            "table 5.1, 1,000,000 subscriptions; DB2 on a Pentium IV, 1.4 GHz",
            "notifications",
            _columns(_PLANS, _TABLE_51, 1),
        ),
    ),
    "xml-table-5.2": (
        PaperFigure(
            "table 5.2, 10,000 messages; DB2 on a Pentium IV, 1.4 GHz", "sizes", _columns(_PLANS, _TABLE_52, 1)
        ),
    ),
    "xml-table-5.3": (PaperFigure("table 5.3", "predicates", {THE_PAPERS: _TABLE_53}),),
    "xml-table-5.4": (
        PaperFigure("table 5.4: distinct linear paths", "linear_paths", {THE_PAPERS: _TABLE_54}),
        PaperFigure("table 5.4: seconds to compute PathMatch", "path_seconds", {THE_PAPERS: _TABLE_54_SECONDS}),
    ),
}
"""The numbers of the papers, by the key of the item."""

_A_DRAWING = "The paper's figure is a drawing, and its text has no numbers to compare with ours."
_LOST = "Our copy of the paper has lost its numbers: only ours are shown."
WITHOUT_NUMBERS: dict[str, str] = {
    "topss-figure-2": _A_DRAWING,
    "topss-figure-3": _A_DRAWING,
    "topss-updates": "The paper describes updates and gives no numbers.",
    "le-subscribe-figure-9": _A_DRAWING,
    "le-subscribe-figure-10": _A_DRAWING,
    "le-subscribe-figure-11": _A_DRAWING,
    "gryphon-time": _LOST,
    "gryphon-space": _LOST,
    "gryphon-exponent": f"{_LOST} The exponent and the bound are worked out by its formulas.",
    "overlap-figure-5": _A_DRAWING,
    "overlap-figure-8": _A_DRAWING,
    "xml-figure-5.2": _A_DRAWING,
}
"""Why the paper has no numbers, by the key of the item."""
