"""Reference values in documents: where the key is found, what is added and where, and what stays as it is."""

from __future__ import annotations

import pickle
from datetime import date
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from harken.engine import Engine
from harken.errors import HarkenError, SourceError
from harken.events.xml.enriching import DocumentKey, Enrichment

TABLE = {"7": {"region": "EU", "rank": 1, "note": None, "name": "A & <B>"}, "8": {"region": None}}
ADDED = "<reference><region>EU</region><rank>1</rank><name>A &amp; &lt;B&gt;</name></reference>"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/order/customer/@id", "7"),
        ("/order/customer", "x"),
        ("/order/customer/text()", "x"),
        ("/order/no", "5"),
        ("/order/{urn:u}no", "6"),
        ("/order/{urn:u}no/@{urn:u}id", "9"),
        ("/order/gone", None),
        ("/customer/@id", None),
        ("/order/@id", None),
        ("/order/empty", None),
    ],
)
def test_keys(path: str, found: str | None) -> None:
    key = DocumentKey(path)
    document = (
        "<order xmlns:u='urn:u'><u:no u:id='9'>6</u:no><empty> </empty><customer id=' 7'>x</customer>"
        "<customer id='8'>y</customer><no>\n5\n</no></order>"
    )
    assert key(document) == found
    assert pickle.loads(pickle.dumps(key))(document) == found
    assert key("<order>") is None
    assert key("") is None


@pytest.mark.parametrize(
    "path", ["", "order", "/", "//a", "/a//b", "/a[1]", "/@a/b", "/a/*", "/a/text()/b", "/a/", "/p:a"]
)
def test_paths_that_are_not_plain(path: str) -> None:
    with pytest.raises(HarkenError, match="no plain path to a key"):
        DocumentKey(path)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("<o id='7'><a/></o>", "<o id='7'><a/>{}</o>"),
        ("<o id='7'/>", "<o id='7'>{}</o>"),
        ("<o id='7' a='/>'  />", "<o id='7' a='/>'  >{}</o>"),
        ("<o id='7'>text</o>\n", "<o id='7'>text{}</o>\n"),
        ("<o id='7'><a/></o ><!-- </o> -->", "<o id='7'><a/>{}</o ><!-- </o> -->"),
        ("<o id='7'/><?p > </x>?> ", "<o id='7'>{}</o><?p > </x>?> "),
        ("<!-- <a> --><?p <b?><o id='7'></o>", "<!-- <a> --><?p <b?><o id='7'>{}</o>"),
        ("<o id='7'><![CDATA[</o>]]></o>", "<o id='7'><![CDATA[</o>]]>{}</o>"),
        (
            "<?xml version='1.0' encoding='UTF-8'?><o id='7'>é</o>",
            "<?xml version='1.0' encoding='UTF-8'?><o id='7'>é{}</o>",
        ),
        ("<o id='6'/>", "<o id='6'/>"),
        ("<o id='8'/>", "<o id='8'/>"),
        ("<o/>", "<o/>"),
        ("<o id='7'>", "<o id='7'>"),
        ("<!DOCTYPE o><o id='7'/>", "<!DOCTYPE o><o id='7'/>"),
    ],
)
def test_where_the_values_go(document: str, expected: str) -> None:
    found = Enrichment("/o/@id", TABLE)(document.encode()).decode()
    assert found == expected.replace("{}", ADDED)


def test_other_encodings_become_utf8() -> None:
    enrich = Enrichment("/o/@id", TABLE)
    latin = "<?xml version='1.0' encoding='iso-8859-1' standalone='yes'?><o id='7'>é</o>".encode("latin-1")
    expected = f"<?xml version='1.0' standalone='yes'?><o id='7'>é{ADDED}</o>".encode()
    assert enrich(latin) == expected
    assert enrich("<o id='7'>é</o>".encode("utf-16")) == f"<o id='7'>é{ADDED}</o>".encode()
    assert enrich(b"<o id='7'>\xff</o>") == b"<o id='7'>\xff</o>"


def test_what_is_added_is_in_no_namespace() -> None:
    found = Enrichment("/{urn:u}o/@id", TABLE, element="more")(b"<o xmlns='urn:u' id='7'/>")
    assert ElementTree.fromstring(found).find("more/region") is not None


def test_values_as_texts() -> None:
    values: dict[str, Any] = {
        "f": 1e21,
        "s": 0.5,
        "b": True,
        "d": date(2026, 1, 2),
        "l": ["x", None, 2],
        "c": "a\x00\r\n",
    }
    found = Enrichment("/o", {5: values})(b"<o>5</o>").decode()
    assert found == (
        "<o>5<reference><f>1000000000000000000000</f><s>0.5</s><b>true</b><d>2026-01-02</d><l>x</l><l>2</l>"
        "<c>a\ufffd&#13;\n</c></reference></o>"
    )


def test_a_table_of_arrow() -> None:
    table = pa.table({"customer": [7, 8, None], "region": ["EU", None, "US"], "rank": [1, 2, 3]})
    enrich = Enrichment("/o/@id", table)
    assert enrich(b"<o id='7'/>") == b"<o id='7'><reference><region>EU</region><rank>1</rank></reference></o>"
    assert enrich(b"<o id='8'/>") == b"<o id='8'><reference><rank>2</rank></reference></o>"
    by_rank = Enrichment("/o/@id", table, column="rank")
    assert b"<customer>8</customer>" in by_rank(b"<o id='2'/>")
    with pytest.raises(SourceError, match="no column `nope`"):
        Enrichment("/o/@id", table, column="nope")
    with pytest.raises(SourceError, match="several rows for the key '7'"):
        Enrichment("/o/@id", pa.table({"k": [7, 7], "v": [1, 2]}))


@pytest.mark.parametrize("name", ["a b", "", "1a", "a:b", "<a>"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(HarkenError, match="no name of an XML element"):
        Enrichment("/o", {"1": {name: "x"}})
    with pytest.raises(HarkenError, match="no name of an XML element"):
        Enrichment("/o", {"1": {"a": "x"}}, element=name)


def test_xpath_sees_the_values() -> None:
    engine = Engine()
    engine.subscribe("eu", "/o[reference/region = 'EU' and total > 5]", language="xpath")
    enrich = Enrichment("/o/@id", TABLE)
    documents = [b"<o id='7'><total>9</total></o>", b"<o id='8'><total>9</total></o>", b"<o id='7'><total>"]
    found = engine.match_batch(list(map(enrich, documents)))
    assert found.ids == [["eu"], [], []]
    assert [each.position for each in found.rejected] == [2]
