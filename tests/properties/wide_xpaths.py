"""Random XPath expressions of the whole language: every axis and function, arithmetic, positions, unions and filters.

Paths are drawn from nodes of given documents, as in `xpaths`, and then lead on along other axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from harken.reference.documents import Node, read
from properties.xpaths import NAMESPACES, PROLOGUE, PathWriter, random_text

_AXES = (
    *("ancestor", "ancestor-or-self", "descendant", "descendant-or-self", "following", "following-sibling", "parent"),
    *("preceding", "preceding-sibling", "self", "child", "attribute"),
)
_TESTS = ("*", "*", "*", "a", "b", "c", "node()", "node()", "text()", "p:*", "p:a")
_SIGNS = ("=", "=", "!=", "<", "<=", ">", ">=")
_OF_STRINGS = ("concat", "substring-before", "substring-after")


def random_wide_expression(rng: Random, documents: Sequence[bytes]) -> str:
    """An expression about one of the documents. It declares the prefixes that it uses."""
    text = _WideWriter(rng).condition(read(rng.choice(documents)), 0)
    return PROLOGUE + text if any(f"{prefix}:" in text for prefix in NAMESPACES) else text


class _WideWriter:
    """Writes expressions of each type, for a context node that is mostly a good guess."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.paths = PathWriter(rng)

    def condition(self, context: Node, depth: int) -> str:
        rng = self.rng
        draw = rng.random()
        if depth > 2 or draw < 0.3:
            return self._compared(context, depth)
        if draw < 0.38:
            return self.nodes(context, depth)
        if draw < 0.5:
            return self.paths.expression(context, 2, is_top=depth == 0)
        if draw < 0.58:
            return f"not({self.condition(context, depth + 1)})"
        if draw < 0.66:
            return f"{rng.choice(('contains', 'starts-with'))}({self.string(context, depth + 1)}, {self._constant()})"
        if draw < 0.68:
            return f"lang('{rng.choice(('en', 'EN', 'e'))}')"
        if draw < 0.74:
            return f"boolean({rng.choice((self.string, self.number, self.nodes))(context, depth + 1)})"
        word = rng.choice((" and ", " or "))
        return f"({self.condition(context, depth + 1)}){word}({self.condition(context, depth + 1)})"

    def _compared(self, context: Node, depth: int) -> str:
        rng = self.rng
        sides = [
            rng.choice((self.nodes, self.nodes, self.nodes, self.string, self.number))(context, depth + 1)
            for _ in range(2)
        ]
        if rng.random() < 0.1:
            sides[1] = rng.choice(("true()", "false()", f"({self.condition(context, depth + 2)})"))
        if rng.random() < 0.3:
            sides[rng.randrange(2)] = self._constant()
        return f" {rng.choice(_SIGNS)} ".join(sides)

    def _constant(self) -> str:
        rng = self.rng
        if rng.random() < 0.4:
            return rng.choice(("0", "1", "2", "5", "0.5", "7"))
        return "'" + random_text(rng).replace("'", "") + "'"

    def number(self, context: Node, depth: int) -> str:
        rng = self.rng
        draw = rng.random()
        if depth > 2 or draw < 0.15:
            return rng.choice(("1", "2", "3", "5", "0.5", "-1", "position()", "last()"))
        if draw < 0.5:
            return f"{rng.choice(('count', 'count', 'sum', 'number'))}({self.nodes(context, depth + 1)})"
        if draw < 0.6:
            return f"string-length({self.string(context, depth + 1)})"
        if draw < 0.7:
            return f"{rng.choice(('floor', 'ceiling', 'round'))}({self.number(context, depth + 1)})"
        if draw < 0.76:
            return f"-({self.number(context, depth + 1)})"
        if draw < 0.8:
            return "string-length()"
        sign = rng.choice(("+", "-", "*", "div", "mod"))
        return f"({self.number(context, depth + 1)} {sign} {self.number(context, depth + 1)})"

    def string(self, context: Node, depth: int) -> str:
        rng = self.rng
        draw = rng.random()
        if depth > 2 or draw < 0.2:
            return "'" + random_text(rng).replace("'", "") + "'"
        if draw < 0.5:
            return f"string({self.nodes(context, depth + 1)})"
        if draw < 0.6:
            return f"normalize-space({self.string(context, depth + 1)})"
        if draw < 0.7:
            return f"{rng.choice(('local-name', 'namespace-uri'))}({self.nodes(context, depth + 1)})"
        if draw < 0.8:
            return f"substring({self.string(context, depth + 1)}, {self.number(context, depth + 1)}, 2)"
        if draw < 0.86:
            return f"translate({self.string(context, depth + 1)}, '5av', 'x')"
        if draw < 0.9:
            return rng.choice(("local-name()", "normalize-space()", "string()"))
        arguments = f"{self.string(context, depth + 1)}, {self.string(context, depth + 1)}"
        return f"{rng.choice(_OF_STRINGS)}({arguments})"

    def nodes(self, context: Node, depth: int) -> str:
        rng = self.rng
        draw = rng.random()
        path, node = self.paths.path(context, 2, is_top=depth == 0)
        if draw < 0.1:
            return f"({path} | {self._led_on(path, node, depth)})"
        if draw < 0.25:
            return f"({self._led_on(path, node, depth)})[{self._predicate(node, depth + 1)}]"
        if draw < 0.3:
            return f"//{rng.choice(('a', 'b', '*'))}[{self._predicate(node, depth + 1)}]"
        if draw < 0.35:
            return f"{path}[{self._predicate(node, depth + 1)}]" if path != "." else path
        return path if draw < 0.5 else self._led_on(path, node, depth)

    def _led_on(self, path: str, node: Node, depth: int) -> str:
        """A path, with a step along any axis behind it."""
        rng = self.rng
        axis, test = rng.choice(_AXES), rng.choice(_TESTS)
        if axis == "attribute":
            test = rng.choice(("*", "x", "id"))
        slash = "//" if rng.random() < 0.1 else "/"
        text = path + rng.choice((f"{slash}{axis}::{test}", f"{slash}{axis}::{test}", "/.."))
        if rng.random() < 0.4 and not text.endswith(".."):
            text += f"[{self._predicate(node, depth + 1)}]"
        return text

    def _predicate(self, context: Node, depth: int) -> str:
        rng = self.rng
        draw = rng.random()
        if draw < 0.35:
            return rng.choice(("1", "1", "2", "last()", "position() > 1", "last() - 1", "position() mod 2 = 1"))
        return self._compared(context, depth) if depth > 2 else self.condition(context, depth)
