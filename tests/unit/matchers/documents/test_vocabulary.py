"""What subscriptions say, kept once: interning, growth while others match, and what goes when nobody says it."""

from __future__ import annotations

import numpy as np
import pytest

from harken.events.xml.documents import Documents, read_document
from harken.kernels.documents import FIRST_KEY, HAS_STRINGS, IS_LISTED
from harken.language.xpath.parser import parse
from harken.matchers.documents import XPathMatcher
from harken.matchers.documents.vocabulary import ROOT, GrowingVocabulary, numeric_value

ELEMENT, ATTRIBUTE, TEXT = 1, 2, 3


def matcher_of(*texts: str) -> XPathMatcher:
    matcher = XPathMatcher()
    matcher.add_expressions({number: parse(text) for number, text in enumerate(texts)})
    return matcher


def found(matcher: XPathMatcher, document: bytes) -> list[int]:
    read = read_document(document)
    assert not read.errors
    return sorted(matcher.find(read)[1].tolist())


def names_of(matcher: XPathMatcher) -> set[bytes]:
    return {name for _, name in matcher._vocabulary.names} | {name for _, name in matcher._vocabulary.keys}


def texts_of(matcher: XPathMatcher) -> set[bytes]:
    used = matcher._vocabulary.used()
    data = used.texts.tobytes()
    lengths = zip(used.values[:, 1].tolist(), (used.values[:, 0] & 0xFFFFFFFF).tolist(), strict=True)
    return {data[begin : begin + length] for begin, length in lengths}


def test_linear_paths_are_kept_once():
    vocabulary = GrowingVocabulary()
    a = vocabulary.step(ROOT, False, ELEMENT, b"a")
    assert vocabulary.step(ROOT, False, ELEMENT, b"a") == a
    others = {
        vocabulary.step(ROOT, True, ELEMENT, b"a"),
        vocabulary.step(ROOT, False, ELEMENT, b"b"),
        vocabulary.step(ROOT, False, ELEMENT, None),
        vocabulary.step(a, False, ELEMENT, b"a"),
        vocabulary.step(a, False, ATTRIBUTE, b"a"),
        vocabulary.step(a, False, TEXT, None),
    }
    assert len({ROOT, a} | others) == 8
    assert vocabulary.paths == 8
    used = vocabulary.used()
    assert used.path_parent[a] == ROOT
    assert not used.path_descends[a]


def test_keys_go_by_the_last_name_and_those_of_texts_by_their_element():
    vocabulary = GrowingVocabulary()
    a = vocabulary.step(ROOT, False, ELEMENT, b"a")
    also = vocabulary.step(vocabulary.step(ROOT, False, ELEMENT, b"z"), True, ELEMENT, b"a")
    key = vocabulary.arrays.path_key
    assert key[a] == key[also] >= FIRST_KEY
    of_a = vocabulary.step(a, False, TEXT, None)
    assert vocabulary.arrays.path_key[of_a] >= FIRST_KEY
    assert vocabulary.arrays.path_key[vocabulary.step(also, False, TEXT, None)] == vocabulary.arrays.path_key[of_a]
    assert vocabulary.arrays.path_key[vocabulary.step(a, True, TEXT, None)] == TEXT
    assert vocabulary.arrays.path_key[vocabulary.step(a, False, ELEMENT, None)] == ELEMENT
    assert vocabulary.arrays.path_key[vocabulary.step(a, False, ATTRIBUTE, b"a")] != key[a]


def test_values_are_kept_once_by_their_key():
    vocabulary = GrowingVocabulary()
    contents = [b"x", b"y", b"x", b"", b"x", b""]
    keys = np.array([4, 4, 4, 4, 5, 5], np.int32)
    first = vocabulary.intern(contents, keys).tolist()
    assert first == [0, 1, 0, 2, 3, 4]
    assert vocabulary.intern(contents, keys).tolist() == first
    assert vocabulary.values == 5


def test_many_values_are_found_again_after_growth():
    vocabulary = GrowingVocabulary()
    contents = [f"value {number}".encode() for number in range(20_000)]
    keys = np.arange(20_000, dtype=np.int32) % 7 + FIRST_KEY
    first = vocabulary.intern(contents, keys)
    assert vocabulary.values == 20_000
    assert (vocabulary.intern(contents, keys) == first).all()
    assert vocabulary.values == 20_000
    assert vocabulary.memory() < 4_000_000


def test_equal_numbers_are_one_value():
    assert numeric_value(-0.0) == numeric_value(0.0)
    assert numeric_value(5.0) != numeric_value(0.5)
    matcher = matcher_of("/a = 5", "/a = 5.0", "5 = /a", "/a = '5'")
    assert found(matcher, b"<a>05</a>") == [0, 1, 2]
    assert found(matcher, b"<a>5</a>") == [0, 1, 2, 3]
    assert matcher.stats()["values"] == 2


def test_what_is_asked_of_a_key_adds_up():
    vocabulary = GrowingVocabulary()
    path = vocabulary.step(ROOT, False, ELEMENT, b"a")
    key = vocabulary.arrays.path_key[path]
    changes = vocabulary.changes
    vocabulary.use(path, HAS_STRINGS, 3)
    vocabulary.use(path, IS_LISTED)
    vocabulary.use(path, HAS_STRINGS, 2)
    assert vocabulary.used().key_asked[key] == HAS_STRINGS | IS_LISTED
    assert vocabulary.used().key_longest[key] == 3
    assert vocabulary.changes == changes + 2


def test_one_that_was_saved_may_be_read_only():
    vocabulary = GrowingVocabulary()
    path = vocabulary.step(ROOT, False, ELEMENT, b"a")
    key = vocabulary.arrays.path_key[path]
    vocabulary.intern([b"x"], np.array([key], np.int32))
    saved = vocabulary.used()
    for each in saved:
        each.flags.writeable = False
    before = [each.tobytes() for each in saved]
    again = GrowingVocabulary(saved, list(vocabulary.names), list(vocabulary.keys))
    assert again.step(ROOT, False, ELEMENT, b"a") == path
    assert again.step(ROOT, False, ELEMENT, b"b") == path + 1
    assert again.intern([b"x", b"y"], np.array([key, key], np.int32)).tolist() == [0, 1]
    again.use(path, IS_LISTED)
    assert [each.tobytes() for each in saved] == before


def documents_of_values(values: range) -> Documents:
    return read_document(b"<a>" + b"".join(b"<b>v%d</b><c%d/>" % (value, value) for value in values) + b"</a>")


def test_it_grows_while_a_snapshot_is_in_use():
    matcher = matcher_of("/a/b = 'v1'", "/a[b = 'v2']/c2", "not(//c3)")
    read = documents_of_values(range(500))
    before = matcher.snapshot().index
    assert sorted(matcher.search(before, read)[1].tolist()) == [0, 1]
    # Longer values at the same key, new names, new paths, enough for every array to be made anew several times.
    more = {
        number: parse(f"/a[b = 'v{number}' and c{number}]/b != 'a much longer one {number}'")
        for number in range(3, 500)
    }
    matcher.add_expressions(more)
    after = matcher.snapshot().index
    assert after is not before
    assert sorted(matcher.search(before, read)[1].tolist()) == [0, 1]
    assert sorted(matcher.search(after, read)[1].tolist()) == [0, 1, *range(3, 500)]
    matcher.remove(range(3, 500))
    matcher.merge()
    assert matcher._vocabulary is not after.vocabulary
    assert sorted(matcher.search(after, read)[1].tolist()) == [0, 1, *range(3, 500)]
    assert sorted(matcher.search(before, read)[1].tolist()) == [0, 1]
    assert found(matcher, b"<a><b>v1</b></a>") == [0, 2]


def test_tag_paths_and_names_may_come_in_any_order():
    matcher = matcher_of("//early = 'x'")
    assert found(matcher, b"<r><early>x</early><late>x</late></r>") == [0]
    matcher.add_expressions({1: parse("//late = 'x'"), 2: parse("/r/late/@later"), 3: parse("//late/text() = 'x'")})
    assert found(matcher, b"<r><early>x</early><late>x</late></r>") == [0, 1, 3]
    assert found(matcher, b"<r><late later=''/></r>") == [2]
    assert found(matcher, b"<n><early>x</early></n>") == [0]


@pytest.mark.parametrize("is_loaded", [False, True])
def test_what_is_gone_is_forgotten_when_indexes_are_merged(is_loaded):
    texts = [f"/a{number}[b{number} = 'string {number}']//c{number}[@d{number} > {number}]" for number in range(300)]
    texts += [f"//e{number} != 'other {number}'" for number in range(300)]
    texts += [f"//f{number} = {number}" for number in range(300)]
    matcher = matcher_of(*texts)
    document = b"<a7><b7>string 7</b7><c7 d7='8'/><e9/><f11>11</f11></a7>"
    assert found(matcher, document) == [7, 309, 611]
    if is_loaded:
        matcher = matcher.renumbered(np.arange(900, dtype=np.int32))
    full = matcher.stats()
    assert (full["linear_paths"], full["values"]) == (300 * 6, 900)
    kept = [7, 309, 611]
    matcher.remove(set(range(900)) - set(kept))
    assert found(matcher, document) == kept
    assert matcher.stats()["linear_paths"] == full["linear_paths"]
    matcher.merge()
    left = matcher.stats()
    assert (left["subscriptions"], left["linear_paths"], left["values"]) == (3, 6, 3)
    assert left["memory"]["bytes"] * 20 < full["memory"]["bytes"]
    assert names_of(matcher) == {b"a7", b"b7", b"c7", b"d7", b"e9", b"f11"}
    assert texts_of(matcher) == {b"string 7", b"other 9", numeric_value(11)}
    assert matcher._vocabulary.used().numbers.tolist() == [7.0]
    assert found(matcher, document) == kept
    matcher.remove(kept)
    matcher.merge()
    assert found(matcher, document) == []
    matcher.add_expressions({0: parse("/a7")})
    assert found(matcher, document) == [0]
    matcher.merge()


def test_nothing_is_left_when_all_is_gone():
    matcher = matcher_of(*(f"/a{number} = 'value {number}'" for number in range(100)))
    assert found(matcher, b"<a5>value 5</a5>") == [5]
    matcher.remove(range(100))
    matcher.merge()
    left = matcher.stats()
    assert (left["subscriptions"], left["linear_paths"], left["values"]) == (0, 0, 0)
    assert names_of(matcher) == set()


def test_what_only_a_vanished_index_said_is_forgotten_too():
    """The second index goes as a whole: what is left is one index of which all is alive."""
    matcher = matcher_of(*(f"/a{number} = 'value {number}'" for number in range(100)))
    assert found(matcher, b"<a5>value 5</a5>") == [5]
    matcher.add_expressions({100 + number: parse(f"/b{number} = 'other {number}'") for number in range(10)})
    assert found(matcher, b"<b5>other 5</b5>") == [105]
    assert len(matcher._snapshot.segments) == 2
    matcher.remove(range(100, 110))
    matcher.merge()
    left = matcher.stats()
    assert (left["subscriptions"], left["linear_paths"], left["values"]) == (100, 100, 100)


def test_what_was_learnt_stays_with_what_is_left():
    matcher = matcher_of("/a = 'often'", "/a = 'seldom'", "/b = 'gone'")
    for _ in range(9):
        found(matcher, b"<a>often</a>")
    found(matcher, b"<a>seldom</a>")
    matcher.remove([2])
    matcher.merge()
    learnt = matcher._tally.frequencies
    assert learnt.documents == 10
    assert sorted(learnt.values.tolist()) == [1, 9]


def test_a_long_life_of_changes_needs_no_more_room_than_a_short_one():
    """Nobody calls merge: what is gone has to go by itself, some time."""
    matcher = XPathMatcher()
    for turn in range(60):
        texts = {number: f"/a{turn}[b = 'value {turn} {number}' and c > {turn}]" for number in range(100)}
        matcher.remove(range(100))
        matcher.add_expressions({number: parse(text) for number, text in texts.items()})
        assert found(matcher, b"<a%d><b>value %d 7</b><c>99</c></a%d>" % (turn, turn, turn)) == [7]
    assert matcher.stats()["values"] <= 10 * 100
