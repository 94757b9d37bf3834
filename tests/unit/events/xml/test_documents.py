"""Documents as arrays, by whichever reader: what XPath 1.0 sees of them, and what happens to bad ones in a batch."""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest

from harken.errors import DecodeError, LimitError
from harken.events.xml import Documents, numbers, read_document, read_documents
from harken.limits import Limits


def read(*pieces: bytes | str, limits: Limits | None = None, owner: list[int] | None = None) -> Documents:
    data = [each.encode() if isinstance(each, str) else each for each in pieces]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in data])]).astype(np.int64)
    owners = np.array(owner if owner is not None else range(len(data)), np.int32)
    return read_documents(np.frombuffer(b"".join(data), np.uint8), offsets, owners, limits or Limits())


def test_nodes_in_document_order(shown) -> None:
    (nodes,) = shown(read("<a x='1' y='2'>one<b z='3'>two</b>three<c/></a>"))
    assert nodes == [
        ("", -1, "onetwothree"),
        ("/a", 0, "onetwothree"),
        ("/a/@x", 1, "1"),
        ("/a/@y", 1, "2"),
        ("/a/text()", 1, "one"),
        ("/a/b", 1, "two"),
        ("/a/b/@z", 5, "3"),
        ("/a/b/text()", 5, "two"),
        ("/a/text()", 1, "three"),
        ("/a/c", 1, ""),
    ]


@pytest.mark.parametrize("name", ["e", "é"], ids=["kernel", "expat"])
@pytest.mark.parametrize(
    ("inside", "texts"),
    [
        ("one<![CDATA[two]]>three", ["onetwothree"]),
        ("<![CDATA[]]>", []),
        ("a<![CDATA[]]>b", ["ab"]),
        ("one<!-- comment -->two", ["one", "two"]),
        ("one<?instruction?>two", ["one", "two"]),
        ("<!-- a --><!-- b -->", []),
        (" \n ", [" \n "]),
        ("&lt;&#65;&#x20AC;", ["<A€"]),
        ("a\r\nb\rc&#13;", ["a\nb\nc\r"]),
        ("<![CDATA[&lt;<b>]]>", ["&lt;<b>"]),
    ],
)
def test_texts(name: str, inside: str, texts: list[str], shown) -> None:
    (nodes,) = shown(read(f"<{name}>{inside}</{name}>"))
    assert [value for way, _, value in nodes if way.endswith("text()")] == texts
    assert nodes[0][2] == nodes[1][2] == "".join(texts)


@pytest.mark.parametrize("name", ["e", "é"], ids=["kernel", "expat"])
def test_attribute_values_are_normalised(name: str, shown) -> None:
    (nodes,) = shown(read(f"<{name} a='x\n\ty\r\nz' b='&#10;&#9;' c='&lt;&apos;' d=''/>"))
    assert [value for _, _, value in nodes[2:]] == ["x  y z", "\n\t", "<'", ""]


@pytest.mark.parametrize("name", ["e", "é"], ids=["kernel", "expat"])
def test_names_are_expanded(name: str, shown) -> None:
    text = f"<a xmlns='d' xmlns:p='u' x='1' p:y='2' xml:lang='en'><p:b xmlns:p='v'/><c xmlns=''/><{name}/></a>"
    (nodes,) = shown(read(text))
    ways = [way.replace("http://www.w3.org/XML/1998/namespace", "xml") for way, _, _ in nodes]
    a = "/{d}a"
    assert ways == ["", a, a + "/@x", a + "/@{u}y", a + "/@{xml}lang", a + "/{v}b", a + "/c", a + "/{d}" + name]


def test_encodings(shown) -> None:
    text = "<?xml version='1.0' encoding='{}'?><a b='ä'>é</a>"
    whole = [
        text.format(name).encode(codec)
        for name, codec in [
            ("UTF-8", "utf-8"),
            ("UTF-16", "utf-16"),
            ("ISO-8859-1", "latin-1"),
            ("windows-1252", "cp1252"),
            ("iso-8859-15", "iso-8859-15"),
            ("koi8-r", "utf-8"),
        ]
    ]
    found = shown(read(*whole, "<a b='ä'>é</a>".encode("utf-16-le")))
    assert all(each == found[0] for each in found[:5])
    assert found[5] != found[0], "it says so, and is believed"


def test_one_bad_document_does_not_sink_the_others(shown) -> None:
    pieces = ["<a>1</a>", "<a>", "<é>2</é>", "<!DOCTYPE a><a/>", "<a b='x'>3</a>", b"\xff\xfe\x00", "<b/>"]
    documents = read(*pieces, owner=[0, 0, 2, 3, 3, 5, 9])
    assert documents.owner.tolist() == [0, 2, 3, 9]
    assert [event for event, _ in documents.errors] == [0, 3, 5]
    assert [nodes[0][2] for nodes in shown(documents)] == ["1", "2", "3", ""]
    assert documents.first[-1] == len(documents.path)
    assert documents.parent[documents.first[:-1]].tolist() == [-1] * 4


def test_no_documents_and_only_bad_ones() -> None:
    for documents in (read(), read("<a>", "")):
        assert len(documents) == 0
        assert documents.first.tolist() == [0]
        assert len(documents.path) == len(documents.text) == 0


def test_offsets_need_not_begin_at_zero(shown) -> None:
    data = np.frombuffer(b"rubbish<a>1</a><b>2</b>more", np.uint8)
    documents = read_documents(data, np.array([7, 15, 23], np.int64), np.array([4, 5], np.int32), Limits())
    assert [nodes[1][::2] for nodes in shown(documents)] == [("/a", "1"), ("/b", "2")]


def test_what_lies_behind_the_last_document_is_not_read() -> None:
    for inside in ("<a>", "<a>text", "<a b='", "<a><![CDATA["):
        data = np.frombuffer((inside + "x" * 100_000 + "</a>").encode(), np.uint8)
        for before in (0, 40):
            offsets = np.array([0, len(inside) + before], np.int64)
            ((_, error),) = read_documents(data, offsets, np.zeros(1, np.int32), Limits()).errors
            assert isinstance(error, DecodeError)


@pytest.mark.parametrize("offsets", [[0, 5], [-1, 4], [0, 4, 3]])
def test_wrong_offsets(offsets: list[int]) -> None:
    owner = np.arange(len(offsets) - 1, dtype=np.int32)
    with pytest.raises(ValueError, match="offsets"):
        read_documents(np.frombuffer(b"<a/>", np.uint8), np.array(offsets, np.int64), owner, Limits())


def test_text_is_utf_8_whatever_it_declares(shown) -> None:
    data = "<?xml version='1.0' encoding='UTF-16'?><a>é</a>".encode()
    offsets = np.array([0, len(data)], np.int64)
    documents = read_documents(np.frombuffer(data, np.uint8), offsets, np.zeros(1, np.int32), is_text=True)
    assert shown(documents)[0][0][2] == "é"


def test_line_ends_between_good_and_bad(shown) -> None:
    documents = read("<a>\r\n</a>", "<a>\r\n</b>", "<a>\r</a>")
    assert [nodes[0][2] for nodes in shown(documents)] == ["\n", "\n"]
    ((_, error),) = documents.errors
    assert (error.place.line, error.place.column) == (2, 3)


LAUGHS = "<!DOCTYPE l [<!ENTITY a0 'ha'>" + "".join(
    f"<!ENTITY a{each + 1} '{f'&a{each};' * 10}'>" for each in range(12)
)
REJECTIONS = [
    ("DOCTYPE", "<!DOCTYPE a SYSTEM 'a.dtd'><a/>", "DOCTYPE", 1),
    ("doctype behind comments", "<?xml version='1.0'?>\n<!-- <!DOCTYPE b> -->\n <!DOCTYPE a><a/>", "DOCTYPE", 3),
    ("billion laughs", LAUGHS + "]><l>&a12;</l>", "DOCTYPE", 1),
    ("quadratic", f"<!DOCTYPE l [<!ENTITY a '{'x' * 100_000}'>]><l>{'&a;' * 100_000}</l>", "DOCTYPE", 1),
    ("external", "<!DOCTYPE l [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><l>&a;</l>", "DOCTYPE", 1),
    ("wide doctype", "\ufeff<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>".encode("utf-16-be"), "DOCTYPE", 1),
    ("deep", "<a>" * 100_000 + "</a>" * 100_000, "nested deeper than 64", 1),
    ("deep and long", "<a>" * 5_000_000, "nested deeper than 64", 1),
    ("truncated", "<a>\n<b>text", "ends before its root element does", 2),
    ("truncated in a tag", "<a>\n<b c=", "ends inside a tag", 2),
    ("not UTF-8", b"<a>\n\xe9</a>", "not well-formed", 2),
    ("not UTF-16", b"<?xml version='1.0' encoding='UTF-16'?><a/>", "not the one that it declares `UTF-16`", 1),
    ("not ASCII", b"<?xml version='1.0' encoding='US-ASCII'?>\n<a>\xe9</a>", "not well-formed", 2),
    ("unknown encoding", b"<?xml version='1.0' encoding='klingon'?><a/>", "encoding `klingon` is not known", 1),
    ("wide encoding", b"<?xml version='1.0' encoding='shift_jis'?><a/>", "encoding `shift_jis` is not known", 1),
    ("odd codec", b"<?xml version='1.0' encoding='base64'?><a/>", "encoding `base64` is not known", 1),
    ("empty", b"", "the document is empty", 1),
    ("blank", b" \n ", "the document is empty", 1),
    ("rubbish", bytes(range(256)) * 40, "not allow here", 1),
    ("text", "hello", "text stands where a tag is expected", 1),
    ("tags cross", "<a>\n <b>\n </a></b>", "an end tag does not fit its start tag", 3),
    ("twice", "<a b='1' b='2'/>", "an attribute stands twice in one tag", 1),
    ("undefined", "<a>&b;</a>", "an entity is not defined", 1),
    ("undeclared", "<p:a/>", "a prefix is not declared", 1),
    ("two roots", "<a/>\n<a/>", "something after the root element", 2),
]


@pytest.mark.parametrize(
    ("data", "message", "line"), [each[1:] for each in REJECTIONS], ids=[each[0] for each in REJECTIONS]
)
def test_rejections(data: str | bytes, message: str, line: int, shown) -> None:
    documents = read("<a>before</a>", data, "<a>after</a>")
    ((event, error),) = documents.errors
    assert event == 1
    assert isinstance(error, DecodeError | LimitError)
    assert message in str(error)
    assert error.place is not None
    assert error.place.line == line
    assert error.place.column is not None
    assert error.__traceback__ is None or error.__cause__ is None
    assert [nodes[0][2] for nodes in shown(documents)] == ["before", "after"]


def test_limits_have_their_names() -> None:
    large = np.full(200_000_000, ord("x"), np.uint8)
    large[:3] = list(b"<a>")
    ((_, error),) = read_documents(large, np.array([0, len(large)], np.int64), np.zeros(1, np.int32), Limits()).errors
    assert isinstance(error, LimitError)
    assert error.limit == "max_event_bytes"
    ((_, error),) = read("<a>" + "<b/>" * 50 + "</a>", limits=Limits(max_document_nodes=50)).errors
    assert isinstance(error, LimitError)
    assert error.limit == "max_document_nodes"
    assert error.place is not None
    assert not read("<a>" + "<b/>" * 49 + "</a>", limits=Limits(max_document_nodes=50)).errors
    assert not read("<é>" + "<b/>" * 49 + "</é>", limits=Limits(max_document_nodes=50)).errors


def test_more_than_the_kernel_has_room_for(shown) -> None:
    deep = "<a>" * 5_000 + "x" + "</a>" * 5_000
    wide = "<a " + " ".join(f"b{each}='{each}'" for each in range(500)) + "/>"
    bound = "<a " + " ".join(f"xmlns:b{each}='u{each}'" for each in range(500)) + "><b499:c/></a>"
    long = "<" + "n" * 10_000 + "/>"
    documents = read(deep, wide, bound, long, limits=Limits(max_event_depth=10_000))
    assert not documents.errors
    nodes = shown_quickly(documents)
    assert nodes == [5_002, 502, 3, 2]


def shown_quickly(documents: Documents) -> list[int]:
    return np.diff(documents.first).tolist()


NUMBER = re.compile(r"[ \t\r\n]*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t\r\n]*")


def number(text: str) -> float:
    return float(text) if NUMBER.fullmatch(text) else math.nan


def test_numbers() -> None:
    texts = (
        "1 -1 0 -0 1.5 .5 5. . - -. 1e3 +1 inf nan 0x1 1_000 1,5 ١ 1.2.3 --1 1- 00012.500 0.1 123456789012345".split()
    )
    texts += [
        "",
        " ",
        " 7 ",
        "\n-7.25\t",
        "7 7",
        "- 7",
        "1" * 400,
        "0." + "0" * 400 + "1",
        "9007199254740993",
        "0" * 50 + "1",
    ]
    texts += [
        "1234567890123456789012.5",
        "0.000000000000000000000001",
        "." + "1" * 30,
        "0.30000000000000004",
        "1\u00a0",
    ]
    draw = random.Random(5)
    texts += [
        f"{draw.choice(['', '-'])}{draw.randrange(10 ** draw.randrange(1, 22))}.{draw.randrange(10**9)}"
        for _ in range(500)
    ]
    document = "<r>" + "".join(f"<v>{text}</v>" for text in texts) + "</r>"
    documents = read(document)
    paths = documents.paths
    wanted = np.array([paths.kind[each] == 1 and paths.name(each) == b"v" for each in range(len(paths))])
    values = numbers(documents, wanted)
    is_wanted = wanted[documents.path]
    assert np.isnan(values[~is_wanted]).all()
    expected = [number(text) for text in texts]
    assert [repr(value) for value in values[is_wanted].tolist()] == [repr(value) for value in expected]


def test_read_document() -> None:
    documents = read_document(b"<a/>")
    assert documents.owner.tolist() == [0]
    assert len(documents) == 1
