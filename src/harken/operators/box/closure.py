"""What follows from triples by the rules of classes and properties, worked out once."""

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
"""An IRI is a string; all others are tuples: of two a literal, of three a node without a name."""
Pairs = dict[Node, set[Node]]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that follows."""

    pairs: Mapping[str, Mapping[Node, set[Node]]]
    """For each property the objects of each subject."""
    inverse: Mapping[str, Mapping[Node, set[Node]]]
    kinds: Mapping[Node, frozenset[Node]]
    """For each thing the classes that it is of: a class is of itself and of all above it."""
    classes: frozenset[Node]
    things: frozenset[str]
    """The IRIs that triples are about."""


def closed(triples: Iterable[tuple[Node, str, Node]], max_facts: int) -> Facts:
    """What follows from triples. Raises OperatorError if that is more than so many facts."""
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
    """How many facts may still be added."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def spend(self, facts: int) -> None:
        self._left -= facts
        if self._left < 0:
            hint = "ontology(source, max_facts=…) allows more"
            raise OperatorError(f"more than {self._most:,} facts follow from the ontology", hint=hint)


def _property_facts(stated: Mapping[str, Pairs], budget: _Budget) -> dict[str, Pairs]:
    """The pairs of each property, with those of the properties below it, closed where it is transitive."""
    types = stated.get(TYPE, {})
    transitive = {each for each, kinds in types.items() if TRANSITIVE in kinds} | {SUBCLASS, SUBPROPERTY}
    over = stated.get(SUBPROPERTY, {})
    known = {*stated, *over, *(each for several in over.values() for each in several)}
    known |= {each for each, kinds in types.items() if not kinds.isdisjoint(_PROPERTIES)}
    known |= {*stated.get(DOMAIN, ()), *stated.get(RANGE, ())}
    edges = {each: over.get(each, set()) for each in known}
    found: dict[str, Pairs] = {}
    below: dict[str, Pairs] = defaultdict(dict)
    for cycle in reversed(list(components(edges))):  # those below come first
        own: Pairs = {}
        for each in cycle:
            _add(own, stated.get(each, {}), budget)
            _add(own, below.pop(each, {}), budget)
        if not transitive.isdisjoint(cycle):
            own = reached(own, budget)
        for each in cycle:
            found[each] = own
            for upper in edges[each] - set(cycle):
                _add(below[upper], own, budget)
    return {each: pairs for each, pairs in found.items() if isinstance(each, str)}


def _class_tree(pairs: Mapping[str, Pairs], budget: _Budget) -> Pairs:
    """For each class itself and all above it."""
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
    """The classes of each individual: stated, or by the domain and range of the properties that it stands in."""
    direct: Pairs = {}
    _add(direct, pairs.get(TYPE, {}), budget)
    for relation, kinds in pairs.get(DOMAIN, {}).items():
        _add(direct, dict.fromkeys(pairs.get(relation, {}), kinds), budget)
    for relation, kinds in pairs.get(RANGE, {}).items():
        things = {each for several in pairs.get(relation, {}).values() for each in several}
        _add(direct, {each: kinds for each in things if not is_literal(each)}, budget)
    found = {thing: {upper for kind in kinds for upper in above[kind]} for thing, kinds in direct.items()}
    budget.spend(sum(map(len, found.values())))
    return found


def _united(first: Pairs, second: Pairs, budget: _Budget) -> Pairs:
    found: Pairs = {}
    _add(found, first, budget)
    _add(found, second, budget)
    return found


def is_literal(node: Node) -> bool:
    return isinstance(node, tuple) and len(node) == 2


def _inverted(pairs: Mapping[Node, set[Node]]) -> Pairs:
    found: Pairs = {}
    for subject, things in pairs.items():
        for each in things:
            found.setdefault(each, set()).add(subject)
    return found


def _add(to: Pairs, pairs: Mapping[Node, set[Node]], budget: _Budget) -> None:
    for subject, things in pairs.items():
        budget.spend(len(things))
        to.setdefault(subject, set()).update(things)


# Graphs


def reached(edges: Mapping[Node, set[Node]], budget: _Budget) -> Pairs:
    """For each node all that a path of at least one edge leads to."""
    found: Pairs = {}
    for cycle in components(edges):
        several: set[Node] = set(cycle) if len(cycle) > 1 or cycle[0] in edges.get(cycle[0], ()) else set()
        for each in cycle:
            for following in edges.get(each, ()):
                several.add(following)
                several.update(found.get(following, ()))
        if several:
            for each in cycle:
                budget.spend(len(several))
                found[each] = several
    return found


def components(edges: Mapping[Hashable, set[Any]]) -> Iterator[Sequence[Any]]:
    """The strongly connected components of a graph, each after all that it leads to (Tarjan 1972, no recursion)."""
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
