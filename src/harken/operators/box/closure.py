"""The closure of triples under the rules of RDFS and OWL for classes and properties, computed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harken.errors import OperatorError

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
TYPE, PROPERTY = f"{_RDF}type", f"{_RDF}Property"
SUBCLASS, SUBPROPERTY = f"{_RDFS}subClassOf", f"{_RDFS}subPropertyOf"
DOMAIN, RANGE, CLASS = f"{_RDFS}domain", f"{_RDFS}range", f"{_RDFS}Class"
EQUIVALENT, TRANSITIVE, OWL_CLASS = f"{_OWL}equivalentClass", f"{_OWL}TransitiveProperty", f"{_OWL}Class"
_PROPERTIES = (PROPERTY, TRANSITIVE, f"{_OWL}ObjectProperty", f"{_OWL}DatatypeProperty")

Node = Any
"""An IRI is a string, a literal a tuple of two, a blank node a tuple of three."""
Pairs = dict[Node, set[Node]]


@dataclass(frozen=True, slots=True)
class Facts:
    """The closure of an ontology's triples."""

    pairs: Mapping[str, Mapping[Node, set[Node]]]
    """For each property the objects of each subject."""
    inverse: Mapping[str, Mapping[Node, set[Node]]]
    """For each property the subjects of each object."""
    kinds: Mapping[Node, frozenset[Node]]
    """The classes of each individual, and for each class itself and its superclasses."""
    classes: frozenset[Node]
    things: frozenset[str]
    """All IRIs in the triples."""


def closed(triples: Iterable[tuple[Node, str, Node]], max_facts: int) -> Facts:
    """The closure of triples. Raises OperatorError if it has more than `max_facts` facts."""
    stated: dict[str, Pairs] = defaultdict(lambda: defaultdict(set))
    things: set[str] = set()
    for subject, relation, thing in triples:
        stated[relation][subject].add(thing)
        things.update(each for each in (subject, relation, thing) if isinstance(each, str))
    budget = _Budget(max_facts)
    pairs = _property_facts(stated, budget)
    above = _class_tree(pairs, budget)
    types = _types(pairs, above, budget)
    kinds = {thing: frozenset(several) for thing, several in _united(types, above, budget).items()}
    pairs[TYPE] = types
    pairs[SUBCLASS] = {each: upper - {each} for each, upper in above.items() if len(upper) > 1}
    inverse = {relation: _inverted(forth) for relation, forth in pairs.items()}
    return Facts(pairs, inverse, kinds, frozenset(above), frozenset(things))


class _Budget:
    """Counts down the facts that may still be added."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def spend(self, facts: int) -> None:
        self._left -= facts
        if self._left < 0:
            hint = "ontology(source, max_facts=…) allows more"
            raise OperatorError(f"more than {self._most:,} facts follow from the ontology", hint=hint)


def _property_facts(stated: Mapping[str, Pairs], budget: _Budget) -> dict[str, Pairs]:
    """The pairs of each property and its subproperties, with the transitive closure of transitive properties."""
    types = stated.get(TYPE, {})
    transitive = {each for each, kinds in types.items() if TRANSITIVE in kinds} | {SUBCLASS, SUBPROPERTY}
    over = stated.get(SUBPROPERTY, {})
    properties = {*stated, *over, *(each for several in over.values() for each in several)}
    properties |= {each for each, kinds in types.items() if not kinds.isdisjoint(_PROPERTIES)}
    properties |= {*stated.get(DOMAIN, ()), *stated.get(RANGE, ())}
    edges = {each: over.get(each, set()) for each in properties}
    closure: dict[str, Pairs] = {}
    below: dict[str, Pairs] = defaultdict(dict)
    for cycle in reversed(list(components(edges))):  # subproperties first
        own: Pairs = {}
        for each in cycle:
            _add(own, stated.get(each, {}), budget)
            _add(own, below.pop(each, {}), budget)
        if not transitive.isdisjoint(cycle):
            own = reached(own, budget)
        for each in cycle:
            closure[each] = own
            for upper in edges[each] - set(cycle):
                _add(below[upper], own, budget)
    return {each: pairs for each, pairs in closure.items() if isinstance(each, str)}


def _class_tree(pairs: Mapping[str, Pairs], budget: _Budget) -> Pairs:
    """For each class itself and its superclasses."""
    edges: Pairs = {}
    _add(edges, pairs.get(SUBCLASS, {}), budget)
    _add(edges, pairs.get(EQUIVALENT, {}), budget)
    _add(edges, _inverted(pairs.get(EQUIVALENT, {})), budget)
    classes = {*edges, *(each for several in edges.values() for each in several)}
    for relation in (TYPE, DOMAIN, RANGE):
        classes |= {each for several in pairs.get(relation, {}).values() for each in several}
    classes |= {each for each, kinds in pairs.get(TYPE, {}).items() if not kinds.isdisjoint((CLASS, OWL_CLASS))}
    above = reached({each: edges.get(each, set()) for each in classes}, budget)
    return {each: {each, *above.get(each, ())} for each in classes}


def _types(pairs: Mapping[str, Pairs], above: Pairs, budget: _Budget) -> Pairs:
    """The classes of each individual: as stated, by domain and range of its properties, and their superclasses."""
    direct: Pairs = {}
    _add(direct, pairs.get(TYPE, {}), budget)
    for relation, kinds in pairs.get(DOMAIN, {}).items():
        _add(direct, dict.fromkeys(pairs.get(relation, {}), kinds), budget)
    for relation, kinds in pairs.get(RANGE, {}).items():
        things = {each for several in pairs.get(relation, {}).values() for each in several}
        _add(direct, {each: kinds for each in things if not is_literal(each)}, budget)
    types = {thing: {upper for kind in kinds for upper in above[kind]} for thing, kinds in direct.items()}
    budget.spend(sum(map(len, types.values())))
    return types


def _united(first: Pairs, second: Pairs, budget: _Budget) -> Pairs:
    union: Pairs = {}
    _add(union, first, budget)
    _add(union, second, budget)
    return union


def is_literal(node: Node) -> bool:
    return isinstance(node, tuple) and len(node) == 2


def _inverted(pairs: Mapping[Node, set[Node]]) -> Pairs:
    inverse: Pairs = {}
    for subject, things in pairs.items():
        for each in things:
            inverse.setdefault(each, set()).add(subject)
    return inverse


def _add(to: Pairs, pairs: Mapping[Node, set[Node]], budget: _Budget) -> None:
    for subject, things in pairs.items():
        budget.spend(len(things))
        to.setdefault(subject, set()).update(things)


# Graphs


def reached(edges: Mapping[Node, set[Node]], budget: _Budget) -> Pairs:
    """The nodes that each node reaches by one or more edges."""
    targets: Pairs = {}
    for cycle in components(edges):
        several: set[Node] = set(cycle) if len(cycle) > 1 or cycle[0] in edges.get(cycle[0], ()) else set()
        for each in cycle:
            for following in edges.get(each, ()):
                several.add(following)
                several.update(targets.get(following, ()))
        if several:
            for each in cycle:
                budget.spend(len(several))
                targets[each] = several
    return targets


def components(edges: Mapping[Hashable, set[Any]]) -> Iterator[Sequence[Any]]:
    """The strongly connected components of a graph, each after those that it reaches (Tarjan 1972, no recursion)."""
    index: dict[Any, int] = {}
    low: dict[Any, int] = {}
    stack: list[Any] = []
    on_stack: set[Any] = set()
    for root in list(edges):
        if root in index:
            continue
        work: list[tuple[Any, Iterator[Any]]] = [(root, iter(edges.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            for each in following:
                if each not in index:
                    index[each] = low[each] = len(index)
                    stack.append(each)
                    on_stack.add(each)
                    work.append((each, iter(edges.get(each, ()))))
                    break
                if each in on_stack:
                    low[node] = min(low[node], index[each])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cycle = [stack.pop()]
                    while cycle[-1] != node:
                        cycle.append(stack.pop())
                    on_stack.difference_update(cycle)
                    yield cycle
