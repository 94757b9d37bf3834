"""Operators over an ontology in RDF: the classes of a thing, and its relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import OperatorError, SourceError, needing_extra
from harken.operators.box.closure import Facts, closed
from harken.operators.box.declaring import NEVER, attempt, declared, rows_of, unknown
from harken.operators.operator import FREE, Operator
from harken.schema.signatures import OperatorParameter
from harken.schema.values import KINDS, Kind, utc

if TYPE_CHECKING:
    import rdflib

_FORMATS = {".ttl": "turtle", ".rdf": "xml", ".owl": "xml", ".xml": "xml", ".nt": "nt"}
_VOCABULARIES = (
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2002/07/owl#",
    "http://www.w3.org/2001/XMLSchema#",
)
_SHOWN = 3
"""IRIs that a message about an ambiguous name shows."""


def ontology(
    source: str | Path | rdflib.Graph, *, format: str | None = None, max_facts: int = 5_000_000
) -> list[Operator]:
    """The operators `is_a(value, 'Class')` and `related(subject, 'property', ?object)` over an ontology.

    `source` is an RDF file in Turtle (.ttl), RDF/XML (.rdf, .owl, .xml) or N-Triples (.nt), or an rdflib graph.
    `format` is "turtle", "xml" or "nt", needed if the file's name has none of these endings.

    A value is of a class if it names the class, a subclass, or an individual of either. The rules are rdfs:subClassOf,
    owl:equivalentClass, rdfs:subPropertyOf, owl:TransitiveProperty, rdfs:domain and rdfs:range. Cycles are allowed;
    other rules of OWL are not applied. The facts that follow are computed once, when the operators are made. More than
    `max_facts` raise OperatorError.

    A name is the last part of an IRI (`Dog`), a prefixed name (`ex:Dog`) or the whole IRI. A name that several IRIs
    share is an error. Variables are bound to the shortest name that is not ambiguous, and to the values of literals.
    Any argument but the value may be a variable. A value that is not in the ontology is of no class.

    Raises OperatorError if the RDF is wrong, SourceError if the file cannot be read, and MissingExtraError.
    """
    facts = Ontology(*_closed(_graph_of(source, format), max_facts))
    value = OperatorParameter("value", Kind.STRING)
    kind = OperatorParameter("class", Kind.STRING, may_be_free=True, check=facts.check_class)
    subject = OperatorParameter("subject", Kind.STRING, may_be_free=True)
    relation = OperatorParameter("property", Kind.STRING, may_be_free=True, check=facts.check_property)
    thing = OperatorParameter("object", may_be_free=True)
    return [
        declared("is_a", facts.is_a, value, kind, most_failures=NEVER),
        declared("related", facts.related, subject, relation, thing, most_failures=NEVER),
    ]


class Names:
    """IRIs by name: the last part of the IRI, the prefixed name, and the IRI itself."""

    def __init__(self, iris: Iterable[str], prefixes: Mapping[str, str], what: str) -> None:
        self._what = what
        self._iris: dict[str, list[str]] = {}
        self._short: dict[str, str] = {}
        forms = {iri: _forms(iri, prefixes) for iri in sorted(iris)}
        for iri, several in forms.items():
            for form in several:
                self._iris.setdefault(form, []).append(iri)
        for iri, several in forms.items():
            self._short[iri] = next((form for form in several if self._iris[form] == [iri]), iri)

    def iri(self, name: Any) -> str | None:
        """The IRI of a name; None if there is none. Raises OperatorError if there are several."""
        iris = self._iris.get(name, []) if isinstance(name, str) else []
        if len(iris) > 1:
            shown = ", ".join(f"`{each}`" for each in iris[:_SHOWN])
            message = f"`{name}` is ambiguous: it is the {self._what} {shown}{' and others' if iris[_SHOWN:] else ''}"
            raise OperatorError(f"{message}: write a prefixed name or the whole IRI")
        return iris[0] if iris else None

    def existing_iri(self, name: Any) -> str:
        """The IRI of a name. Raises OperatorError unless there is exactly one."""
        iri = self.iri(name)
        if iri is None:
            raise unknown(self._what, name, self._iris)
        return iri

    def short(self, iri: str) -> str | None:
        """The shortest unambiguous name of an IRI; None if it has no name."""
        return self._short.get(iri)


def _forms(iri: str, prefixes: Mapping[str, str]) -> list[str]:
    """The names of an IRI, the shortest first."""
    local = iri.rstrip("#/")
    for mark in "#/:":
        local = local.rpartition(mark)[2]
    spaces = sorted((space for space in prefixes if iri.startswith(space)), key=len, reverse=True)
    prefixed = [f"{prefixes[space]}:{iri[len(space) :]}" for space in spaces]
    return list(dict.fromkeys([*([local] if local and not _is_vocabulary(iri) else []), *prefixed, iri]))


def _is_vocabulary(node: Any) -> bool:
    """Whether a node is a term of RDF, RDFS, OWL or XML Schema."""
    return isinstance(node, str) and node.startswith(_VOCABULARIES)


class Ontology:
    """The facts of an ontology, by name. Nothing in it changes, so threads may share it."""

    def __init__(self, facts: Facts, prefixes: Mapping[str, str]) -> None:
        self._facts = facts
        self._things = Names(facts.things, prefixes, "thing")
        self._classes = Names((each for each in facts.classes if each in facts.things), prefixes, "class")
        self._properties = Names((each for each in facts.pairs if each in facts.things), prefixes, "property")

    def check_class(self, name: Any) -> None:
        """Raise OperatorError if there is no such class."""
        self._classes.existing_iri(name)

    def check_property(self, name: Any) -> None:
        """Raise OperatorError if there is no such property."""
        self._properties.existing_iri(name)

    def is_a(self, events: Sequence[Any], values: Any, classes: Any) -> list[Any]:
        return [attempt(self._is_a, *row) for row in rows_of(events, values, classes)]

    def related(self, events: Sequence[Any], subjects: Any, properties: Any, objects: Any) -> list[Any]:
        return [attempt(self._related, *row) for row in rows_of(events, subjects, properties, objects)]

    def _is_a(self, value: Any, kind: Any) -> bool | list[Any]:
        wanted = None if kind is FREE else self._classes.existing_iri(kind)
        thing = self._things.iri(value)
        above = self._facts.kinds.get(thing, frozenset()) if thing is not None else frozenset()
        if wanted is not None:
            return wanted in above
        named = (self._classes.short(each) for each in above if not _is_vocabulary(each))
        return sorted(name for name in named if name is not None)

    def _related(self, subject: Any, relation: Any, thing: Any) -> bool | list[tuple[Any, ...]]:
        free = [each is FREE for each in (subject, relation, thing)]
        relations = list(self._facts.pairs) if relation is FREE else [self._properties.existing_iri(relation)]
        bindings = []
        for each in relations:
            name = self._properties.short(each)
            for one, other in self._pairs(each, subject, thing):
                values = (self._value(one), name, self._value(other))
                bindings.append(tuple(value for value, is_free in zip(values, free, strict=True) if is_free))
        return bindings if any(free) else bool(bindings)

    def _pairs(self, relation: str, subject: Any, thing: Any) -> Iterator[tuple[Any, Any]]:
        """The subjects and objects of a property; where one of them is not FREE, only those that have it."""
        forth, back = self._facts.pairs[relation], self._facts.inverse[relation]
        if subject is not FREE:
            ends: Iterable[Any] = forth.get(self._things.iri(subject), ())
            yield from ((subject, end) for end in ends if thing is FREE or end in self._objects(thing))
        elif thing is not FREE:
            yield from ((start, thing) for end in self._objects(thing) for start in back.get(end, ()))
        else:
            yield from ((start, end) for start, ends in forth.items() for end in ends)

    def _objects(self, given: Any) -> list[Any]:
        """The nodes that a value of an event may stand for: the literal, and the thing of that name if there is one."""
        if type(given) not in KINDS:
            raise OperatorError(f"{given!r:.40} is neither a name nor a value")
        thing = self._things.iri(given) if isinstance(given, str) else None
        return [literal_key(given), *([thing] if thing is not None else [])]

    def _value(self, node: Any) -> Any:
        """A node as the value to bind; None for a blank node."""
        return node[1] if isinstance(node, tuple) else self._things.short(node) if isinstance(node, str) else node


def literal_key(value: Any) -> tuple[Kind | None, Any]:
    """A literal as a node: equal nodes have equal values of one kind."""
    return KINDS.get(type(value)), utc(value) if isinstance(value, datetime) else value


def _graph_of(source: Any, format: str | None) -> Any:
    with needing_extra():
        import rdflib
    if isinstance(source, rdflib.Graph):
        return source
    if not isinstance(source, str | Path):
        raise OperatorError(f"an ontology is a file or an rdflib graph, not a {type(source).__name__}")
    path = Path(source)
    chosen = format or _FORMATS.get(path.suffix.lower())
    if chosen not in _FORMATS.values():
        hint = 'ontology(source, format="turtle"), or "xml" or "nt"'
        raise OperatorError(f"{path} is in no known format: `{format or path.suffix}`", hint=hint)
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise SourceError(f"{path} cannot be read: {problem.strerror or problem}") from problem
    graph = rdflib.Graph(bind_namespaces="core")
    try:
        graph.parse(data=data, format=chosen, publicID=path.absolute().as_uri())
    except Exception as problem:  # each parser of rdflib has errors of its own
        reason = " ".join(str(problem).split())
        raise OperatorError(f"{path} is not RDF in the format {chosen}: {reason:.200}") from problem
    return graph


def _closed(graph: Any, max_facts: int) -> tuple[Facts, dict[str, str]]:
    triples = [(_node(one), str(relation), _node(other)) for one, relation, other in graph]
    prefixes = {str(space): prefix for prefix, space in graph.namespaces()}
    return closed(triples, max_facts), prefixes


def _node(term: Any) -> Any:
    """A term of rdflib as a node of `closure`."""
    import rdflib

    if isinstance(term, rdflib.URIRef):
        return str(term)
    if not isinstance(term, rdflib.Literal):
        return ("_", None, str(term))
    value = term.toPython()
    if isinstance(value, Decimal):
        value = float(value)
    if not isinstance(value, int | float | bool | datetime | date) or type(value) not in KINDS:
        value = str(term)
    return literal_key(value)
