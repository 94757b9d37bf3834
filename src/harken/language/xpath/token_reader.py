"""Reading the tokens of an XPath text: places, limits, the namespaces that a text declares, and errors at a token."""

from __future__ import annotations

from harken.errors import LimitError, ParseError
from harken.language.xpath.syntax_errors import located, no_operand, no_operator, rejected
from harken.language.xpath.tokens import QUOTES, Tokens, is_name
from harken.limits import Limits

MOST_STEPS = 1_000
"""Most steps from the root to a node, whatever `max_xpath_steps` is: the index keeps a list of nodes for each."""
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


class TokenReader:
    """Reads the tokens of one text, and knows how deep and how far it is."""

    __slots__ = ("limits", "links", "most_steps", "nesting", "place", "prefixes", "starts", "text", "values", "words")

    def __init__(self, text: str, limits: Limits, tokens: Tokens) -> None:
        self.text = text
        self.limits = limits
        self.most_steps = min(limits.max_xpath_steps, MOST_STEPS)
        self.words, self.starts = tokens
        self.place = 0
        """The index of the next token."""
        self.nesting = 0
        self.links = 0
        """Number of operators behind the first of their chain: each makes the tree one level deeper."""
        self.values = 0
        self.prefixes: dict[str, str] = {}

    def too_deep(self) -> LimitError:
        message = f"the expression is nested more than {min(self.nesting, self.limits.max_nesting)} deep"
        return LimitError(message, limit="max_nesting").at(*located(self.text, self.starts[self.place]))

    # Names

    def _expanded(self, word: str, *, is_element: bool) -> str:
        """The expanded name of a name in the text."""
        prefix, colon, local = word.partition(":")
        if not colon:
            default = self.prefixes.get("") if is_element else None
            return f"{{{default}}}{word}" if default else word
        uri = XML_NAMESPACE if prefix == "xml" else self.prefixes.get(prefix)
        if uri is None:
            hint = f"declare it before the expression: declare namespace {prefix} = 'uri'; …"
            message = f"the prefix `{prefix}` is not declared"
            raise rejected(self.text, self.starts[self.place], message, hint)
        return f"{{{uri}}}{local}"

    def _prologue(self) -> None:
        """Read the declarations of namespaces before the expression. Elements without a prefix have the prefix ""."""
        words = self.words
        prefixes: dict[str, str] = {}
        while words[self.place] == "declare" and words[self.place + 1] in ("namespace", "default"):
            if words[self.place + 1] == "default":
                for word in ("declare", "default", "element", "namespace"):
                    self._take(word, "declare default element namespace 'uri';")
                prefix = ""
            else:
                self.place += 2
                prefix = self._prefix()
                self._take("=", f"declare namespace {prefix} = 'uri';")
            if prefix in prefixes:
                what = f"the prefix `{prefix}`" if prefix else "the default namespace"
                raise rejected(self.text, self.starts[self.place - 1], f"{what} is declared twice")
            prefixes[prefix] = self._uri(prefix)
            self._take(";", "a declaration ends with ;")
        self.prefixes = prefixes

    def _prefix(self) -> str:
        word = self.words[self.place]
        if not is_name(word) or ":" in word:
            raise self._no_operand("a prefix: declare namespace p = 'uri';")
        if word in ("xml", "xmlns"):
            raise rejected(self.text, self.starts[self.place], f"the prefix `{word}` cannot be declared")
        self.place += 1
        return word

    def _uri(self, prefix: str) -> str:
        word = self.words[self.place]
        if word[:1] not in QUOTES:
            raise self._no_operand("the URI of the namespace, in quotes")
        if prefix and word[1:-1] == "":
            raise rejected(self.text, self.starts[self.place], "the URI of a prefix is empty")
        self.place += 1
        return word[1:-1]

    def _take(self, word: str, expected: str) -> None:
        if self.words[self.place] != word:
            raise self._no_operand(f"`{word}`: {expected}")
        self.place += 1

    # Limits and rejections

    def _enter(self) -> None:
        self.nesting += 1
        if self.nesting > self.limits.max_nesting:
            raise self.too_deep()
        self.place += 1

    def _leave(self, word: str) -> None:
        if self.words[self.place] != word:
            raise self._no_operator(f"and, or, a comparison or `{word}`")
        self.nesting -= 1
        self.place += 1

    def _link(self) -> None:
        self.links += 1
        if self.links > self.limits.max_nesting:
            self.nesting = self.links
            raise self.too_deep()

    def _count_value(self) -> None:
        self.values += 1
        if self.values > self.limits.max_values:
            message = f"the text has more than {self.limits.max_values:,} constants"
            raise LimitError(message, limit="max_values").at(*located(self.text, self.starts[self.place - 1]))

    def _too_far(self) -> LimitError:
        message = f"the expression goes more than {self.most_steps:,} steps below the root"
        if self.most_steps < self.limits.max_xpath_steps:
            message += ", the most that an index takes"
        error = LimitError(message, limit="max_xpath_steps")
        return error.at(*located(self.text, self.starts[self.place - 1]))

    def _is_start(self) -> bool:
        """Whether the next token would be the first of an operand."""
        return self.place == 0 or self.words[self.place - 1] not in ("/", "//", "@", "::")

    def _no_operand(self, expected: str) -> ParseError:
        return no_operand(self.text, Tokens(self.words, self.starts), self.place, expected)

    def _no_operator(self, expected: str) -> ParseError:
        return no_operator(self.text, Tokens(self.words, self.starts), self.place, expected)
