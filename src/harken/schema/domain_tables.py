"""Domains to and from tables of a schema file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from harken.errors import SchemaError, did_you_mean
from harken.schema.coded import EnumeratedDomain, HierarchicalDomain
from harken.schema.domains import BUILT_IN, Domain, IntegerDomain
from harken.toml.document import needs_key, unknown_key

Table = Mapping[str, object]
Fault = tuple[str | None, SchemaError]
"""The key of the table at which the error is, None for the whole table; and the error."""


def domain_from_table(name: str, table: Table) -> tuple[Domain | None, list[Fault]]:
    """The domain that a table describes, or None; and the faults of the table."""
    type_name = table.get("type")
    if not isinstance(type_name, str) or type_name not in _KEYS:
        types = ", ".join(_KEYS)
        if "type" not in table:
            return None, [(None, SchemaError(f"{needs_key(f'domain `{name}`', 'type')}: one of {types}"))]
        hint = did_you_mean(type_name, _KEYS) if isinstance(type_name, str) else None
        return None, [("type", SchemaError(f"the `type` of domain `{name}` is one of {types}", hint=hint))]
    allowed = ("type", *_KEYS[type_name])
    faults: list[Fault] = [
        (key, SchemaError(unknown_key(f"domain `{name}` of type {type_name}", key), hint=did_you_mean(key, allowed)))
        for key in table
        if key not in allowed
    ]
    try:
        domain = _READERS.get(type_name, _plain)(name, table)
    except _MisplacedError as error:
        return None, [*faults, (error.key, error.fault)]
    except SchemaError as fault:
        return None, [*faults, (None, fault)]
    return domain, faults


def domain_to_table(domain: Domain) -> dict[str, object]:
    """The table that describes a domain. Raises SchemaError if files have no type for its class."""
    if type(domain) is EnumeratedDomain:
        table: dict[str, object] = {"type": "enumerated", "values": list(domain.values)}
        return table | {"order": _chains(domain)} if domain.order else table
    if type(domain) is HierarchicalDomain:
        return {"type": "hierarchical", "children": _children(domain)}
    if type(domain) is IntegerDomain:
        bounds = {"low": domain.low, "high": domain.high}
        return {"type": "integer"} | {key: bound for key, bound in bounds.items() if bound is not None}
    for type_name, built_in in BUILT_IN.items():
        if type(domain) is type(built_in):
            return {"type": type_name}
    raise SchemaError(f"domain `{domain.name}` cannot be written: a file has no type for {type(domain).__name__}")


class _MisplacedError(Exception):
    """A fault at one key of the table."""

    def __init__(self, key: str, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.key = key
        self.fault = SchemaError(problem, hint=hint)


def _required(name: str, table: Table, key: str, hint: str) -> object:
    if key not in table:
        raise _MisplacedError(key, needs_key(f"domain `{name}`", key), hint)
    return table[key]


def _plain(name: str, table: Table) -> Domain:
    return type(BUILT_IN[str(table["type"])])(name)


def _integer(name: str, table: Table) -> Domain:
    bounds: list[int | None] = []
    for key in ("low", "high"):
        bound = table.get(key)
        if bound is not None and type(bound) is not int:
            raise _MisplacedError(key, f"the `{key}` of domain `{name}` is not an integer")
        bounds.append(bound)
    return IntegerDomain(name, *bounds)


def _enumerated(name: str, table: Table) -> Domain:
    hint = 'write values = ["a", "b"]'
    values = _strings(_required(name, table, "values", hint))
    if values is None:
        raise _MisplacedError("values", f"the `values` of domain `{name}` are not a list of strings", hint)
    chains = table.get("order", [])
    pairs: list[tuple[str, str]] = []
    for chain in chains if isinstance(chains, list) else [None]:
        links = _strings(chain)
        if links is None or len(links) < 2:
            problem = f"the order of domain `{name}` is not a list of chains, each of two values or more"
            raise _MisplacedError("order", problem, 'write order = [["lowest", "middle", "highest"]]')
        pairs.extend(pairwise(links))
    return EnumeratedDomain(name, tuple(values), tuple(pairs))


def _hierarchical(name: str, table: Table) -> Domain:
    hint = f"write [domains.{name}.children]"
    children = _required(name, table, "children", hint)
    if not isinstance(children, dict):
        raise _MisplacedError("children", f"the `children` of domain `{name}` are not a table", hint)
    placed: list[tuple[str, str | None]] = []
    for parent, written in children.items():
        below = _strings(written)
        if below is None:
            problem = f"in domain `{name}` the children of {parent!r} are not a list of strings"
            raise _MisplacedError("children", problem)
        placed.extend((child, parent) for child in below)
    inner = {child for child, _ in placed}
    roots: list[tuple[str, str | None]] = [(value, None) for value in children if value not in inner]
    return HierarchicalDomain(name, tuple(roots + placed))


def _strings(written: object) -> list[str] | None:
    if isinstance(written, list) and all(isinstance(value, str) for value in written):
        return written
    return None


def _chains(domain: EnumeratedDomain) -> list[list[str]]:
    """The pairs of the order, joined end to end into chains. Each pair is in one chain."""
    above: dict[str, list[str]] = {}
    for lower, higher in reversed(domain.order):
        above.setdefault(lower, []).append(higher)
    chains: list[list[str]] = []
    for start in domain.values:
        while above.get(start):
            chain = [start]
            while above.get(chain[-1]):
                chain.append(above[chain[-1]].pop())
            chains.append(chain)
    return chains


def _children(domain: HierarchicalDomain) -> dict[str, list[str]]:
    """The children of every value that has some, and of every root; in preorder, so that roots keep their order."""
    children: dict[str, list[str]] = {value: [] for value, _ in domain.parents}
    for value, parent in domain.parents:
        if parent is not None:
            children[parent].append(value)
    roots = {value for value, parent in domain.parents if parent is None}
    return {value: below for value, below in children.items() if below or value in roots}


_KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(BUILT_IN, ()),
    "integer": ("low", "high"),
    "enumerated": ("values", "order"),
    "hierarchical": ("children",),
}

_READERS: dict[str, Callable[[str, Table], Domain]] = {
    "integer": _integer,
    "enumerated": _enumerated,
    "hierarchical": _hierarchical,
}
