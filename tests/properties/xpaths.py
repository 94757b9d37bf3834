"""Random XML documents, and XPath expressions about them, built to collide.

Few names under each other, mixed content, comments and CDATA between texts, attributes, namespaces, and texts that are
almost numbers. Expressions are drawn from nodes of given documents, so that many of them are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from harken.language.xpath.ast import NodeKind
from harken.reference.documents import Node, number, read, string_value

NAMESPACES = {"p": "urn:p", "q": "urn:q"}
"""The prefixes that expressions may use."""
PROLOGUE = "".join(f"declare namespace {prefix} = '{uri}'; " for prefix, uri in NAMESPACES.items())
NUMBERS = ("5", "7", "-3", "0", "-0", "12.5", "05", "5.0")
ODD = (" 5 ", "5.", ".5", "-.5", "1e3", "0x10", "+5", "", "NaN", "-", ".", "- 5", "5 5", "\n7\t", "Infinity", "5-", "٣")
WORDS = ("v", "w", "v1", "V", "ä", "a b", "it's", 'say "x"')
_NAMES = ("a", "b", "c", "d")
_KEYS = ("x", "y", "id")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;"})
_OPERATORS = ("=", "=", "!=", "!=", "<", "<=", ">", ">=")
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def random_document(rng: Random) -> bytes:
    """A small document."""
    head = rng.choice(("", "", "<?xml version='1.0' encoding='UTF-8'?>", "<!-- c --><?pi x?>\n"))
    names = _NAMES if rng.random() < 0.5 else _NAMES[:2]
    return (head + _element(rng, names, 0, has_prefix=False) + rng.choice(("", "\n", "<!-- c -->"))).encode()


def random_expression(rng: Random, documents: Sequence[bytes]) -> str:
    """An expression drawn from one of the documents. It declares the prefixes that it uses."""
    text = PathWriter(rng).expression(read(rng.choice(documents)), depth=0)
    return PROLOGUE + text if any(f"{prefix}:" in text for prefix in NAMESPACES) else text


def random_text(rng: Random) -> str:
    """The value of a text or an attribute."""
    return rng.choice(rng.choice((NUMBERS, NUMBERS, ODD, WORDS)))


def _element(rng: Random, names: Sequence[str], depth: int, *, has_prefix: bool) -> str:
    name = rng.choice(names)
    attributes = {key: random_text(rng) for key in _KEYS if rng.random() < 0.25}
    if rng.random() < 0.1:
        attributes["xmlns"] = rng.choice(("urn:p", "urn:q", ""))
    if rng.random() < 0.1:
        attributes["xmlns:n"] = rng.choice(("urn:p", "urn:q"))
        has_prefix = True
    if has_prefix:
        name = f"n:{name}" if rng.random() < 0.5 else name
        if rng.random() < 0.4:
            attributes["n:x"] = random_text(rng)
    if rng.random() < 0.05:
        attributes["xml:lang"] = "en"
    head = name + "".join(f' {key}="{value.translate(_ESCAPES)}"' for key, value in attributes.items())
    fan_out = rng.choice((0, 1, 1, 2, 3, 4)) if depth < 5 else rng.choice((0, 1))
    content = "".join(_content(rng, names, depth, has_prefix=has_prefix) for _ in range(fan_out))
    return f"<{head}>{content}</{name}>" if content or rng.random() < 0.5 else f"<{head}/>"


def _content(rng: Random, names: Sequence[str], depth: int, *, has_prefix: bool) -> str:
    draw = rng.random()
    if draw < 0.5 and depth < 5:
        return _element(rng, names, depth + 1, has_prefix=has_prefix)
    if draw < 0.8:
        return random_text(rng).translate(_ESCAPES)
    if draw < 0.86:
        return f"<![CDATA[{random_text(rng)}]]>"
    if draw < 0.91:
        return "<!-- 5 -->"
    return rng.choice((" ", "\n  ", "<?pi 5?>", "&#53;", "&amp;"))


class PathWriter:
    """Writes expressions that some node made likely."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def expression(self, context: Node, depth: int, *, is_top: bool = True) -> str:
        """An expression with a node as context."""
        rng = self.rng
        draw = rng.random()
        if depth > 2 or draw < 0.6:
            return self._leaf(context, depth, is_top=is_top)
        if draw < 0.7:
            return f"not({self._gap()}{self.expression(context, depth + 1, is_top=is_top)})"
        word = "and" if draw < 0.87 else "or"
        parts = [self.expression(context, depth + 1, is_top=is_top) for _ in range(rng.choice((2, 2, 3)))]
        parts = [f"({part})" if f" {'or' if word == 'and' else 'and'} " in part else part for part in parts]
        text = f" {word} ".join(parts)
        return f"({text})" if rng.random() < 0.2 else text

    def _leaf(self, context: Node, depth: int, *, is_top: bool) -> str:
        path, node = self.path(context, depth, is_top=is_top)
        if self.rng.random() < 0.4:
            return path
        operator = self.rng.choice(_OPERATORS)
        value = self._value(node)
        if self.rng.random() < 0.2:
            return f"{value}{self._gap()}{_MIRRORED[operator]}{self._gap()}{path}"
        return f"{path}{self._gap()}{operator}{self._gap()}{value}"

    def _value(self, node: Node) -> str:
        rng = self.rng
        value = string_value(node) if rng.random() < 0.75 else random_text(rng)
        found = number(value)
        if found == found and rng.random() < 0.6:
            nearby = found + rng.choice((0, 0, 0, 1, -1, 0.5))
            return rng.choice((f"{nearby:g}", f"{nearby:.1f}", f"{nearby:.2f}".removeprefix("0")))
        if "'" in value:
            return '"' + value.replace('"', "") + '"'
        return rng.choice((f"'{value}'", f'"{value}"' if '"' not in value else f"'{value}'"))

    def path(self, context: Node, depth: int, *, is_top: bool) -> tuple[str, Node]:
        """A path that leads to some node below the context, mostly, and that node."""
        rng = self.rng
        below = _below(context)
        if not below or rng.random() < (0.02 if is_top else 0.15):
            return rng.choice((".", ".", "self::node()")), context
        target = rng.choice(below)
        way = [target]
        while way[0].parent is not context:
            way.insert(0, way[0].parent)
        kept = [node for node in way[:-1] if rng.random() < 0.5] + [target]
        text, above = "", context
        for node in kept:
            is_far = node.parent is not above or rng.random() < 0.15
            text += self._axis(node, is_far, is_first=not text, is_top=is_top) + self._predicates(node, depth)
            above = node
        return text, target

    def _axis(self, node: Node, is_far: bool, *, is_first: bool, is_top: bool) -> str:
        """A step to a node, with the slash before it."""
        rng = self.rng
        test = self._test(node)
        if is_first and is_top:
            slash = rng.choice(("/", "/", "", "./"))
        else:
            slash = rng.choice(("", "", "./", "self::node()/")) if is_first else rng.choice(("/", "/", "/", "/./"))
        if not is_far:
            axis = "attribute::" if node.kind is NodeKind.ATTRIBUTE else "child::"
            spelled = test.replace("@", "")
            return slash + (axis + spelled if rng.random() < 0.1 else test)
        draw = rng.random()
        if draw < 0.1:
            return f"{slash}descendant-or-self::node()/{test}"
        if draw < 0.2 and node.kind is not NodeKind.ATTRIBUTE:
            return f"{slash}descendant::{test}"
        return ("//" if is_top or not is_first else ".//") + test

    def _test(self, node: Node) -> str:
        rng = self.rng
        if node.kind is NodeKind.TEXT:
            return rng.choice(("text()", "text()", "text( )"))
        sign = "@" if node.kind is NodeKind.ATTRIBUTE else ""
        draw = rng.random()
        if draw < 0.2:
            return sign + "*"
        if draw < 0.26:
            return sign + rng.choice(_KEYS if sign else (*_NAMES, "and", "p:a"))
        uri, _, local = (node.name or "")[1:].rpartition("}")
        if not uri:
            return sign + (node.name or "")
        prefix = next((prefix for prefix, known in NAMESPACES.items() if known == uri), "xml")
        return f"{sign}{prefix}:{local}"

    def _predicates(self, node: Node, depth: int) -> str:
        text = ""
        while depth < 3 and self.rng.random() < 0.22:
            text += f"[{self._gap()}{self.expression(node, depth + 1, is_top=False)}]"
        return text

    def _gap(self) -> str:
        return self.rng.choice(("", " ", " ", "\n "))


def _below(context: Node) -> list[Node]:
    found, waiting = [], [context]
    while waiting:
        node = waiting.pop()
        found += node.attributes
        found += node.children
        waiting += node.children
    return found
