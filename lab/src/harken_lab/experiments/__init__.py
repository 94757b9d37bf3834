"""The papers' experiments, run again with `harken experiment NAME`. Each has a module of its own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harken.errors import CapabilityError, did_you_mean

if TYPE_CHECKING:
    from harken_lab.experiments.definition import Experiment

EXPERIMENTS: dict[str, str] = {
    "topss-predicates": "harken_lab.experiments.topss_predicates",
    "topss-counting": "harken_lab.experiments.topss_counting",
    "topss-tables": "harken_lab.experiments.topss_tables",
    "topss-published": "harken_lab.experiments.topss_published",
    "topss-dbms": "harken_lab.experiments.topss_dbms",
    "le-subscribe-sizes": "harken_lab.experiments.le_subscribe_sizes",
    "le-subscribe-equality": "harken_lab.experiments.le_subscribe_equality",
    "le-subscribe-all-equal": "harken_lab.experiments.le_subscribe_all_equal",
    "le-subscribe-insertion": "harken_lab.experiments.le_subscribe_insertion",
    "gryphon-tree": "harken_lab.experiments.gryphon_tree",
    "gryphon-limits": "harken_lab.experiments.gryphon_limits",
    "xml-stock": "harken_lab.experiments.xml_stock",
    "xml-nasa": "harken_lab.experiments.xml_nasa",
    "xml-automaton": "harken_lab.experiments.xml_automaton",
    "overlap-orders": "harken_lab.experiments.overlap_orders",
    "overlap-assumptions": "harken_lab.experiments.overlap_assumptions",
    "overlap-choosing": "harken_lab.experiments.overlap_choosing",
    "overlap-optimum": "harken_lab.experiments.overlap_optimum",
    "overview": "harken_lab.experiments.overview",
}
"""Modules by the name of their experiment, in the order of the papers. A module is imported when it is first used."""


def find_experiment(name: str) -> Experiment:
    """The experiment of this name. Raises CapabilityError, with a suggestion."""
    if name not in EXPERIMENTS:
        hint = did_you_mean(name, EXPERIMENTS) or f"there are: {', '.join(EXPERIMENTS)}"
        raise CapabilityError(f"there is no experiment `{name}`", hint=hint)
    experiment: Experiment = import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment
