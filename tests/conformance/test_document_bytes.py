"""XML documents as bytes in every encoding, on every way into an engine: all accept the same ones, and reject others
alone."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from harken import Engine, Schema
from harken.errors import HarkenError
from harken.events import read_events
from harken.events.encodings import text_of
from harken.limits import Limits
from harken.reference.documents import read

ANY = "/a = 'x' or /a != 'x'"
BOMS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-8": b"\xef\xbb\xbf"}


def declared(encoding: str, content: str = "x") -> str:
    return f"<?xml version='1.0' encoding='{encoding}'?><a>{content}</a>"


def wide(text: str, codec: str, *, mark: bool = True) -> bytes:
    return (BOMS[codec] if mark else b"") + text.encode(codec, "surrogatepass")


GOOD: dict[str, bytes] = {
    "plain": b"<a>x</a>",
    "UTF-8": "<a>é€😀</a>".encode(),
    "UTF-8 with a mark": BOMS["utf-8"] + "<a>é</a>".encode(),
    "UTF-8 with a mark, declared": BOMS["utf-8"] + declared("UTF-8", "é").encode(),
    "UTF-8 by another name": declared("utf8", "é").encode(),
    "US-ASCII": declared("US-ASCII").encode(),
    "Latin-1": declared("ISO-8859-1", "é").encode("latin-1"),
    "Latin-1 by another name": declared("latin1", "é").encode("latin-1"),
    "windows-1252": declared("windows-1252", "€").encode("cp1252"),
    "KOI8-R": declared("koi8-r", "я").encode("koi8-r"),
    "a reference to a character": b"<a>&#x1F600;&#233;</a>",
    "a little, with blanks before it": wide(" <a>x</a>", "utf-16-le", mark=False),
    "big, with blanks before it": wide(" <a>x</a>", "utf-16-be", mark=False),
}
for codec in ("utf-16-le", "utf-16-be"):
    GOOD |= {
        f"{codec} with a mark": wide("<a>é€</a>", codec),
        f"{codec} with a pair": wide("<a>😀</a>", codec),
        f"{codec} without a mark": wide("<a>é</a>", codec, mark=False),
        f"{codec} that declares UTF-16": wide(declared("UTF-16", "é"), codec),
        f"{codec} that declares itself": wide(declared(codec.upper().replace("-LE", "LE").replace("-BE", "BE")), codec),
    }
BAD: dict[str, bytes] = {
    "malformed": b"<a>",
    "not UTF-8": b"<a>\xe9</a>",
    "half of a character at the end": b"<a>x</a>\xc3",
    "a surrogate in UTF-8": b"<a>\xed\xa0\x80</a>",
    "a low surrogate in UTF-8": b"<a>\xed\xb0\x80</a>",
    "CESU-8": b"<a>\xed\xa0\xbd\xed\xb8\x80</a>",
    "an overlong character": b"<a>\xc0\xbc</a>",
    "a reference to a high surrogate": b"<a>&#xD800;</a>",
    "a reference to a low surrogate": b"<a>&#56320;</a>",
    "references to a pair": b"<a>&#xD83D;&#xDE00;</a>",
    "a reference to no character": b"<a>&#xFFFE;</a>",
    "a reference beyond Unicode": b"<a>&#x110000;</a>",
    "not ASCII, as declared": declared("US-ASCII", "é").encode("latin-1"),
    "not windows-1252, as declared": declared("windows-1252").encode().replace(b"x", b"\x81"),
    "UTF-16 declared, and is not": declared("UTF-16").encode(),
    "UTF-16LE declared, and is not": declared("UTF-16LE").encode(),
    "UTF-32 declared, and is not": declared("UTF-32").encode(),
    "Latin-1 declared behind a mark of UTF-8": BOMS["utf-8"] + declared("ISO-8859-1", "é").encode(),
    "ASCII declared behind a mark of UTF-8": BOMS["utf-8"] + declared("US-ASCII").encode(),
    "Shift-JIS": declared("shift_jis", "あ").encode("shift_jis"),
    "Shift-JIS of ASCII alone": declared("shift_jis").encode(),
    "GB 18030": declared("gb18030", "é").encode("gb18030"),
    "EUC-JP of ASCII alone": declared("euc_jp").encode(),
    "UTF-7": declared("utf-7").encode(),
    "UTF-8 with a signature": declared("utf-8-sig").encode(),
    "HZ": declared("hz").encode(),
    "escapes of Python": declared("unicode_escape").encode(),
    "base64": declared("base64").encode(),
    "Punycode": declared("punycode").encode(),
    "an unknown encoding": declared("klingon").encode(),
    "EBCDIC": declared("cp037").encode("cp037"),
    "EBCDIC declared, and is not": declared("cp037").encode(),
    "UTF-32, little": declared("UTF-32").encode("utf-32-le"),
    "UTF-32, big": declared("UTF-32").encode("utf-32-be"),
    "UTF-32 with a mark": "<a>x</a>".encode("utf-32"),
    "empty": b"",
    "a mark alone": b"\xff\xfe",
    "a mark of UTF-8 alone": b"\xef\xbb\xbf",
    "one byte": b"<",
    "a zero": b"\0",
    "two marks": b"\xff\xfe" + wide("<a>x</a>", "utf-16-le") + b"<",
}
for codec, other in (("utf-16-le", "utf-16-be"), ("utf-16-be", "utf-16-le")):
    BAD |= {
        f"{codec} with a lone high surrogate": wide("<a>\ud800x</a>", codec),
        f"{codec} with a lone high surrogate at the end of a text": wide("<a>x\udbff</a>", codec),
        f"{codec} with a lone high surrogate, no mark": wide("<a>\ud800x</a>", codec, mark=False),
        f"{codec} with a lone low surrogate": wide("<a>\udc00x</a>", codec),
        f"{codec} with a pair turned round": wide("<a>\ude00\ud83d</a>", codec),
        f"{codec} with a high surrogate in an attribute": wide("<a b='\ud800x'/>", codec),
        f"{codec} with a high surrogate in a comment": wide("<a><!-- \ud800x --></a>", codec),
        f"{codec} with a high surrogate in an instruction": wide("<a><?b \ud800x?></a>", codec),
        f"{codec} with a high surrogate in a section": wide("<a><![CDATA[\ud800x]]></a>", codec),
        f"{codec} with a high surrogate behind the root": wide("<a/>\ud800", codec),
        f"{codec} cut in a character": wide("<a>é</a>", codec)[:-1],
        f"{codec} with a byte too many": wide("<a>é</a>", codec) + b"\0",
        f"{codec} that declares UTF-8": wide(declared("UTF-8"), codec),
        f"{codec} that declares Latin-1": wide(declared("ISO-8859-1"), codec),
        f"{codec} that declares an unknown one": wide(declared("klingon"), codec),
        f"{codec} that declares the other": wide(
            declared(other.upper().replace("-LE", "LE").replace("-BE", "BE")), codec
        ),
    }
ALL = GOOD | BAD
ways = pytest.mark.parametrize(("name", "document"), ALL.items(), ids=ALL)


def engine(*texts: tuple[str, str], **options: Any) -> Engine:
    made = Engine(**options)
    for number, (text, language) in enumerate(texts):
        made.subscribe(str(number), text, language=language)
    return made


XPATH, SQL = (ANY, "xpath"), ("document LIKE '%' OR document IS NULL", "sql")
INSIDE = ("xpath_boolean(document, '/a') OR NOT xpath_boolean(document, '/a')", "sql")
OF_DOC = ("xpath_boolean(doc, '/a') OR NOT xpath_boolean(doc, '/a')", "sql")


def by_match(document: bytes, *texts: tuple[str, str], **options: Any) -> bool:
    try:
        return bool(engine(*texts, **options).match(document).ids)
    except HarkenError:
        return False


def by_batch(document: bytes, *texts: tuple[str, str], **options: Any) -> bool:
    """Among good and bad ones, which stay what they are."""
    found = engine(*texts, **options).match_batch([b"<a/>", document, b"<a>", b"<a>y</a>"])
    assert found.ids[0]
    assert found.ids[3]
    assert [each.position for each in found.rejected] == [2] if found.ids[1] else [1, 2]
    return bool(found.ids[1])


def by_column(document: bytes, name: str, kind: Any, *texts: tuple[str, str]) -> bool:
    table = pa.table({name: pa.array([b"<a/>", document, b"<a>y</a>"], kind)})
    found = engine(*texts).match_batch(table)
    assert found.ids[0]
    assert found.ids[2]
    assert [each.position for each in found.rejected] == ([] if found.ids[1] else [1])
    return bool(found.ids[1])


def by_parquet(document: bytes, folder: Path) -> bool:
    pa.parquet.write_table(pa.table({"document": pa.array([b"<a/>", document])}), folder / "events.parquet")
    (decoded,) = read_events(folder / "events.parquet")
    return any(engine(XPATH).match_batch(decoded).ids[1:])


def by_file(document: bytes) -> bool:
    (decoded,) = read_events(io.BytesIO(document), "xml")
    return any(engine(XPATH).match_batch(decoded).ids)


def by_reference(document: bytes) -> bool:
    try:
        read(document)
    except HarkenError:
        return False
    return True


def by_explaining(document: bytes, text: tuple[str, str]) -> bool:
    try:
        return engine(text).explain("0", document).matched
    except HarkenError:
        return False


WAYS: dict[str, Callable[[bytes, Path], bool]] = {
    "the reference": lambda document, folder: by_reference(document),
    "match": lambda document, folder: by_match(document, XPATH),
    "match, inside SQL": lambda document, folder: by_match(document, INSIDE),
    "match, beside SQL": lambda document, folder: by_match(document, XPATH, SQL),
    "match, with a schema": lambda document, folder: by_match(document, XPATH, schema=Schema()),
    "a batch": lambda document, folder: by_batch(document, XPATH),
    "a batch, inside SQL": lambda document, folder: by_batch(document, INSIDE),
    "a batch, beside SQL": lambda document, folder: by_batch(document, XPATH, SQL),
    "a column": lambda document, folder: by_column(document, "document", pa.binary(), XPATH),
    "a large column": lambda document, folder: by_column(document, "document", pa.large_binary(), XPATH, SQL),
    "a column of another name": lambda document, folder: by_column(document, "doc", pa.binary(), OF_DOC),
    "Parquet": by_parquet,
    "a file": lambda document, folder: by_file(document),
    "an explanation": lambda document, folder: by_explaining(document, XPATH),
    "an explanation, inside SQL": lambda document, folder: by_explaining(document, INSIDE),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@ways
def test_every_way_accepts_the_same(name: str, document: bytes, way: Callable[..., bool], tmp_path: Path) -> None:
    assert way(document, tmp_path) is (name in GOOD)


@pytest.mark.parametrize("text", [SQL, ("document LIKE '%x%' OR NOT document LIKE '%x%'", "sql")])
@ways
def test_where_only_its_text_is_asked_for_a_document_has_to_be_one(
    name: str, document: bytes, text: tuple[str, str]
) -> None:
    """It need not be well-formed, but what no codec reads is rejected, alone."""
    try:
        text_of(document)
        is_text = True
    except HarkenError:
        is_text = False
    found = engine(text).match_batch([b"<a/>", document, b"<a>y</a>"])
    assert [each.position for each in found.rejected] == ([] if is_text else [1])
    assert found.ids == [["0"], ["0"] if is_text else [], ["0"]]
    assert by_match(document, text) is is_text
    table = pa.table({"document": pa.array([b"<a/>", document], pa.binary())})
    found = engine(text).match_batch(table)
    assert found.ids == [["0"], ["0"] if is_text else []]


@ways
def test_who_does_not_ask_for_it_is_not_told(name: str, document: bytes) -> None:
    found = engine(("price IS NULL", "sql")).match_batch([b"<a/>", document])
    assert found.ids == [["0"], ["0"]]


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("content", ["x", "é", "€"])
def test_the_limit_on_bytes_is_the_same_on_every_way(codec: str, content: str, tmp_path: Path) -> None:
    """It is on the bytes that came and on the UTF-8 that is made of them."""
    if (codec, content) == ("latin-1", "€"):
        pytest.skip("it has no such character")
    text = declared({"utf-8": "UTF-8", "utf-16-le": "UTF-16", "latin-1": "ISO-8859-1"}[codec], content * 300)
    document = wide(text, codec) if codec == "utf-16-le" else text.encode(codec)
    most = max(len(document), len(text.encode()))
    for bytes_, fits in ((most, True), (most - 1, False)):
        limits = Limits(max_event_bytes=bytes_)
        for texts in ((XPATH,), (INSIDE,), (XPATH, SQL)):
            assert by_match(document, *texts, limits=limits) is fits
            found = engine(*texts, limits=limits).match_batch([b"<a/>", document])
            assert bool(found.ids[1]) is fits
            table = pa.table({"document": pa.array([b"<a/>", document], pa.binary())})
            found = engine(*texts, limits=limits).match_batch(table)
            assert bool(found.ids[1]) is fits
        (decoded,) = read_events(io.BytesIO(document), "xml", limits=limits)
        assert any(engine(XPATH, limits=limits).match_batch(decoded).ids) is fits
        try:
            read(document, limits)
            assert fits
        except HarkenError:
            assert not fits


TEXTS = {
    "plain": ("<a>x</a>", True),
    "wide": ("<a>é€😀</a>", True),
    "declares another encoding": (declared("UTF-16", "é"), True),
    "with a mark": ("\ufeff<a>x</a>", True),
    "zeros between, little": ("<\0a\0/\0>\0", False),
    "zeros between, big": ("\0<\0a\0/\0>", False),
    "a zero": ("<a>\0</a>", False),
    "a high surrogate": ("<a>\ud800x</a>", False),
    "a low surrogate": ("<a>\udc00</a>", False),
    "no character": ("<a>\ufffe</a>", False),
}


@pytest.mark.parametrize(("text", "is_good"), TEXTS.values(), ids=TEXTS)
def test_documents_that_come_as_text(text: str, is_good: bool) -> None:
    for texts in ((XPATH,), (INSIDE,), (XPATH, SQL)):
        try:
            found = bool(engine(*texts).match({"document": text}).ids)
        except HarkenError:
            found = False
        assert found is is_good
        batch = engine(*texts).match_batch([{"document": "<a/>"}, {"document": text}])
        assert batch.ids[0]
        assert bool(batch.ids[1]) is is_good
        if "\ud800" not in text and "\udc00" not in text:
            table = pa.table({"document": ["<a/>", text]})
            assert bool(engine(*texts).match_batch(table).ids[1]) is is_good
    try:
        read(text)
        assert is_good
    except HarkenError:
        assert not is_good


def test_the_place_of_a_lone_surrogate_is_told() -> None:
    document = wide("<a>\n  é\ud800x</a>", "utf-16-le")
    (rejected,) = engine(XPATH).match_batch([b"<a/>", document]).rejected
    assert str(rejected.error) == "the document is not text in the encoding utf-16-le (line 2, column 4)"


@pytest.mark.parametrize("text", [XPATH, SQL, INSIDE])
def test_bad_documents_are_left_out_of_what_is_learnt(text: tuple[str, str]) -> None:
    made = engine(text)
    made.learn([b"<a/>", BAD["not UTF-8"], BAD["utf-16-le with a lone high surrogate"], b"<a>x</a>"])
    assert made.match(b"<a/>").ids == ["0"]


def test_the_issue() -> None:
    """A lone surrogate and a malformed document in one batch."""
    document = b"\xff\xfe" + "<a>\ud800x</a>".encode("utf-16-le", "surrogatepass")
    made = engine(("/a", "xpath"))
    found = made.match_batch([document, b"<a>", b"<a/>"])
    assert found.ids == [[], [], ["0"]]
    assert [each.position for each in found.rejected] == [0, 1]
    with pytest.raises(HarkenError):
        made.match(document)
