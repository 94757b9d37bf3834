"""A small life of the index of documents, to be run with and without compilation: prints what was found."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harken import Engine
from harken.events.batch import validate
from harken.internals import join_engines
from harken.live.match_call import BatchCall
from harken.live.unparsed import Unparsed

TEXTS = {
    "paper": "/a//b[.//c/d/text() = 'v1' and p//q/text() = 'v2']/x[@y = 'v3']//z/text() = 'v4'",
    "number": "/a/@n > 5 or //z <= 3",
    "equal": "/a/@n = 7",
    "string": "//x/@y = 'v3'",
    "differs": "//z != 'v4'",
    "differs by number": "/a/@n != 7",
    "between": "/a[@n >= 1 and @n < 7]",
    "never": "not(//zzz)",
    "any": "//*[@*]/text()",
    "root": ". = 'v5'",
    "either": "/a[@n = 1 or .//z = 'v5' and not(@m)]",
    "retreat": "//a//b/c//d",
    "empty": "//p[. = '']",
}
DOCUMENTS = [
    b"<a n='7'><b><c><d>v1</d></c><p><q>v2</q></p><x y='v3'><z>v4</z><z>v5</z></x></b><b><b><x y='v4'/></b></b></a>",
    b"<a n='1'><z>v5</z></a>",
    b"<a n='x'><zzz m='1'>t</zzz><z>3</z><p/></a>",
    b"<b/>",
    b"<a><b><c/><b><c><b><c><e><d/></e></c></b></c></b></b></a>",
]


def main() -> None:
    engine = Engine()
    for place, (id, text) in enumerate(TEXTS.items()):
        engine.subscribe(id, text, language="xpath")
        if place == 6:
            show(engine)
    engine.subscribe("sql", "xpath_boolean(document, '/a[@n = 7]')")
    show(engine)
    for _ in range(16):  # as many documents as it takes to lay the index out by them
        engine.match_batch(DOCUMENTS)
    show(engine)
    engine.unsubscribe("never")
    engine.merge()
    show(engine)
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "engine")
        show(Engine.load(Path(folder) / "engine"))
    joined, _ = join_engines(engine.internals.cut(2))
    show(joined)
    match_while_the_vocabulary_grows()


def match_while_the_vocabulary_grows() -> None:
    """Names and constants of later subscriptions are beyond the arrays of a snapshot; one table leads to them."""
    engine = Engine()
    document = b"".join(b"<k%d>v%d</k%d>" % (n, n, n) for n in range(64)).join((b"<a>", b"</a>"))
    engine.subscribe("0", "/a/k0 = 'v0'", language="xpath")
    for number in range(1, 64):
        engine.match(document)
        with BatchCall(engine._live) as call:
            engine.subscribe(str(number), f"/a/k{number} = 'v{number}'", language="xpath")
            assert len(engine.match(document).ids) == number + 1  # indexes what was added
            decoded = validate([document], None, engine.internals.limits, call.snapshot.decoded_names)
            assert len(call.match(decoded, 0.0, 1, Unparsed()).ids[0]) == number


def show(engine: Engine) -> None:
    found = [sorted(ids) for ids in engine.match_batch(DOCUMENTS).ids]
    assert [sorted(engine.match(document).ids) for document in DOCUMENTS] == found
    print(found)


if __name__ == "__main__":
    main()
