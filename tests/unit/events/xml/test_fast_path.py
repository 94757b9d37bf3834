"""The kernel against expat: what it accepts is well-formed, and both read the same."""

from __future__ import annotations

import random

import pytest

from harken.errors import HarkenError
from harken.limits import Limits

WELL_FORMED = [
    "<a/>",
    "<a></a >",
    "<a>text</a>",
    "<?xml version='1.0' encoding='UTF-8' standalone=\"yes\"?>\n<a b='1' c=\"2\">x<d/>y</a>\n",
    '<?xml version="1.0"?><!-- before --><?pi some?><a/><!-- after --><?pi?>\n',
    "\ufeff<a>with a mark</a>",
    "<a>x<![CDATA[<&]]]]>y</a>",
    "<a><![CDATA[]]></a>",
    "<a>one<!-- - two -->three<?four?>five<![CDATA[six]]>seven</a>",
    "<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#x10FFFF;&#xe9;&#13;&#9;</a>",
    "<a b='&lt;&#10; \t\n\"&apos;' c=\"'\"/>",
    "<a b=' '>]] ] > ]&gt; ]]x</a>",
    "<p:a xmlns:p='urn:p' p:b='1' b='2'><p:c/><d/></p:a>",
    "<a xmlns='urn:d' b='1'><c xmlns=''><d/></c><e xmlns='urn:e'><f/></e><g/></a>",
    "<a xmlns:p='urn:1'><p:b xmlns:p='urn:2' p:c='3'/><p:b p:c='4'/></a>",
    "<a p:x='1' xmlns:p='urn:p&amp;q'/>",
    "<a xml:lang='en' xml:space='preserve'><b/></a>",
    "<a><a><a><a><b/><b/></a></a></a></a>",
    "<é ü='ö'>ß</é>",
    "<a>é€😀</a>",
    "<a\n\tb = '1'\n>\r\nx\ry\n</a\n>",
    "<a.b-c_d1 _='1'/>",
    "<" + "long" * 20 + " " + "name" * 20 + "='" + "value" * 20 + "'>" + "text " * 30 + "</" + "long" * 20 + ">",
    "<?xml version='1.1'?><a/>",
    "<a><b>1</b><b>2</b><c>3</c><b>4</b></a>",
    "<xmla xmlx='1'/>",
    "<a:b xmlns:a='u'><c xmlns:a='v' a:d='1' xmlns:e='v'/></a:b>",
]
MALFORMED = [
    "",
    " ",
    "x",
    "<a>",
    "<a",
    "<a b",
    "<a b=",
    "<a b='",
    "<a b='1'",
    "<a b='1'/",
    "</a>",
    "<a></b>",
    "<a></a",
    "<a/><a/>",
    "<a/>x",
    "x<a/>",
    "<a>]]></a>",
    "<a>&</a>",
    "<a>&lt</a>",
    "<a>&b;</a>",
    "<a>&#0;</a>",
    "<a>&#xD800;</a>",
    "<a>&#xFFFE;</a>",
    "<a>&#x110000;</a>",
    "<a>&#99999999999;</a>",
    "<a>&#;</a>",
    "<a>&#x;</a>",
    "<a>\x01</a>",
    "<a b='\x02'/>",
    "<a b='<'/>",
    "<a b='1'c='2'/>",
    "<a b=1/>",
    "<a b='1' b='2'/>",
    "<a xmlns:p='u' xmlns:q='u' p:b='1' q:b='2'/>",
    "<a xmlns:p='u' xmlns:p='v'/>",
    "<a xmlns='u' xmlns='v'/>",
    "<p:a/>",
    "<a p:b='1'/>",
    "<a xmlns:p=''/>",
    "<a xmlns:xml='u'/>",
    "<a xmlns:xmlns='u'/>",
    "<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>",
    "<a xmlns='http://www.w3.org/2000/xmlns/'/>",
    "<a:b:c xmlns:a='u'/>",
    "<:a/>",
    "<a:/>",
    "<a><!-- -- --></a>",
    "<a><!-- --->\n</a>",
    "<a><!-></a>",
    "<a><?xml version='1.0'?></a>",
    "<a><?XmL?></a>",
    "<a><? pi?></a>",
    "<a><?pi",
    "<a><![CDATA[</a>",
    "<![CDATA[x]]><a/>",
    "<a/><![CDATA[x]]>",
    " <?xml version='1.0'?><a/>",
    "<?xml?><a/>",
    "<?xml encoding='utf-8'?><a/>",
    "<?xml version='1.0' standalone='maybe'?><a/>",
    "<?xml version='1.0' standalone='yes' encoding='utf-8'?><a/>",
    "<?xml version='1.0' encoding='utf-16'?><a/>",
    "<!DOCTYPE a><a/>",
    "<a>\ufffe</a>",
    "<a>\uffff</a>",
    "<1/>",
    "<-a/>",
    "< a/>",
    "<a / >",
    "<a>&amp</a>",
    "<a><b></a></b>",
]
BYTES = b"<>&;'\"=/!?-[]:# \t\n\r\x00\x01\x0b\x7f\x80\xa9\xbe\xbf\xc3\xe2\xed\xef\xf4\xffabcpxmlnsu019CDAT{}|"


def mutated(document: bytes, draw: random.Random) -> bytes:
    data = bytearray(document)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        at = draw.randrange(len(data) + 1)
        other = draw.randrange(len(data) + 1)
        kind = draw.randrange(5)
        if kind == 0 and at < len(data):
            data[at] = draw.choice(BYTES)
        elif kind == 1:
            del data[at : at + draw.choice((1, 1, 2, 5))]
        elif kind == 2:
            data.insert(at, draw.choice(BYTES))
        elif kind == 3:
            data[at:at] = data[other : other + draw.choice((1, 3, 8, 20))]
        elif at < len(data):
            data[at] ^= 1 << draw.randrange(8)
    return bytes(data)


def agree(pieces: list[bytes], by_kernel, by_expat) -> tuple[int, int]:
    """Check that whatever the kernel accepts expat reads in the same way; count both."""
    accepted = sound = 0
    for piece, found in zip(pieces, by_kernel(pieces), strict=True):
        try:
            expected = by_expat(piece)
        except HarkenError:
            expected = None
        assert found is None or found == expected, piece
        accepted += found is not None
        sound += expected is not None
    return accepted, sound


def test_well_formed_documents(by_kernel, by_expat) -> None:
    pieces = [each.encode() for each in WELL_FORMED]
    accepted, sound = agree(pieces, by_kernel, by_expat)
    assert sound == len(pieces)
    assert accepted == len(pieces) - 2, "all but the names outside ASCII and version 1.1"


def test_one_by_one_at_the_end_of_the_data(by_kernel, by_expat) -> None:
    for each in WELL_FORMED:
        agree([each.encode()], by_kernel, by_expat)
        agree([each.encode() + b" " * 40], by_kernel, by_expat)


@pytest.mark.parametrize("text", MALFORMED)
def test_the_kernel_leaves_malformed_documents_alone(text: str, by_kernel, by_expat) -> None:
    data = text.encode()
    assert by_kernel([data]) == [None]
    assert by_kernel([data, b" " * 100])[0] is None
    with pytest.raises(HarkenError):
        by_expat(data)


@pytest.mark.parametrize("seed", range(8))
def test_mutations(seed: int, by_kernel, by_expat) -> None:
    draw = random.Random(seed)
    whole = [each.encode() for each in WELL_FORMED]
    pieces = [mutated(draw.choice(whole), draw) for _ in range(3_000)]
    accepted, sound = agree(pieces, by_kernel, by_expat)
    assert accepted > 300
    assert accepted > 0.6 * sound


@pytest.mark.seconds
def test_mutations_of_joined_documents(by_kernel, by_expat) -> None:
    draw = random.Random(11)
    parts = [each for each in WELL_FORMED if not each.startswith(("<?", "\ufeff"))]
    whole = [("<r>" + "\n ".join(draw.choices(parts, k=4)) + "</r>").encode() for _ in range(200)]
    agree([mutated(draw.choice(whole), draw) for _ in range(4_000)], by_kernel, by_expat)


def test_every_cut_of_a_document_is_left_alone(by_kernel) -> None:
    for text in WELL_FORMED:
        data = text.rstrip().encode()
        last = data.rfind(b"</") if not data.endswith(b"?>") else len("<?xml version='1.0'?>")
        pieces = [data[:end] for end in range(max(1, last))]
        assert not any(by_kernel([piece for piece in pieces if b"/>" not in piece]))


def test_nasa(nasa: list[bytes], by_kernel, by_expat) -> None:
    chosen = nasa[::12]
    accepted, _ = agree(chosen, by_kernel, by_expat)
    assert accepted == len(chosen)


@pytest.mark.slow
def test_all_of_nasa(nasa: list[bytes], by_kernel, by_expat) -> None:
    assert agree(nasa, by_kernel, by_expat) == (2_435, 2_435)


def test_limits_are_exact(by_kernel, by_expat) -> None:
    data = b"<a b='1'><c>x</c><d/></a>"  # five nodes in two levels
    for limits, is_within in [
        (Limits(max_document_nodes=5), True),
        (Limits(max_document_nodes=4), False),
        (Limits(max_event_depth=2), True),
        (Limits(max_event_depth=1), False),
        (Limits(max_event_bytes=len(data)), True),
        (Limits(max_event_bytes=len(data) - 1), False),
    ]:
        assert (by_kernel([data], limits)[0] is not None) == is_within
        if is_within:
            by_expat(data, limits)
        else:
            with pytest.raises(HarkenError):
                by_expat(data, limits)
