"""XPath's core function library in the plainest code."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harken.language.xpath.ast import NodeKind
from harken.reference.document_trees import Node
from harken.reference.document_values import Found, boolean, number, string, string_value

_SPACES = " \t\r\n"
_XML = "{http://www.w3.org/XML/1998/namespace}"


def called(name: str, arguments: Sequence[Found], context: Node) -> Found:
    """The result of a function. `position` and `last` are not here: they depend on more than the context node."""
    one: Found = arguments[0] if arguments else [context]
    match name:
        case "string":
            return string(one)
        case "number":
            return number(one)
        case "boolean":
            return boolean(one)
        case "not":
            return not boolean(one)
        case "true" | "false":
            return name == "true"
        case "count" if isinstance(one, list):
            return float(len(one))
        case "sum" if isinstance(one, list):
            total = 0.0
            for node in one:
                total += number(string_value(node))
            return total
        case "floor" | "ceiling" | "round":
            return _whole(name, number(one))
        case "local-name" | "namespace-uri" | "name" if isinstance(one, list):
            return _name(name, one[0]) if one else ""
        case "lang":
            return _is_in_language(context, string(one))
        case "string-length":
            return float(len(string(one)))
        case "normalize-space":
            return _normalized(string(one))
        case "substring":
            return _substring(string(one), [number(each) for each in arguments[1:]])
    return _of_strings(name, [string(each) for each in arguments])


def _of_strings(name: str, texts: list[str]) -> Found:
    match name:
        case "concat":
            return "".join(texts)
        case "starts-with":
            return texts[0][: len(texts[1])] == texts[1]
        case "contains":
            return texts[0].find(texts[1]) >= 0
        case "substring-before":
            return texts[0][: max(0, texts[0].find(texts[1]))]
        case "substring-after":
            at = texts[0].find(texts[1])
            return texts[0][at + len(texts[1]) :] if at >= 0 else ""
        case "translate":
            text, old, new = texts
            kept = [(character, old.find(character)) for character in text]
            return "".join(new[at : at + 1] if at >= 0 else character for character, at in kept)
    raise ValueError(f"no function: {name!r}")


def _whole(name: str, value: float) -> float:
    """The integer below, above or nearest to a number: of two nearest, the greater. The sign of zero is kept."""
    if math.isnan(value) or math.isinf(value) or value == math.trunc(value):
        return value
    below = math.floor(value)
    is_up = name == "ceiling" or (name == "round" and value - below >= 0.5)
    return math.copysign(float(below + is_up), value) if below + is_up == 0 else float(below + is_up)


def _substring(text: str, bounds: list[float]) -> str:
    first = _whole("round", bounds[0])
    if len(bounds) == 1:
        return "".join(character for at, character in enumerate(text, 1) if at >= first)
    behind = first + _whole("round", bounds[1])
    return "".join(character for at, character in enumerate(text, 1) if first <= at < behind)


def _normalized(text: str) -> str:
    for space in _SPACES:
        text = text.replace(space, " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip(" ")


def _name(function: str, node: Node) -> str:
    """A name or its parts. Documents keep no prefixes: `name` has only the one that no document can change, `xml`."""
    name = node.name or ""
    uri, _, local = name[1:].rpartition("}") if name.startswith("{") else ("", "", name)
    if function == "namespace-uri":
        return uri
    return "xml:" + local if function == "name" and name.startswith(_XML) else local


def _is_in_language(node: Node, language: str) -> bool:
    """Whether the nearest `xml:lang` is the language or a dialect of it."""
    current: Node | None = node
    while current is not None:
        for attribute in current.attributes:
            if attribute.kind is NodeKind.ATTRIBUTE and attribute.name == _XML + "lang":
                lower, wanted = attribute.value.lower(), language.lower()
                return lower == wanted or lower.startswith(wanted + "-")
        current = current.parent
    return False
