"""Syntax errors in words: where parsing failed, why, and what to write instead."""

from __future__ import annotations

import re

from harken.errors import ParseError
from harken.language.places import located
from harken.language.xpath.tokens import END, NOTHING, QUOTES, Tokens, is_name, is_number

__all__ = [
    "ARITHMETIC",
    "located",
    "no_operand",
    "no_operator",
    "rejected",
    "rejected_axis",
    "rejected_call",
    "rejected_constant",
    "rejected_self",
]

POSITIONS = "say which one by a value: a[@id = '7'], a[b = 'x']"
_AXES = "child::, descendant::, attribute::, self::node() and descendant-or-self::node() are"
_UPWARDS = "put the condition into a predicate of the element above: /a[b = 'x']/c"
_WHOLE_VALUE = "only whole values compare: a = 'x', a != 'x', a < 5"
_AS_WRITTEN = f"{_WHOLE_VALUE}, all of them as they are written"
_NUMBERS = "a comparison with a number, or by < <= > >=, compares numbers: a > 5"
_PATH_ALONE = "a path alone asks whether there is such a node: /a[b], not(/a[b])"
_FUNCTIONS = {
    **dict.fromkeys(("position", "last"), POSITIONS),
    **dict.fromkeys(("contains", "starts-with", "ends-with", "matches", "substring", "string-length"), _WHOLE_VALUE),
    **dict.fromkeys(("number", "sum", "floor", "ceiling", "round"), _NUMBERS),
    **dict.fromkeys(("count", "boolean", "exists", "empty"), _PATH_ALONE),
    **dict.fromkeys(("translate", "lower-case", "upper-case"), _AS_WRITTEN),
    **dict.fromkeys(("concat", "string-join"), "strings cannot be joined: a = 'x' and b = 'y'"),
    "normalize-space": "values compare with all their blanks: a = 'x'; a != '' asks for a value that is not empty",
    "string": "a path compares by its string-value already: a = 'x'",
    "name": "write the name as a step: /a/b",
    "local-name": "write the name as a step: /a/b; a namespace is declared: declare namespace p = 'uri'; /p:a",
    "namespace-uri": "declare the namespace: declare namespace p = 'uri'; /p:a",
    "id": "compare the attribute: //a[@id = '7']",
}
_TRUTHS = {
    "true": "leave it out; /* is true of every document",
    "false": "nothing can match it: leave it out behind or, and with it all that and joins it to",
}
_SELF = {
    "self": "write the name as the step: //a or //b, not //*[self::a or self::b]",
    "descendant-or-self": "write //a, or .//a below a step",
}
_NODE_TESTS = ("node", "comment", "processing-instruction")
_COMPARE = "compare a path with a number: a < 5"
_COMPARED = re.compile(r"[=<>]\s*\Z")
"""What stands before the right side of a comparison."""
_COMPARES = re.compile(r"\s*\(\s*\)\s*[=!<>]")
"""What stands behind the name of a function that is the left side of a comparison."""
_NEAR = 20
"""Characters before a function that are searched for the sign of a comparison."""
_COMMENTS = "leave the comment out"
ARITHMETIC = ("+", "-", "*", "div", "mod")
_WORDS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "is": "="}
_CHARACTERS = {
    "&": "write and",
    "!": "write not(…), or != between a path and a value",
    "{": "names of a namespace have a prefix: declare namespace p = 'uri'; /p:a",
    ":": "an axis is written child::a, a name of a namespace p:a, without blanks",
    "`": "names are written as they are; strings stand in ' or \"",
    "\u00a0": "this is a no-break space; write a plain one",
    "\u201c": "strings stand in plain quotes: ' or \"",
    "\u2018": "strings stand in plain quotes: ' or \"",
    "\u2019": "strings stand in plain quotes: ' or \"",
}


def rejected(text: str, at: int, message: str, hint: str | None = None) -> ParseError:
    """An error at an offset."""
    return ParseError(message, hint=hint).at(*located(text, at))


def rejected_call(text: str, at: int, name: str) -> ParseError:
    """The error for a function, or a node test, that is not supported."""
    if name in _NODE_TESTS:
        hint = "write * for any element, @* for any attribute, text() for text"
        return rejected(text, at, f"the node test {name}() is not supported", hint)
    if name in _TRUTHS:
        is_compared = _COMPARED.search(text[max(0, at - _NEAR) : at]) or _COMPARES.match(text, at + len(name))
        compared = f"compare with the text: @a = '{name}'; @a alone asks whether it is there"
        hint = compared if is_compared else _TRUTHS[name]
        return rejected(text, at, f"{name}() is a constant, not a condition on a document", hint)
    if name == "not":
        return rejected(text, at, "not() cannot be a step of a path", "write the path inside: not(a/b)")
    if name in ("and", "or"):
        return rejected(text, at, f"a condition is missing before `{name}`")
    if name == "if":
        return rejected(text, at, "if is not supported", "write (a and b) or (not(a) and c)")
    return rejected(text, at, f"the function {name}() is not supported", _FUNCTIONS.get(name))


def rejected_axis(text: str, at: int, axis: str) -> ParseError:
    """The error for an axis that is not supported."""
    hint = _UPWARDS if axis in ("parent", "ancestor", "ancestor-or-self") else f"{_AXES} supported"
    return rejected(text, at, f"the axis {axis}:: is not supported", hint)


def rejected_self(text: str, at: int, axis: str) -> ParseError:
    """The error for one of the axes that start at the node itself, before a name."""
    return rejected(text, at, f"{axis}:: is supported before node() only", _SELF[axis])


def rejected_constant(text: str, at: int, value: str | float, *, is_predicate: bool) -> ParseError:
    """The error for a constant where a condition has to stand."""
    if isinstance(value, str):
        return rejected(text, at, "a string alone is not a condition", "compare it with a path: a = 'x'")
    if is_predicate:
        return rejected(text, at, "positions are not supported: a number alone is not a condition", POSITIONS)
    return rejected(text, at, "a number alone is not a condition", "compare it with a path: a = 5")


def no_operand(text: str, tokens: Tokens, place: int, expected: str) -> ParseError:
    """The error for a token where a path or a value has to begin."""
    word, at = tokens.words[place], tokens.starts[place]
    before = tokens.words[place - 1] if place else ""
    if word == "..":
        return rejected(text, at, "`..` (the parent) is not supported", _UPWARDS)
    if word == "$":
        return rejected(text, at, "variables are not supported", "write the value: a = 'x'")
    if word == "]" and before == "[":
        return rejected(text, at, "the predicate is empty", "write a condition: a[b], a[b = 'x']")
    if word == ">" and before == "<":
        return rejected(text, at, "unexpected `>`", "not equal is written !=")
    if word == "=" and before == "=":
        return rejected(text, at, "unexpected `=`", "equal is written =")
    if word in ("/", "//") and before in ("/", "//"):
        return rejected(text, at, f"unexpected `{word}`", "below at any depth is written //")
    if word in ("+", "-", "*"):
        return _arithmetic(text, at)
    return _unexpected(text, word, at, f"expected {expected}")


def no_operator(text: str, tokens: Tokens, place: int, expected: str) -> ParseError:
    """The error for a token where a path or a condition has ended."""
    word, at = tokens.words[place], tokens.starts[place]
    before = tokens.words[place - 1] if place else ""
    if word in ARITHMETIC:
        is_constant = is_number(before) and is_number(tokens.words[place + 1])
        return _arithmetic(text, at, "write the result: a < 5, not a < 2 + 3" if is_constant else _COMPARE)
    if word == "|":
        hint = "or is written or" if tokens.words[place + 1 : place + 2] == ["|"] else "join the conditions with or"
        return rejected(text, at, "`|` is not supported", hint)
    if word == "," or (word in ("to", "return", "satisfies") and is_name(word)):
        return rejected(text, at, f"unexpected `{word}`", "join conditions with and or or")
    if word in _WORDS:
        return rejected(text, at, f"unexpected `{word}`", f"write {_WORDS[word]}")
    if word.lower() in ("and", "or"):
        return rejected(text, at, f"unexpected `{word}`", f"write {word.lower()} or {word.upper()}")
    if word in ("[", "/", "//"):
        if before == ")":
            message = "a path in parentheses cannot go on"
            return rejected(text, at, message, "write the path without parentheses: a/b[c]")
        return rejected(text, at, f"unexpected `{word}`", f"expected {expected}")
    if before.lower() == "not":
        return rejected(text, at, f"unexpected `{word}`", "not takes parentheses: not(a)")
    if is_name(word) or is_number(word) or word[:1] in ("@", ".", "(", *QUOTES):
        return _unexpected(text, word, at, "join two conditions with and or or")
    return _unexpected(text, word, at, f"expected {expected}")


def _arithmetic(text: str, at: int, hint: str = _COMPARE) -> ParseError:
    return rejected(text, at, "arithmetic is not supported", hint)


def _unexpected(text: str, word: str, at: int, hint: str | None) -> ParseError:
    if word == END:
        message = "the text is empty" if not text.strip() else "the text ends too early"
        return rejected(text, len(text.rstrip()), message, hint)
    if word == "(:":
        return rejected(text, at, "comments are not supported", _COMMENTS)
    if word.startswith(NOTHING):
        character = word[1]
        if character in QUOTES:
            return rejected(text, at, "the string that starts here is not closed", f"end it with {character}")
        return rejected(text, at, f"unexpected character {character!r}", _CHARACTERS.get(character) or hint)
    return rejected(text, at, f"unexpected `{word if len(word) <= 40 else word[:39] + '…'}`", hint)
