"""What follows from an ontology against rules applied until nothing new comes, and the operators through an engine."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

import harken
from harken.errors import CheckError, OperatorError, SourceError
from harken.operators.box import ontology
from harken.operators.box.closure import DOMAIN, EQUIVALENT, RANGE, SUBCLASS, SUBPROPERTY, TRANSITIVE, TYPE, closed

Triple = tuple[Any, Any, Any]

ZOO = """
@prefix ex: <http://example.org/zoo#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:Mammal rdfs:subClassOf ex:Animal .
ex:Dog rdfs:subClassOf ex:Mammal ; owl:equivalentClass ex:Hound .
ex:Beagle rdfs:subClassOf ex:Hound .
ex:Keeper a owl:Class .
ex:partOf a owl:TransitiveProperty .
ex:memberOf rdfs:subPropertyOf ex:partOf .
ex:feeds rdfs:domain ex:Keeper ; rdfs:range ex:Animal .
ex:handFeeds rdfs:subPropertyOf ex:feeds .
ex:rex a ex:Beagle ; ex:memberOf ex:pack ; ex:age 7 ; ex:called "Rex" ; ex:weight 8.5 ;
    ex:born "2019-05-04"^^xsd:date ; ex:seen "2024-01-01T12:00:00Z"^^xsd:dateTime .
ex:pack ex:partOf ex:zoo .
ex:ann ex:handFeeds ex:leo .
"""


def graph(turtle: str = ZOO) -> rdflib.Graph:
    return rdflib.Graph(bind_namespaces="core").parse(data=turtle, format="turtle")


# What follows


def fixpoint(triples: set[Triple]) -> set[Triple]:
    """Every rule on every pair of facts, until nothing new comes."""
    known = set(triples)
    while True:
        new: set[Triple] = set()
        for one, relation, other in known:
            if relation == EQUIVALENT:
                new |= {(one, SUBCLASS, other), (other, SUBCLASS, one)}
            for subject, rule, thing in known:
                if rule == SUBPROPERTY and subject == relation:
                    new.add((one, thing, other))
                if rule == DOMAIN and subject == relation:
                    new.add((one, TYPE, thing))
                if rule == RANGE and subject == relation and not isinstance(other, tuple):
                    new.add((other, TYPE, thing))
                if rule == SUBCLASS and relation == TYPE and other == subject:
                    new.add((one, TYPE, thing))
                is_transitive = relation in (SUBCLASS, SUBPROPERTY) or (relation, TYPE, TRANSITIVE) in known
                if is_transitive and rule == relation and subject == other:
                    new.add((one, relation, thing))
        if new <= known:
            return known
        known |= new


CLASSES = st.sampled_from([f"C{number}" for number in range(5)])
RELATIONS = st.sampled_from([f"p{number}" for number in range(4)])
THINGS = st.sampled_from([f"x{number}" for number in range(5)])
LITERALS = st.sampled_from([("number", 1), ("string", "x")])
TRIPLES = st.one_of(
    st.tuples(CLASSES, st.sampled_from([SUBCLASS, EQUIVALENT]), CLASSES),
    st.tuples(RELATIONS, st.just(SUBPROPERTY), RELATIONS),
    st.tuples(RELATIONS, st.just(TYPE), st.just(TRANSITIVE)),
    st.tuples(RELATIONS, st.sampled_from([DOMAIN, RANGE]), CLASSES),
    st.tuples(THINGS, st.just(TYPE), CLASSES),
    st.tuples(THINGS, RELATIONS, THINGS),
    st.tuples(THINGS, RELATIONS, LITERALS),
)


@given(st.sets(TRIPLES, max_size=14))
def test_all_that_follows_and_nothing_else(triples: set[Triple]) -> None:
    facts = closed(triples, 10_000)
    closure = {
        (subject, relation, thing)
        for relation, pairs in facts.pairs.items()
        for subject, things in pairs.items()
        for thing in things
    }
    # A class is below itself or not, as one likes.
    expected = {each for each in fixpoint(triples) if not (each[1] == SUBCLASS and each[0] == each[2])}
    assert closure == expected
    assert closure == {
        (subject, relation, thing)
        for relation, pairs in facts.inverse.items()
        for thing, subjects in pairs.items()
        for subject in subjects
    } | {each for each in closure if each[1] not in facts.inverse}
    for thing, kinds in facts.kinds.items():
        above = {other for one, relation, other in expected if one == thing and relation in (TYPE, SUBCLASS)}
        assert kinds == above | ({thing} & facts.classes)


def test_a_long_chain_and_a_long_cycle() -> None:
    chain = [(f"C{number}", SUBCLASS, f"C{number + 1}") for number in range(500)]
    facts = closed(chain, 10_000_000)
    assert len(facts.kinds["C0"]) == 501
    facts = closed([*chain, ("C500", SUBCLASS, "C0")], 50_000_000)
    assert all(len(kinds) == 501 for kinds in facts.kinds.values())


def test_more_facts_than_allowed() -> None:
    chain = [(f"C{number}", SUBCLASS, f"C{number + 1}") for number in range(200)]
    with pytest.raises(OperatorError, match="more than 1,000 facts follow from the ontology") as caught:
        closed(chain, 1_000)
    assert caught.value.hint == "ontology(source, max_facts=…) allows more"


# The operators


def test_is_a() -> None:
    is_a, _ = ontology(graph())
    cases = [
        ("Beagle", "Animal", True),
        ("Dog", "Hound", True),
        ("Hound", "Dog", True),
        ("Animal", "Dog", False),
        ("Animal", "Animal", True),
        ("rex", "ex:Dog", True),
        ("http://example.org/zoo#rex", "http://example.org/zoo#Mammal", True),
        ("leo", "Animal", True),  # by the range of a property above
        ("ann", "Keeper", True),  # by its domain
        ("ann", "Animal", False),
        ("unicorn", "Animal", False),
        (7, "Animal", False),
    ]
    values, classes, expected = zip(*cases, strict=True)
    assert is_a([{}] * len(values), values, classes) == list(expected)
    assert is_a([{}] * 2, ["rex", "nobody"], harken.FREE) == [["Animal", "Beagle", "Dog", "Hound", "Mammal"], []]


def test_related() -> None:
    _, related = ontology(graph())

    def ask(*arguments: Any) -> Any:
        (answer,) = related([{}], *(each if each is harken.FREE else [each] for each in arguments))
        return sorted(answer) if isinstance(answer, list) else answer

    free = harken.FREE
    assert ask("rex", "partOf", free) == [("pack",), ("zoo",)]
    assert ask("rex", "memberOf", free) == [("pack",)]
    assert ask(free, "partOf", "zoo") == [("pack",), ("rex",)]
    assert ask(free, "feeds", free) == [("ann", "leo")]
    assert ask("ann", free, "leo") == [("feeds",), ("handFeeds",)]
    assert ask("ann", "feeds", "leo") is True
    assert ask("ann", "feeds", "rex") is False
    assert ask("nobody", "feeds", free) == []
    assert ask("rex", "age", free) == [(7,)]
    assert ask("rex", "age", 7.0) is True
    assert ask("rex", "age", True) is False
    assert ask("rex", "called", "Rex") is True
    assert ask("rex", "weight", free) == [(8.5,)]
    assert ask("rex", "born", free) == [(date(2019, 5, 4),)]
    assert ask("rex", "seen", free) == [(datetime(2024, 1, 1, 12, tzinfo=UTC),)]
    assert ask("rex", "seen", datetime(2024, 1, 1, 12, tzinfo=UTC)) is True
    assert ask("rex", "rdf:type", "Animal") is True


def test_an_engine_that_reasons() -> None:
    engine = harken.Engine(operators=ontology(graph()))
    engine.subscribe("animals", "is_a(kind, 'Animal') AND weight > 5")
    engine.subscribe("others", "NOT is_a(kind, 'Animal')")
    engine.subscribe("in the zoo", "related(who, 'partOf', ?whole) AND ?whole = 'zoo'")
    engine.subscribe("old", "related(who, 'age', ?age) AND ?age > 5 AND is_a(who, ?kind) AND ?kind = 'Dog'")
    with pytest.raises(CheckError, match="there is no class `Animel`: did you mean `Animal`"):
        engine.subscribe("typo", "is_a(kind, 'Animel')")
    with pytest.raises(CheckError, match="there is no property `partof`: did you mean `partOf`"):
        engine.subscribe("no such", "related(who, 'partof', ?whole)")
    engine.subscribe("asked", "is_a(kind, asked)")
    beagle = {"kind": "Beagle", "weight": 9, "asked": "Animel"}
    matches = engine.match_batch([beagle, {"kind": "stone"}, {"who": "rex"}, {"who": "ann"}])
    assert [sorted(ids) for ids in matches.ids] == [["animals"], ["others"], ["in the zoo", "old"], []]
    messages = {(index, id): str(error) for index, id, error in matches.errors}
    assert "there is no class `Animel`: did you mean `Animal`" in messages[0, "asked"]
    assert set(messages) == {(0, "asked")}


def test_ambiguous_names_are_rejected() -> None:
    both = ZOO + "@prefix shop: <http://example.org/shop#> . shop:Dog rdfs:subClassOf shop:Toy . shop:d a shop:Dog ."
    is_a, _ = ontology(graph(both))
    assert is_a([{}] * 2, ["ex:Dog", "shop:Dog"], ["Animal", "Toy"]) == [True, True]
    assert is_a([{}], ["d"], harken.FREE) == [["Toy", "shop:Dog"]]
    for arguments in (("Dog", "Animal"), ("rex", "Dog")):
        engine = harken.Engine(operators=[is_a])
        engine.subscribe("a", "is_a(kind, asked)")
        ((_, _, error),) = engine.match_batch([{"kind": arguments[0], "asked": arguments[1]}]).errors
        assert "`Dog` is ambiguous: it is the" in str(error)
        assert "write a prefixed name or the whole IRI" in str(error)


def test_values_that_are_no_names() -> None:
    _, related = ontology(graph())
    engine = harken.Engine(operators=[related])
    engine.subscribe("a", "related('rex', 'age', what)")
    matches = engine.match_batch([{"what": [1, 2]}, {"what": 7}])
    assert matches.ids == [[], ["a"]]
    assert "[1, 2] is neither a name nor a value" in str(matches.errors[0][2])


def test_nodes_without_names_lead_on_and_are_not_bound() -> None:
    turtle = ZOO + "ex:Cat rdfs:subClassOf [ rdfs:subClassOf ex:Animal ] . ex:leo ex:near [ ex:age 3 ] ."
    is_a, related = ontology(graph(turtle))
    assert is_a([{}], ["Cat"], ["Animal"]) == [True]
    assert is_a([{}], ["Cat"], harken.FREE) == [["Animal", "Cat"]]
    engine = harken.Engine(operators=[related])
    engine.subscribe("a", "related('leo', 'near', ?what)")
    assert engine.match({"x": 1}).ids == []


def test_operators_go_to_other_processes() -> None:
    is_a, related = (pickle.loads(pickle.dumps(each)) for each in ontology(graph()))
    assert is_a([{}], ["rex"], ["Animal"]) == [True]
    assert related([{}], ["rex"], ["memberOf"], harken.FREE) == [[("pack",)]]


# Files


@pytest.mark.parametrize(
    ("name", "format"), [("zoo.ttl", "turtle"), ("zoo.rdf", "xml"), ("zoo.OWL", "xml"), ("zoo.nt", "nt"), ("zoo", "nt")]
)
def test_each_format_is_read(tmp_path: Path, name: str, format: str) -> None:
    path = tmp_path / name
    path.write_text(graph().serialize(format=format), encoding="utf-8")
    for source in (path, str(path)):
        is_a, _ = ontology(source, format=None if path.suffix else format)
        assert is_a([{}] * 2, ["rex", "ann"], ["Animal", "Animal"]) == [True, False]


@pytest.mark.parametrize(
    ("name", "content"), [("a.ttl", "ex:Dog a ex:Class ."), ("a.rdf", "<rdf"), ("a.nt", "a b c"), ("b.ttl", "\xff")]
)
def test_wrong_rdf(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(OperatorError, match=rf"{name} is not RDF in the format"):
        ontology(path)


def test_what_is_no_ontology(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere\.ttl cannot be read: No such file"):
        ontology(tmp_path / "nowhere.ttl")
    with pytest.raises(OperatorError, match=r"is in no known format: `\.json`") as caught:
        ontology(tmp_path / "zoo.json")
    assert caught.value.hint == 'ontology(source, format="turtle"), or "xml" or "nt"'
    with pytest.raises(OperatorError, match="an ontology is a file or an rdflib graph, not a int"):
        ontology(7)  # type: ignore[arg-type]
