"""Schema files: what is read, that all faults are found and placed, and that what is written reads back."""

import pathlib
import tomllib

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.errors import SchemaError, SourceError
from harken.schema import (
    BUILT_IN,
    Domain,
    EnumeratedDomain,
    EventType,
    FloatDomain,
    HierarchicalDomain,
    IntegerDomain,
    Kind,
    Rule,
    Schema,
    StringDomain,
    check_schema,
    format_schema,
    load_schema,
    parse_schema,
)
from harken.schema.schema_files import MAX_SCHEMA_BYTES


def test_reads_every_part():
    schema = parse_schema(
        """
        version = 3
        [domains.quantity]
        type = "integer"
        low = 1
        [domains.money]
        type = "float"
        [domains.size]
        type = "enumerated"
        values = ["S", "M", "L", "one size"]
        order = [["S", "M", "L"]]
        [domains.category]
        type = "hierarchical"
        [domains.category.children]
        furniture = ["bedroom", "dining room"]
        "dining room" = ["chair"]
        toys = []
        [attributes]
        price = "money"
        "seller.country" = "string"
        "`a.b`" = "category"
        [event_types.sale]
        price = "mandatory"
        "seller.country" = "optional unique"
        "`a.b`" = "optional  multiple"
        """
    )
    assert schema.version == 3
    assert schema.domains["quantity"] == IntegerDomain("quantity", 1, None)
    assert schema.domains["money"] == FloatDomain("money")
    assert schema.domains["size"] == EnumeratedDomain("size", ("S", "M", "L", "one size"), (("S", "M"), ("M", "L")))
    assert schema.domains["category"].values == ("furniture", "bedroom", "dining room", "chair", "toys")
    assert schema.attributes[("seller", "country")] == BUILT_IN["string"]
    assert schema.event_types["sale"] == EventType(
        "sale",
        {("price",): Rule(mandatory=True), ("seller", "country"): Rule(), ("a.b",): Rule(multiple=True)},
    )


def test_an_empty_file_is_the_open_schema():
    assert parse_schema("") == Schema()


# Faults


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("attribute = 1", 1, "the schema: unknown key `attribute`"),
        ("version = 0", 1, "`version`"),
        ("version = true", 1, "`version`"),
        ("domains = 3", 1, "`domains` is not a table"),
        ("[domains]\nprice = 'float'", 2, "`price` is not a table"),
        ("[domains.p]\nlow = 1", 1, "domain `p` needs `type`: "),
        ("[domains.p]\ntype = 'integr'", 2, "the `type` of domain `p` is one of "),
        ("[domains.p]\ntype = 'integer'\nlow = 'one'", 3, "`low`"),
        ("[domains.p]\ntype = 'integer'\nlow = 1\nhigh = true", 4, "`high`"),
        ("[domains.p]\ntype = 'integer'\nlow = 2\nhigh = 1", 1, "empty"),
        ("[domains.p]\ntype = 'integer'\nlow = 9223372036854775808", 1, "64 bits"),
        ("[domains.p]\ntype = 'float'\nlow = 2", 3, "domain `p` of type float: unknown key `low`"),
        ("[domains.float]\ntype = 'float'", 1, "built in"),
        ("[domains.p]\ntype = 'enumerated'", 1, "domain `p` needs `values`"),
        (
            "[domains.p]\ntype = 'enumerated'\nvalues = ['a', 1]",
            3,
            "the `values` of domain `p` are not a list of strings",
        ),
        ("[domains.p]\ntype = 'enumerated'\nvalues = ['a', 'b']\norder = ['a', 'b']", 4, "chains"),
        ("[domains.p]\ntype = 'enumerated'\nvalues = ['a', 'b']\norder = [['a']]", 4, "chains"),
        ("[domains.p]\ntype = 'enumerated'\nvalues = ['a', 'b']\norder = 'ab'", 4, "chains"),
        ("[domains.p]\ntype = 'enumerated'\nvalues = ['a']\norder = [['a', 'b']]", 1, "'b', which is not one"),
        ("[domains.p]\ntype = 'hierarchical'", 1, "domain `p` needs `children`"),
        ("[domains.p]\ntype = 'hierarchical'\nchildren = 1", 3, "the `children` of domain `p` are not a table"),
        ("[domains.p]\ntype = 'hierarchical'\n[domains.p.children]\na = 'b'", 3, "children of 'a'"),
        ("[domains.p]\ntype = 'hierarchical'\n[domains.p.children]\na = ['b']\nb = ['a']", 1, "cycle"),
        ("[domains.p]\ntype = 'hierarchical'\n[domains.p.children]\na = ['c']\nb = ['c']", 1, "placed twice"),
        ("[attributes]\nprice = 'flaot'", 2, "no domain `flaot`"),
        ("[attributes]\nprice = 5", 2, "needs the name of a domain"),
        ("[attributes]\n'a b' = 'float'", 2, "not an attribute name"),
        ("[attributes]\nevent_type = 'string'", 2, "event_type"),
        ("[attributes]\na = 'string'\n'`a`' = 'string'", 3, "twice"),
        ("[attributes]\nb = 'float'\nseller.country = 'string'", 3, "`seller` is a table"),
        ("event_types = []", 1, "`event_types` is not a table"),
        ("[event_types]\nsale = 'x'", 2, "`sale` is not a table"),
        ("[event_types.sale]\nprice = 'optional'", 2, "no attribute `price`"),
        ("[event_types.sale]\nevent_type = 'mandatory'", 2, "takes no rule"),
        ("[attributes]\na = 'string'\n[event_types.sale]\na = 'sometimes'", 4, "rule for attribute `a`"),
        ("[attributes]\na = 'string'\n[event_types.sale]\na = true", 4, "rule for attribute `a`"),
        ("[attributes]\na = 'string'\n[event_types.s]\na = 'optional'\n'`a`' = 'optional'", 5, "twice"),
        ("a = 1\nb = ", 2, "not TOML"),
        ("a = 1\nb = [1,\n}", 3, "not TOML"),
    ],
)
def test_a_fault_and_its_line(text, line, message):
    schema, faults = check_schema(text, "shop.toml")
    assert schema is None
    assert [fault.place.line for fault in faults] == [line]
    assert faults[0].place.source == "shop.toml"
    assert message in faults[0].message
    assert faults[0].excerpt.split("\n")[0] == text.split("\n")[line - 1]


BROKEN = """\
[domains.quantity]
type = "integr"
[domains.period]
type = "enumerated"
values = ["XVI", "XVII"]
ordr = [["XVI", "XVII"]]
[attributes]
quantity = "quantity"
price = "flaot"
period = "period"
[event_types.sale]
price = "mandatory"
quantity = "sometimes"
perod = "optional"
[event_typs]
"""


def test_every_fault_is_found_in_the_order_of_the_lines():
    schema, faults = check_schema(BROKEN)
    assert schema is None
    assert [(fault.place.line, fault.hint) for fault in faults] == [
        (2, "did you mean `integer`?"),
        (6, "did you mean `order`?"),
        (9, "did you mean `float`?"),
        (13, "write `mandatory` or `optional`, and after it `multiple` if it may have several values"),
        (14, "did you mean `period`?"),
        (15, "did you mean `event_types`?"),
    ]


def test_the_first_fault_is_raised_with_the_number_of_the_others():
    with pytest.raises(SchemaError) as caught:
        parse_schema(BROKEN, "shop.toml")
    assert str(caught.value).startswith("the `type` of domain `quantity` is one of integer, ")
    assert "shop.toml, line 2, column 1" in str(caught.value)
    assert caught.value.hint == "did you mean `integer`? (and 5 more faults)"


def test_a_dotted_key_without_quotes_is_explained():
    _, (fault,) = check_schema("[attributes]\nseller.country = 'string'")
    assert fault.hint == 'put a dotted path in quotes: "seller.country"'


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5_000, "\ufeff", "a = \x00"])
def test_what_the_toml_parser_chokes_on(text):
    with pytest.raises(SchemaError):
        parse_schema(text)


# Files


def test_loads_a_file_with_or_without_a_byte_order_mark(tmp_path: pathlib.Path):
    for mark in (b"", b"\xef\xbb\xbf"):
        file = tmp_path / "schema.toml"
        file.write_bytes(mark + '[attributes]\n"größe" = "float"\r\n'.encode())
        assert load_schema(file) == load_schema(str(file)) == Schema(attributes={("größe",): BUILT_IN["float"]})


def test_a_fault_in_a_file_names_the_file(tmp_path: pathlib.Path):
    file = tmp_path / "schema.toml"
    file.write_text("[attributes]\nprice = 'flaot'")
    with pytest.raises(SchemaError) as caught:
        load_schema(file)
    assert caught.value.place.source == str(file)


def test_what_cannot_be_read_as_a_file(tmp_path: pathlib.Path):
    latin = tmp_path / "latin.toml"
    latin.write_bytes("größe".encode("latin-1"))
    big = tmp_path / "big.toml"
    with big.open("wb") as file:
        file.truncate(MAX_SCHEMA_BYTES + 1)
    for source, message in [
        (tmp_path / "missing.toml", "No such file"),
        (tmp_path, "directory"),
        (latin, "not UTF-8: byte 2"),
        (big, "more than 16,777,216 bytes"),
        ("nul\0.toml", "null"),
    ]:
        with pytest.raises(SourceError, match=message):
            load_schema(source)


# Round trip

TEXT = st.text(max_size=6)
NAMES = st.text(min_size=1, max_size=6)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple).filter(lambda path: path != ("event_type",))


@st.composite
def orders(draw, values):
    """Pairs that go up in a hidden total order."""
    hidden = draw(st.permutations(values))
    places = draw(st.lists(st.sets(st.integers(0, len(values) - 1), min_size=2, max_size=2), max_size=6))
    return tuple((hidden[min(pair)], hidden[max(pair)]) for pair in places)


@st.composite
def domains(draw, name):
    kind = draw(st.sampled_from(["integer", "enumerated", "hierarchical", "plain"]))
    if kind == "integer":
        low, high = sorted(draw(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2)))
        return IntegerDomain(name, draw(st.sampled_from([low, None])), draw(st.sampled_from([high, None])))
    if kind == "plain":
        return draw(st.sampled_from([FloatDomain, StringDomain, type(BUILT_IN["date"])]))(name)
    values = draw(st.lists(TEXT, min_size=1, max_size=6, unique=True))
    if kind == "enumerated":
        return EnumeratedDomain(name, tuple(values), draw(orders(values)) if len(values) > 1 else ())
    parents = [draw(st.sampled_from([None, *values[:place]])) for place in range(len(values))]
    return HierarchicalDomain(name, tuple(draw(st.permutations(list(zip(values, parents, strict=True))))))


@st.composite
def schemas(draw):
    names = draw(st.sets(NAMES.filter(lambda name: name not in BUILT_IN and name != "event_type"), max_size=4))
    declared = {name: draw(domains(name)) for name in sorted(names)}
    known = st.sampled_from([*declared.values(), *BUILT_IN.values()])
    attributes = draw(st.dictionaries(PATHS, known, max_size=5))
    rules = st.dictionaries(st.sampled_from(sorted(attributes)), st.builds(Rule, st.booleans(), st.booleans()))
    types = {
        name: EventType(name, draw(rules) if attributes else {})
        for name in draw(st.lists(NAMES, max_size=3, unique=True))
    }
    return Schema(declared, attributes, types, draw(st.integers(1, 10**9)))


@given(schemas())
def test_what_is_written_reads_back(schema):
    text = format_schema(schema)
    again = parse_schema(text)
    assert again == schema
    assert again.version == schema.version
    assert format_schema(again) == text
    for name, domain in schema.domains.items():
        assert getattr(again.domains[name], "values", None) == getattr(domain, "values", None)


def test_an_order_is_written_in_long_chains_lowest_first():
    domain = EnumeratedDomain("e", ("a", "b", "c", "d"), (("a", "c"), ("b", "c"), ("a", "b"), ("d", "c")))
    written = tomllib.loads(format_schema(Schema(domains={"e": domain})))
    assert written["domains"]["e"]["order"] == [["a", "b", "c"], ["a", "c"], ["d", "c"]]


def test_a_domain_of_a_foreign_class_cannot_be_written():
    class Even(IntegerDomain):
        kind = Kind.NUMBER

    domain: Domain = Even("even")
    with pytest.raises(SchemaError, match="no type for Even"):
        format_schema(Schema(domains={"even": domain}))


# Fuzz


def result_or_schema_error(text):
    schema, faults = check_schema(text)
    assert (schema is None) == bool(faults)
    assert all(isinstance(fault, SchemaError) and str(fault) for fault in faults)
    if schema is not None:
        assert parse_schema(format_schema(schema)) == schema


@given(st.text())
def test_any_text(text):
    result_or_schema_error(text)


SNIPPETS = st.sampled_from([line + "\n" for line in BROKEN.split("\n")] + ["[", "]", '"', "=", "\n", "'", ".", "\\"])


@given(st.lists(SNIPPETS | st.text(max_size=3), max_size=12).map("".join))
def test_pieces_of_a_schema_in_any_order(text):
    result_or_schema_error(text)


SCALARS = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.dates(), st.datetimes(), TEXT, st.sampled_from(["a", "integer"])
)
WORDS = st.sampled_from(
    "type low high values order children integer enumerated hierarchical optional a b event_type `a` a.b".split()
)
TREES = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | TEXT, inner, max_size=4),
    max_leaves=15,
)
DOMAIN_TABLES = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "enumerated", "hierarchical", "date"])},
    optional={
        "low": st.integers() | TREES,
        "high": st.integers() | TREES,
        "values": st.lists(WORDS) | TREES,
        "order": st.lists(st.lists(WORDS)) | TREES,
        "children": st.dictionaries(WORDS, st.lists(WORDS)) | TREES,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "version": TREES,
        "domains": st.dictionaries(WORDS, DOMAIN_TABLES | TREES, max_size=3) | TREES,
        "attributes": st.dictionaries(WORDS, WORDS | TREES, max_size=4) | TREES,
        "event_types": st.dictionaries(WORDS, st.dictionaries(WORDS, WORDS | TREES, max_size=3), max_size=3) | TREES,
    },
)


@settings(max_examples=200)
@given(DOCUMENTS)
def test_any_toml_document(document):
    result_or_schema_error(tomli_w.dumps(document))
