"""Operators that reason: what kind of thing something is, and what it is related to, by an ontology in RDF."""

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


def ontology(
    source: str | Path | rdflib.Graph, *, format: str | None = None, max_facts: int = 5_000_000
) -> list[Operator]:
    """The operators `is_a(value, 'Class')` and `related(subject, 'property', ?object)` over an ontology.

    `source` is a file of RDF in Turtle (.ttl), RDF/XML (.rdf, .owl, .xml) or N-Triples (.nt), or a graph of rdflib's.
    `format` is "turtle", "xml" or "nt" where the file's name does not tell.

    A value is of a class if it names that class or one below it, or an individual of one. The rules are
    rdfs:subClassOf, owl:equivalentClass, rdfs:subPropertyOf, owl:TransitiveProperty, rdfs:domain and rdfs:range; cycles
    are fine, and other rules of OWL are not applied. All that follows is worked out here, once; OperatorError is raised
    where that is more than `max_facts`.

    A name is the last part of an IRI (`Dog`), a prefixed name (`ex:Dog`) or the whole IRI. One that several IRIs end
    in is refused. Variables are bound to the shortest of them that is not ambiguous, and to the values of literals.
    Any argument but the value may be a variable. A value that the ontology does not know is of no class.

    Raises OperatorError if the RDF is wrong, SourceError if the file cannot be read, and MissingExtraError.
    """
    known = Ontology(*_closed(_graph_of(source, format), max_facts))
    value = OperatorParameter("value", Kind.STRING)
    kind = OperatorParameter("class", Kind.STRING, may_be_free=True, check=known.check_class)
    subject = OperatorParameter("subject", Kind.STRING, may_be_free=True)
    relation = OperatorParameter("property", Kind.STRING, may_be_free=True, check=known.check_property)
    thing = OperatorParameter("object", may_be_free=True)
    return [
        declared("is_a", known.is_a, value, kind, most_failures=NEVER),
        declared("related", known.related, subject, relation, thing, most_failures=NEVER),
    ]


class Names:
    """What things are called: IRIs by their last parts, their prefixed names and themselves."""

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
        """The IRI that is meant, if it is known. Raises OperatorError if several are."""
        found = self._iris.get(name, []) if isinstance(name, str) else []
        if len(found) > 1:
            shown = ", ".join(f"`{each}`" for each in found[:_SHOWN])
            message = f"`{name}` is ambiguous: it is the {self._what} {shown}{' and others' if found[_SHOWN:] else ''}"
            raise OperatorError(f"{message}: write a prefixed name or the whole IRI")
        return found[0] if found else None

    def known(self, name: Any) -> str:
        """The IRI that is meant. Raises OperatorError."""
        found = self.iri(name)
        if found is None:
            raise unknown(self._what, name, self._iris)
        return found

    def short(self, iri: str) -> str | None:
        """What to call an IRI in answers; None if it has no name."""
        return self._short.get(iri)


def _forms(iri: str, prefixes: Mapping[str, str]) -> list[str]:
    """What an IRI may be called, from the shortest on."""
    local = iri.rstrip("#/")
    for mark in "#/:":
        local = local.rpartition(mark)[2]
    spaces = sorted((space for space in prefixes if iri.startswith(space)), key=len, reverse=True)
    prefixed = [f"{prefixes[space]}:{iri[len(space) :]}" for space in spaces]
    return list(dict.fromkeys([*([local] if local and not _is_vocabulary(iri) else []), *prefixed, iri]))


def _is_vocabulary(node: Any) -> bool:
    """Whether it is a word of RDF or OWL themselves."""
    return isinstance(node, str) and node.startswith(_VOCABULARIES)


class Ontology:
    """All that follows from an ontology, by name. Nothing in it changes, so threads may share it."""

    def __init__(self, facts: Facts, prefixes: Mapping[str, str]) -> None:
        self._facts = facts
        self._things = Names(facts.things, prefixes, "thing")
        self._classes = Names((each for each in facts.classes if each in facts.things), prefixes, "class")
        self._properties = Names((each for each in facts.pairs if each in facts.things), prefixes, "property")

    def check_class(self, name: Any) -> None:
        """Raise OperatorError if there is no such class."""
        self._classes.known(name)

    def check_property(self, name: Any) -> None:
        """Raise OperatorError if there is no such property."""
        self._properties.known(name)

    def is_a(self, events: Sequence[Any], values: Any, classes: Any) -> list[Any]:
        return [attempt(self._is_a, *row) for row in rows_of(events, values, classes)]

    def related(self, events: Sequence[Any], subjects: Any, properties: Any, objects: Any) -> list[Any]:
        return [attempt(self._related, *row) for row in rows_of(events, subjects, properties, objects)]

    def _is_a(self, value: Any, kind: Any) -> bool | list[Any]:
        wanted = None if kind is FREE else self._classes.known(kind)
        thing = self._things.iri(value)
        above = self._facts.kinds.get(thing, frozenset()) if thing is not None else frozenset()
        if wanted is not None:
            return wanted in above
        named = (self._classes.short(each) for each in above if not _is_vocabulary(each))
        return sorted(name for name in named if name is not None)

    def _related(self, subject: Any, relation: Any, thing: Any) -> bool | list[tuple[Any, ...]]:
        free = [each is FREE for each in (subject, relation, thing)]
        relations = list(self._facts.pairs) if relation is FREE else [self._properties.known(relation)]
        found = []
        for each in relations:
            name = self._properties.short(each)
            for one, other in self._pairs(each, subject, thing):
                values = (self._value(one), name, self._value(other))
                found.append(tuple(value for value, is_free in zip(values, free, strict=True) if is_free))
        return found if any(free) else bool(found)

    def _pairs(self, relation: str, subject: Any, thing: Any) -> Iterator[tuple[Any, Any]]:
        """Subjects and objects of a property, of those that are given."""
        forth, back = self._facts.pairs[relation], self._facts.inverse[relation]
        if subject is not FREE:
            ends: Iterable[Any] = forth.get(self._things.iri(subject), ())
            yield from ((subject, end) for end in ends if thing is FREE or end in self._objects(thing))
        elif thing is not FREE:
            yield from ((start, thing) for end in self._objects(thing) for start in back.get(end, ()))
        else:
            yield from ((start, end) for start, ends in forth.items() for end in ends)

    def _objects(self, given: Any) -> list[Any]:
        """What a value of an event may be in facts: the thing of that name, or a literal."""
        if type(given) not in KINDS:
            raise OperatorError(f"{given!r:.40} is neither a name nor a value")
        thing = self._things.iri(given) if isinstance(given, str) else None
        return [literal_key(given), *([thing] if thing is not None else [])]

    def _value(self, found: Any) -> Any:
        """What is bound; None for a node without a name."""
        return found[1] if isinstance(found, tuple) else self._things.short(found) if isinstance(found, str) else found


def literal_key(value: Any) -> tuple[Kind | None, Any]:
    """A literal as it is held in facts: values are the same if they are of one kind and equal."""
    return KINDS.get(type(value)), utc(value) if isinstance(value, datetime) else value


def _graph_of(source: Any, format: str | None) -> Any:
    with needing_extra():
        import rdflib
    if isinstance(source, rdflib.Graph):
        return source
    if not isinstance(source, str | Path):
        raise OperatorError(f"an ontology is a file or a graph of rdflib's, not a {type(source).__name__}")
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
    except Exception as problem:  # each of its parsers has errors of its own
        told = " ".join(str(problem).split())
        raise OperatorError(f"{path} is not RDF in the format {chosen}: {told:.200}") from problem
    return graph


def _closed(graph: Any, max_facts: int) -> tuple[Facts, dict[str, str]]:
    triples = [(_node(one), str(relation), _node(other)) for one, relation, other in graph]
    prefixes = {str(space): prefix for prefix, space in graph.namespaces()}
    return closed(triples, max_facts), prefixes


def _node(term: Any) -> Any:
    """An IRI as a string; a literal as its kind and value; a node without a name as itself."""
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
