"""The workloads by name. A module that draws a workload is imported when that workload is first used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from harken.errors import did_you_mean

if TYPE_CHECKING:
    from harken_lab.workloads.workload import Model, Workload

_MOST_ROWS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """The model that draws a workload, and the parameters that override the model's defaults."""

    model: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    has_table: bool = True
    """Whether a table of predicates can express the subscriptions."""
    language: str = "sql"

    def model_with(self, parameters: Mapping[str, Any]) -> Model:
        """The model; `parameters` override those of the recipe. Raises ValueError."""
        module, _, class_name = self.model.partition(":")
        model_class = getattr(import_module(module), class_name)
        defaults = {each.name: each.default for each in fields(model_class)}
        fitting = {name: _fitting(name, value, defaults) for name, value in parameters.items()}
        instance: Model = model_class(**(dict(self.parameters) | fitting))
        return instance

    def all_parameters(self) -> dict[str, Any]:
        """Every parameter with its default value."""
        return asdict(self.model_with({}))


_TOPSS = "harken_lab.workloads.topss:Topss"
_SMALL, _MEDIUM, _BIG = (1, 250), (250, 10_000), (10_000, 100_000)

WORKLOADS: dict[str, Recipe] = {
    "w0": Recipe(
        _TOPSS, "ToPSS, small domains: 1 to 20 predicates over 120 attributes of 1..250", {"domains": (_SMALL,)}
    ),
    "w1": Recipe(_TOPSS, "ToPSS, medium domains: as w0, but of 250..10,000", {"domains": (_MEDIUM,)}),
    "w2": Recipe(_TOPSS, "ToPSS, big domains: as w0, but of 10,000..100,000", {"domains": (_BIG,)}),
    "w3": Recipe(
        _TOPSS,
        "ToPSS, mixed domains: a third of the attributes is as in each of w0, w1 and w2",
        {"domains": (_SMALL, _MEDIUM, _BIG)},
    ),
    "w4": Recipe(
        _TOPSS,
        "ToPSS, many matches: 1 to 5 predicates over 10 attributes of 1..10",
        {
            **{"attributes": 10, "predicates": (1, 5), "carried": 10, "domains": ((1, 10),)},
            **{"subscription_batch": 10, "event_batch": 10},
        },
    ),
    "le-subscribe": Recipe(
        "harken_lab.workloads.le_subscribe:LeSubscribe",
        "Le Subscribe: 6 optional attributes, 3 strings tested for equality and 3 numbers for equality or a range",
    ),
    "stock": Recipe(
        "harken_lab.workloads.stock:Stock",
        "Stock ticks of relational XML publish/subscribe: a symbol and four inequalities",
    ),
    "gryphon": Recipe(
        "harken_lab.workloads.gryphon:Gryphon",
        "Gryphon: equality tests on 30 attributes of 5 values, each less popular than the one before",
    ),
    "orders": Recipe(
        "harken_lab.workloads.orders:Orders",
        "Orders of a shop: nested events, with tests of the customer, of one item among several, and of the total",
    ),
    "ranges": Recipe(
        "harken_lab.workloads.ranges:Ranges",
        "Rows of many ranges: 10 intervals, each half as wide as its domain, over 10 of 20 attributes",
    ),
    "attributes-many": Recipe(
        "harken_lab.workloads.attributes_many:AttributesMany",
        "5,000 attributes, of which an event has 30: 3 to 8 tests of what one kind of event has",
    ),
    "disjunctive": Recipe(
        "harken_lab.workloads.disjunctive:Disjunctive",
        "OR of 2 to 8 conjunctions, each of a string and one or two ranges",
        has_table=False,
    ),
    "text": Recipe(
        "harken_lab.workloads.text_searches:TextWorkload",
        "Saved searches: one LIKE each, on a title or on a body of words",
        has_table=False,
    ),
    "detections": Recipe(
        "harken_lab.workloads.detections:Detections",
        "Rules that look for attacks in logs: lists of patterns on command lines, paths and hashes",
        has_table=False,
    ),
    "stock-xml": Recipe(
        "harken_lab.workloads.stock_xml:StockXml",
        "Stock ticks of relational XML publish/subscribe as XML: a symbol and four inequalities, in XPath",
        has_table=False,
        language="xpath",
    ),
    "nasa": Recipe(
        "harken_lab.workloads.nasa:Nasa",
        "Astronomical data sets as XML, and branching XPaths drawn from them; made-up records without $HARKEN_DATA",
        has_table=False,
        language="xpath",
    ),
    "mixed": Recipe(
        "harken_lab.workloads.mixed:Mixed",
        "A quarter of each of w4, le-subscribe, stock and gryphon, interleaved, with attributes of their own",
    ),
}


def find_recipe(name: str) -> Recipe:
    """The recipe of this name. Raises ValueError, with a suggestion."""
    if name not in WORKLOADS:
        hint = did_you_mean(name, WORKLOADS) or f"there are: {', '.join(WORKLOADS)}"
        raise ValueError(f"there is no workload `{name}`; {hint}")
    return WORKLOADS[name]


def generate(name: str, subscriptions: int, events: int, seed: int = 0, **parameters: Any) -> Workload:
    """Draw the workload of this name. The same arguments give the same workload.

    The number of events does not change the subscriptions, nor the number of subscriptions the events. Raises
    ValueError if there is no such workload or parameter.
    """
    recipe = find_recipe(name)
    for count, noun in ((subscriptions, "subscriptions"), (events, "events")):
        if not 0 <= count <= _MOST_ROWS:
            raise ValueError(f"there can be 0 to {_MOST_ROWS:,} {noun}, not {count:,}")
    if seed < 0:
        raise ValueError(f"a seed is not negative, as {seed} is")
    model = recipe.model_with(parameters)

    from numpy.random import SeedSequence

    from harken_lab.workloads.workload import Workload

    drawn = model.draw(subscriptions, events, SeedSequence(seed))
    return Workload(name, recipe.description, asdict(model), seed, subscriptions, *drawn, language=model.language)


def _fitting(name: str, value: Any, defaults: Mapping[str, Any]) -> Any:
    """The value of a parameter, with lists as tuples. Raises ValueError if its type is not that of the default."""
    if name not in defaults:
        hint = did_you_mean(name, defaults) or f"there are: {', '.join(defaults)}"
        raise ValueError(f"there is no parameter `{name}`; {hint}")
    fitting = _tuples(value)
    if not _is_like(fitting, defaults[name]):
        raise ValueError(
            f"`{name}` is something like {json.dumps(defaults[name])}, not {json.dumps(value, default=str)}"
        )
    return fitting


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _is_like(value: Any, example: Any) -> bool:
    if isinstance(example, tuple):
        return isinstance(value, tuple) and len(value) > 0 and all(_is_like(each, example[0]) for each in value)
    return type(value) is type(example) or (type(example) is float and type(value) is int)
