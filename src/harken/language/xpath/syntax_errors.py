"""Syntax errors in words: where parsing failed, why, and what to write instead."""

from __future__ import annotations

from harken.errors import ParseError, did_you_mean
from harken.language.places import located
from harken.language.xpath.core_functions import CORE_FUNCTIONS
from harken.language.xpath.tokens import END, NOTHING, QUOTES, Tokens, is_name, is_number

__all__ = [
    "located",
    "no_operand",
    "no_operator",
    "rejected",
    "rejected_arguments",
    "rejected_axis",
    "rejected_call",
    "rejected_node_test",
]

_FUNCTIONS = {
    "id": "documents without a DOCTYPE have no ids: compare the attribute: //a[@id = '7']",
    "ends-with": "write substring(a, string-length(a) - 1) = 'xy', with the length of the end",
    "matches": "XPath 1.0 has no expressions: contains(a, 'x'), starts-with(a, 'x')",
    "exists": "a path alone asks whether there is such a node: /a[b]",
    "empty": "write not(a/b)",
    "lower-case": "write translate(a, 'ABC', 'abc'), with all letters",
    "upper-case": "write translate(a, 'abc', 'ABC'), with all letters",
    "string-join": "write concat(a, 'x')",
    "text": "text() is a step: a/text()",
    "if": "write (a and b) or (not(a) and c)",
    "avg": "write sum(a) div count(a)",
    "min": "write a[not(../a < .)]",
    "max": "write a[not(../a > .)]",
    "abs": "write a * (1 - 2 * (a < 0))",
}
_MOSTLY = "child::, descendant::, parent::, ancestor::, following::, preceding::, self:: and attribute:: are some"
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
    """The error for a function that XPath 1.0 does not have, or that is not supported."""
    if name in ("and", "or"):
        return rejected(text, at, f"a condition is missing before `{name}`")
    hint = _FUNCTIONS.get(name) or did_you_mean(name, CORE_FUNCTIONS)
    return rejected(text, at, f"the function {name}() is not supported", hint)


def rejected_arguments(text: str, at: int, name: str, count: int) -> ParseError:
    """The error for a function with too few or too many arguments."""
    signature = CORE_FUNCTIONS[name]
    least, most = signature.required, len(signature.arguments)
    if signature.is_variadic:
        takes = f"at least {least} arguments"
    elif least < most:
        takes = f"{least} or {most} arguments"
    else:
        takes = "no arguments" if not most else "1 argument" if most == 1 else f"{most} arguments"
    return rejected(text, at, f"{name}() takes {takes}, not {count}")


def rejected_node_test(text: str, at: int, name: str) -> ParseError:
    """The error for a call where a step has to stand."""
    if name in ("comment", "processing-instruction"):
        hint = "documents are kept without comments and processing instructions"
        return rejected(text, at, f"the node test {name}() is not supported", hint)
    if name == "not":
        return rejected(text, at, "not() cannot be a step of a path", "write the path inside: not(a/b)")
    message = f"the function {name}() cannot be a step of a path"
    return rejected(text, at, message, f"write the path inside: {name}(a/b)" if name in CORE_FUNCTIONS else None)


def rejected_axis(text: str, at: int, axis: str) -> ParseError:
    """The error for an axis that does not exist or is not supported."""
    if axis == "namespace":
        hint = "declare the namespace: declare namespace p = 'uri'; /p:a, or compare namespace-uri()"
        return rejected(text, at, "the axis namespace:: is not supported", hint)
    return rejected(text, at, f"there is no axis {axis}::", f"{_MOSTLY} of the axes")


def no_operand(text: str, tokens: Tokens, place: int, expected: str) -> ParseError:
    """The error for a token where a path or a value has to begin."""
    word, at = tokens.words[place], tokens.starts[place]
    before = tokens.words[place - 1] if place else ""
    if word == "$":
        return rejected(text, at, "variables are not supported", "write the value: a = 'x'")
    if word == "]" and before == "[":
        return rejected(text, at, "the predicate is empty", "write a condition: a[b], a[b = 'x']")
    if word == ">" and before == "<":
        return rejected(text, at, "unexpected `>`", "not equal is written !=")
    if word == "=" and before == "=":
        return rejected(text, at, "unexpected `=`", "equal is written =")
    if word == "|" and before == "|":
        return rejected(text, at, "unexpected `|`", "or is written or; nodes are united by one |")
    if word in ("/", "//") and before in ("/", "//"):
        return rejected(text, at, f"unexpected `{word}`", "below at any depth is written //")
    return _unexpected(text, word, at, f"expected {expected}")


def no_operator(text: str, tokens: Tokens, place: int, expected: str) -> ParseError:
    """The error for a token where a path or a condition has ended."""
    word, at = tokens.words[place], tokens.starts[place]
    before = tokens.words[place - 1] if place else ""
    if word == "|":
        return rejected(text, at, "unexpected `|`", "or is written or; nodes are united by one |")
    if word == "," or (word in ("to", "return", "satisfies") and is_name(word)):
        return rejected(text, at, f"unexpected `{word}`", "join conditions with and or or")
    if word in _WORDS:
        return rejected(text, at, f"unexpected `{word}`", f"write {_WORDS[word]}")
    if word.lower() in ("and", "or"):
        return rejected(text, at, f"unexpected `{word}`", f"write {word.lower()} or {word.upper()}")
    if word in ("[", "/", "//"):
        return rejected(text, at, f"unexpected `{word}`", f"expected {expected}")
    if before.lower() == "not":
        return rejected(text, at, f"unexpected `{word}`", "not takes parentheses: not(a)")
    if is_name(word) or is_number(word) or word[:1] in ("@", ".", "(", *QUOTES):
        return _unexpected(text, word, at, "join two conditions with and or or")
    return _unexpected(text, word, at, f"expected {expected}")


def _unexpected(text: str, word: str, at: int, hint: str | None) -> ParseError:
    if word == END:
        message = "the text is empty" if not text.strip() else "the text ends too early"
        return rejected(text, len(text.rstrip()), message, hint)
    if word == "(:":
        return rejected(text, at, "comments are not supported", "leave the comment out")
    if word.startswith(NOTHING):
        character = word[1]
        if character in QUOTES:
            return rejected(text, at, "the string that starts here is not closed", f"end it with {character}")
        return rejected(text, at, f"unexpected character {character!r}", _CHARACTERS.get(character) or hint)
    return rejected(text, at, f"unexpected `{word if len(word) <= 40 else word[:39] + '…'}`", hint)
