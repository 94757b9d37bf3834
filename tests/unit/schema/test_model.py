"""The schema as a value, its views, and the consistency rules R1 to R3."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import (
    AttributeRuleError,
    EventTypeError,
    ExtensionError,
    ExtraAttributeError,
    InvalidValueError,
    SchemaError,
)
from harken.schema import (
    BUILT_IN,
    EVENT_TYPE,
    EventType,
    IntegerDomain,
    Rule,
    Schema,
    parse_path,
)

PRICE, QUANTITY, PERIOD = ("price",), ("quantity",), ("period",)
CATEGORY, MATERIAL = ("furniture_category",), ("material",)

E1 = {EVENT_TYPE: ["antiques", "furniture"], PRICE: [200], QUANTITY: [2], PERIOD: ["XVI"], CATEGORY: ["table"]}
E2 = {EVENT_TYPE: ["antiques", "furniture"], PRICE: [100], QUANTITY: [1], PERIOD: ["XVIII"]}
CHAIR = {EVENT_TYPE: ["furniture"], PRICE: [10.5], QUANTITY: [1], CATEGORY: ["chair"]}


def kinds_of_fault(schema, event):
    return [type(fault) for fault in schema.faults(event)]


# The paper's example


def test_the_papers_first_event_is_consistent(antiques_and_furniture):
    assert antiques_and_furniture.faults(E1) == []
    assert antiques_and_furniture.validate(E1) == {path: tuple(values) for path, values in E1.items()}


def test_the_papers_second_event_violates_r2(antiques_and_furniture):
    with pytest.raises(AttributeRuleError, match="`furniture_category`, mandatory in event type `furniture`"):
        antiques_and_furniture.validate(E2)
    assert kinds_of_fault(antiques_and_furniture, E2) == [AttributeRuleError]


def test_event_type_is_an_attribute_with_a_domain(antiques_and_furniture):
    assert antiques_and_furniture.domain_of(EVENT_TYPE).values == ("antiques", "furniture")
    assert antiques_and_furniture.domain_of(PRICE) == BUILT_IN["float"]
    assert antiques_and_furniture.domain_of(("colour",)) is None
    assert Schema().domain_of(EVENT_TYPE) is None


# R1


@pytest.mark.parametrize("types", [[], ["furnitur"], [5], ["furniture", "lamps"]])
def test_r1_an_event_names_its_types(antiques_and_furniture, types):
    assert EventTypeError in kinds_of_fault(antiques_and_furniture, CHAIR | {EVENT_TYPE: types})


def test_r1_guesses_what_was_meant(antiques_and_furniture):
    (fault,) = antiques_and_furniture.faults(CHAIR | {EVENT_TYPE: ["furnitur"]})
    assert fault.hint == "did you mean `furniture`?"
    (fault,) = antiques_and_furniture.faults({PRICE: [1]})
    assert "`antiques`, `furniture`" in fault.hint


def test_an_unknown_type_does_not_make_its_attributes_extra(antiques_and_furniture):
    event = CHAIR | {EVENT_TYPE: ["furniture", "antiqes"], PERIOD: ["XVI"]}
    assert kinds_of_fault(antiques_and_furniture, event) == [EventTypeError]


def test_a_type_named_twice_is_one(antiques_and_furniture):
    assert antiques_and_furniture.faults(CHAIR | {EVENT_TYPE: ["furniture", "furniture"]}) == []


# R2


@pytest.mark.parametrize("missing", [PRICE, QUANTITY, CATEGORY])
def test_r2_a_mandatory_attribute_is_there(antiques_and_furniture, missing):
    without = {path: values for path, values in CHAIR.items() if path != missing}
    assert kinds_of_fault(antiques_and_furniture, without) == [AttributeRuleError]
    assert kinds_of_fault(antiques_and_furniture, CHAIR | {missing: []}) == [AttributeRuleError]


def test_r2_an_optional_attribute_need_not_be_there(antiques_and_furniture):
    assert antiques_and_furniture.faults(CHAIR) == []
    assert antiques_and_furniture.faults(CHAIR | {MATERIAL: ["oak"]}) == []


def test_r2_a_unique_attribute_has_one_value(antiques_and_furniture):
    (fault,) = antiques_and_furniture.faults(CHAIR | {PRICE: [10, 12, 10]})
    assert type(fault) is AttributeRuleError
    assert "2 values" in fault.message


def test_r2_the_same_value_twice_is_one_and_keeps_its_places(antiques_and_furniture):
    assert antiques_and_furniture.validate(CHAIR | {PRICE: [10, 10.0]})[PRICE] == (10, 10.0)


def test_r2_values_are_in_their_domain(antiques_and_furniture):
    (fault,) = antiques_and_furniture.faults(CHAIR | {CATEGORY: ["tables"]})
    assert type(fault) is InvalidValueError
    assert fault.message.startswith("attribute `furniture_category`: expected one of")
    assert fault.hint == "did you mean `table`?"


# R3


def test_r3_no_attributes_of_other_types(antiques_and_furniture):
    (fault,) = antiques_and_furniture.faults(CHAIR | {PERIOD: ["XVI"]})
    assert type(fault) is ExtraAttributeError
    assert "does not belong to event type `furniture`" in fault.message


def test_r3_no_attributes_that_nobody_declared(antiques_and_furniture):
    (fault,) = antiques_and_furniture.faults(CHAIR | {("materiel",): ["oak"]})
    assert type(fault) is ExtraAttributeError
    assert fault.hint == "did you mean `material`?"


# All the faults


def test_every_fault_is_reported_and_the_first_is_raised(antiques_and_furniture):
    event = {
        EVENT_TYPE: ["antiques", "furniture"],
        PRICE: ["dear"],
        QUANTITY: [1, 2],
        ("colour",): ["red"],
        PERIOD: ["XVI"],
    }
    assert kinds_of_fault(antiques_and_furniture, event) == [
        InvalidValueError,
        AttributeRuleError,
        ExtraAttributeError,
        AttributeRuleError,
    ]
    with pytest.raises(InvalidValueError, match="`price`") as caught:
        antiques_and_furniture.validate(event)
    assert "and 3 more faults" in str(caught.value)


def test_an_event_of_nonsense_is_rejected_in_good_time(antiques_and_furniture):
    event = CHAIR | {(f"material{n}",): ["x"] for n in range(5_000)}
    faults = antiques_and_furniture.faults(event)
    assert len(faults) == 5_000
    assert {type(fault) for fault in faults} == {ExtraAttributeError}


def test_only_the_first_faults_get_hints_because_looking_takes_time(antiques_and_furniture):
    faults = antiques_and_furniture.faults(CHAIR | {(f"material{n}",): ["x"] for n in range(50)})
    assert [fault.hint is not None for fault in faults] == [True] * 10 + [False] * 40


# Open schemas


def test_without_event_types_every_attribute_is_optional_and_multiple():
    schema = Schema(attributes={PRICE: BUILT_IN["float"], ("qty",): BUILT_IN["integer"]})
    assert schema.validate({}) == {}
    assert schema.validate({("qty",): [2.0, 3], PRICE: []}) == {("qty",): (2, 3)}
    assert kinds_of_fault(schema, {("qty",): ["many"], PRICE: [True]}) == [InvalidValueError, InvalidValueError]


def test_an_open_schema_passes_on_what_it_does_not_declare():
    schema = Schema(attributes={PRICE: BUILT_IN["float"]})
    event = {EVENT_TYPE: ["anything"], ("colour",): ["red", 5], PRICE: [1]}
    assert schema.validate(event) == {EVENT_TYPE: ("anything",), ("colour",): ("red", 5), PRICE: (1,)}


# What is a schema


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"attributes": {EVENT_TYPE: BUILT_IN["string"]}}, "event_type"),
        ({"attributes": {(): BUILT_IN["string"]}}, "empty key"),
        ({"attributes": {("a", ""): BUILT_IN["string"]}}, "empty key"),
        ({"attributes": {PRICE: IntegerDomain("euros")}}, "no domain `euros`"),
        ({"domains": {"a": IntegerDomain("a", 1)}, "attributes": {PRICE: IntegerDomain("a")}}, "than the schema"),
        ({"domains": {"a": IntegerDomain("b")}}, "has the key"),
        ({"domains": {"event_type": IntegerDomain("event_type")}}, "cannot be the name"),
        ({"event_types": {"a": EventType("b")}}, "has the key"),
        ({"event_types": {"": EventType("")}}, "needs a name"),
        ({"event_types": {"a": EventType("a", {PRICE: Rule()})}}, "no attribute `price`"),
        ({"event_types": {"a": EventType("a", {EVENT_TYPE: Rule()})}}, "takes no rule"),
        ({"version": 0}, "from 1"),
    ],
)
def test_what_is_no_schema(parts, message):
    with pytest.raises(SchemaError, match=message):
        Schema(**parts)


def test_built_in_domains_keep_their_names():
    with pytest.raises(ExtensionError, match="built in"):
        Schema(domains={"integer": IntegerDomain("integer", 1)})


def test_schemas_are_values(antiques_and_furniture):
    schema = antiques_and_furniture
    copy = pickle.loads(pickle.dumps(schema))
    assert copy == schema
    assert hash(copy) == hash(schema)
    assert copy.faults(E1) == []
    later = Schema(schema.domains, schema.attributes, schema.event_types, version=7)
    assert later == schema
    assert Schema(schema.domains, schema.attributes) != schema
    with pytest.raises(AttributeError):
        schema.version = 2


def test_a_schema_does_not_follow_the_mappings_that_it_was_made_of():
    attributes = {PRICE: BUILT_IN["float"]}
    rules = {PRICE: Rule()}
    schema = Schema(attributes=attributes, event_types={"a": EventType("a", rules)})
    attributes[QUANTITY] = BUILT_IN["integer"]
    rules[PRICE] = Rule(mandatory=True)
    assert set(schema.attributes) == {PRICE}
    assert schema.event_types["a"].rules[PRICE] == Rule()


# Views

ATTRIBUTES = [parse_path(name) for name in ("a", "b", "c.d", "`e.f`")]
RULES = st.builds(Rule, st.booleans(), st.booleans())


@st.composite
def schemas_with_an_event(draw):
    """A schema, the types of an event, and the attributes that the event carries."""
    types = {name: EventType(name, draw(st.dictionaries(st.sampled_from(ATTRIBUTES), RULES))) for name in "XYZ"}
    schema = Schema(attributes=dict.fromkeys(ATTRIBUTES, BUILT_IN["integer"]), event_types=types)
    return schema, draw(st.sets(st.sampled_from("XYZ"), min_size=1)), draw(st.sets(st.sampled_from(ATTRIBUTES)))


@given(schemas_with_an_event())
def test_the_three_properties_of_a_view(drawn):
    schema, names, carried = drawn
    view = schema.view(names, carried)
    triples = [(path, rule) for name in names for path, rule in schema.event_types[name].rules.items()]
    assert view.event_types == names
    # 1: what is mandatory in some type is mandatory in the view.
    assert all(view.rules[path].mandatory for path, rule in triples if rule.mandatory)
    # 2: the view has no attributes but those of the types.
    assert view.rules.keys() <= {path for path, _ in triples}
    # 3: one rule an attribute, in which mandatory and multiple have won.
    for path, rule in view.rules.items():
        told = [other for known, other in triples if known == path]
        assert rule == Rule(any(other.mandatory for other in told), any(other.multiple for other in told))
    # And an optional attribute is in the view just when the event carries it.
    optional = {path for path, _ in triples} - {path for path, rule in triples if rule.mandatory}
    assert view.rules.keys() & optional == carried & optional


@given(schemas_with_an_event(), st.booleans())
def test_an_event_is_valid_just_when_it_fits_its_view(drawn, several):
    schema, names, carried = drawn
    values = [1, 2] if several else [1]
    event = {EVENT_TYPE: sorted(names)} | dict.fromkeys(carried, values)
    rules = schema.view(names, carried).rules
    expected = (
        [AttributeRuleError for path, rule in rules.items() if rule.mandatory and path not in carried]
        + [AttributeRuleError for path, rule in rules.items() if path in carried and several and not rule.multiple]
        + [ExtraAttributeError for path in carried if path not in rules]
    )
    faults = schema.faults(event)
    assert sorted(map(str, map(type, faults))) == sorted(map(str, expected))
    assert schema_accepts(schema, event) is (not faults)


def schema_accepts(schema, event):
    try:
        schema.validate(event)
    except (AttributeRuleError, ExtraAttributeError):
        return False
    return True


def test_a_view_of_an_unknown_type(antiques_and_furniture):
    with pytest.raises(EventTypeError, match="no event type `lamps`"):
        antiques_and_furniture.view(["furniture", "lamps"], [])
