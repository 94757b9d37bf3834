"""The four extension rules: what they add, what they reject, and that they change nothing that was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import EventError, ExtensionError, SchemaError
from harken.schema import (
    EVENT_TYPE,
    EnumeratedDomain,
    EventType,
    IntegerDomain,
    NewAttribute,
    NewDomain,
    NewEventType,
    NewOptionalAttribute,
    Rule,
    Schema,
)

COLOUR = EnumeratedDomain("colour", ("red", "green"))
PRICE, MATERIAL, SHADE = ("price",), ("material",), ("shade",)

LAMPS = (
    NewDomain(COLOUR),
    NewAttribute(SHADE, "colour"),
    NewEventType(EventType("lamps", {PRICE: Rule(mandatory=True), SHADE: Rule(multiple=True)})),
)


def test_each_rule_adds_its_part(antiques_and_furniture):
    extended = antiques_and_furniture.extend(*LAMPS, NewOptionalAttribute("antiques", SHADE, multiple=True))
    assert extended.version == antiques_and_furniture.version + 1
    assert extended.domains["colour"] == COLOUR
    assert extended.domain_of(SHADE) == COLOUR
    assert extended.event_types["lamps"].rules[PRICE] == Rule(mandatory=True)
    assert extended.event_types["antiques"].rules[SHADE] == Rule(mandatory=False, multiple=True)
    assert extended.domain_of(EVENT_TYPE).values == ("antiques", "furniture", "lamps")
    assert extended.validate({EVENT_TYPE: ["lamps"], PRICE: [5], SHADE: ["red", "green"]})
    assert "colour" not in antiques_and_furniture.domains


def test_the_order_within_a_call_is_the_order_of_the_rules():
    with pytest.raises(SchemaError, match="no domain `colour`"):
        Schema().extend(NewAttribute(SHADE, "colour"), NewDomain(COLOUR))


def test_all_or_nothing(antiques_and_furniture):
    before = (dict(antiques_and_furniture.domains), dict(antiques_and_furniture.event_types))
    with pytest.raises(SchemaError, match="no event type `sofas`"):
        antiques_and_furniture.extend(*LAMPS, NewOptionalAttribute("sofas", SHADE))
    assert (antiques_and_furniture.domains, antiques_and_furniture.event_types) == before
    assert antiques_and_furniture.domain_of(SHADE) is None


def test_saying_the_same_again_changes_nothing(antiques_and_furniture):
    schema = antiques_and_furniture
    again = (
        NewDomain(schema.domains["period"]),
        NewAttribute(PRICE, "float"),
        NewOptionalAttribute("furniture", MATERIAL),
        NewEventType(schema.event_types["antiques"]),
    )
    assert schema.extend(*again) is schema
    assert schema.extend() is schema
    assert schema.extend(*again, *LAMPS).extend(*LAMPS).version == schema.version + 1


@pytest.mark.parametrize(
    ("extension", "message"),
    [
        (NewDomain(EnumeratedDomain("period", ("XVI", "XVII", "XVIII", "XIX"))), "another definition"),
        (NewDomain(IntegerDomain("integer", 1)), "built in"),
        (NewAttribute(PRICE, "integer"), "already exists, with domain `float`"),
        (NewOptionalAttribute("furniture", MATERIAL, multiple=True), "as optional"),
        (NewOptionalAttribute("furniture", PRICE), "as mandatory"),
        (NewEventType(EventType("furniture", {PRICE: Rule()})), "other rules"),
    ],
)
def test_conflicts_are_rejected(antiques_and_furniture, extension, message):
    with pytest.raises(ExtensionError, match=message):
        antiques_and_furniture.extend(extension)


@pytest.mark.parametrize(
    ("extension", "hint"),
    [
        (NewAttribute(SHADE, "flaot"), "did you mean `float`?"),
        (NewAttribute(SHADE, "peroid"), "did you mean `period`?"),
        (NewOptionalAttribute("furnitur", PRICE), "did you mean `furniture`?"),
        (NewOptionalAttribute("furniture", ("pricee",)), "did you mean `price`?"),
        (NewAttribute(EVENT_TYPE, "string"), "declare event types instead"),
    ],
)
def test_what_is_wrong_in_itself_is_rejected_with_a_hint(antiques_and_furniture, extension, hint):
    with pytest.raises(SchemaError) as caught:
        antiques_and_furniture.extend(extension)
    assert caught.value.hint == hint


# Two publishers


def publisher(name):
    """What a publisher adds: things of its own, under names of its own, and things that all of them say alike."""
    own = (f"{name}_size",)
    return st.permutations(
        [
            NewDomain(COLOUR),
            NewDomain(IntegerDomain(f"{name}_range", 1, 9)),
            NewAttribute(SHADE, "string"),
            NewAttribute(("seller", "name"), "string"),
        ]
    ).map(
        lambda first: (
            *first,
            NewAttribute(own, f"{name}_range"),
            NewEventType(EventType(name, {own: Rule(mandatory=True)})),
            NewOptionalAttribute(name, ("seller", "name")),
            NewOptionalAttribute("furniture", own),
        )
    )


@given(mine=publisher("mine"), yours=publisher("yours"))
def test_publishers_who_do_not_conflict_may_come_in_any_order(antiques_and_furniture, mine, yours):
    one = antiques_and_furniture.extend(*mine).extend(*yours)
    other = antiques_and_furniture.extend(*yours).extend(*mine)
    together = antiques_and_furniture.extend(*yours, *mine)
    assert one == other == together
    assert one.version == other.version == antiques_and_furniture.version + 2
    assert one != antiques_and_furniture


NAMES = st.sampled_from("pqr")
PATHS = st.sampled_from([("x",), ("y",), PRICE, MATERIAL])
EXTENSIONS = st.one_of(
    st.builds(lambda name, high: NewDomain(IntegerDomain(name, 0, high)), NAMES, st.integers(1, 3)),
    st.builds(NewAttribute, PATHS, NAMES | st.just("integer")),
    st.builds(NewOptionalAttribute, NAMES | st.just("antiques"), PATHS, st.booleans()),
    st.builds(
        lambda name, rules: NewEventType(EventType(name, rules)),
        NAMES,
        st.dictionaries(PATHS, st.builds(Rule, st.booleans(), st.booleans())),
    ),
)
EVENTS = st.fixed_dictionaries(
    {
        EVENT_TYPE: st.lists(st.sampled_from(["antiques", "furniture"]), min_size=1),
        PRICE: st.just([5]),
        ("quantity",): st.just([5]),
    },
    optional={
        ("period",): st.just(["XVI"]),
        ("furniture_category",): st.just(["chair"]),
        MATERIAL: st.just(["oak"]),
        ("x",): st.just([1]),
    },
)


@given(extensions=st.lists(EXTENSIONS, max_size=8), event=EVENTS)
def test_what_was_valid_stays_so_with_the_same_meaning(antiques_and_furniture, extensions, event):
    schema = antiques_and_furniture
    for extension in extensions:
        try:
            extended = schema.extend(extension)
        except SchemaError:
            continue
        assert extended.version == schema.version + (extended is not schema)
        assert extended.extend(extension) is extended
        schema = extended
    try:
        before = antiques_and_furniture.validate(event)
    except EventError:
        return
    assert schema.validate(event) == before


@given(st.lists(EXTENSIONS, max_size=6))
def test_a_call_with_several_is_the_calls_one_by_one(extensions):
    def one_by_one():
        schema = Schema()
        for extension in extensions:
            schema = schema.extend(extension)
        return schema

    def outcome(build):
        try:
            return build()
        except SchemaError as error:
            return type(error), error.message

    assert outcome(lambda: Schema().extend(*extensions)) == outcome(one_by_one)
