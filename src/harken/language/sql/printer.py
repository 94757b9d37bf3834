"""AST → text, in Harken's own language and in the SQL dialects that the oracles speak."""

from __future__ import annotations

from datetime import date, datetime

from harken.errors import UnavailableError
from harken.language.ast import (
    DEFAULT_ESCAPE,
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Constant,
    Contains,
    Expression,
    Function,
    Holds,
    In,
    IsNull,
    IsTruth,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    RLike,
    Variable,
    XPathBoolean,
)
from harken.schema.paths import Path, format_path
from harken.schema.values import INT64_MIN, Value, show

# Higher numbers bind more tightly. A child that binds less tightly than its place requires gets parentheses.
_OR, _AND, _NOT, _PREDICATE = range(4)
_ADDITIVE, _MULTIPLICATIVE, _PRIMARY = range(3)
_TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
"""Spark's functions for arithmetic that gives NULL where it fails."""


class Printer:
    """Writes Harken's own language: `parse(print(x)) == x` for every expression x."""

    def expression(self, node: Expression, place: int = _OR) -> str:
        match node:
            case Or(items=items):
                text, level = " OR ".join(self.expression(item, _AND) for item in items), _OR
            case And(items=items):
                text, level = " AND ".join(self.expression(item, _NOT) for item in items), _AND
            case Not(item=Between() | In() | Like() | RLike() | IsNull() | Contains() as inner):
                text, level = self.predicate(inner, negated=True), _PREDICATE
            case IsTruth():
                text, level = self.truth(node), _PREDICATE
            case Not(item=IsTruth() as inner):
                text, level = self.truth(inner, "NOT "), _PREDICATE
            case Not(item=item):
                text, level = "NOT " + self.expression(item, _NOT), _NOT
            case _:
                text, level = self.predicate(node), _PREDICATE
        return f"({text})" if level < place else text

    def truth(self, node: IsTruth, no: str = "") -> str:
        item = self.expression(node.item)
        operand = item if isinstance(node.item, Holds) else f"({item})"
        return f"{operand} IS {no}{'TRUE' if node.wanted else 'FALSE'}"

    def predicate(self, node: Predicate, negated: bool = False) -> str:
        no = "NOT " if negated else ""
        match node:
            case Comparison():
                return f"{self.operand(node.left)} {node.operator} {self.operand(node.right)}"
            case Between():
                low, high = self.operand(node.low), self.operand(node.high)
                return f"{self.operand(node.operand)} {no}BETWEEN {low} AND {high}"
            case In():
                values = ", ".join(self.constant(value.value) for value in node.values)
                return f"{self.operand(node.operand)} {no}IN ({values})"
            case Like():
                return self.like(node, no)
            case RLike():
                return self.rlike(node, no)
            case XPathBoolean():
                return self.xpath_boolean(node)
            case IsNull():
                return f"{self.operand(node.attribute)} IS {no}NULL"
            case Contains():
                return self.contains(node, no)
            case Holds():
                return self.operand(node.operand)
            case Call():
                arguments = ", ".join(self.operand(argument) for argument in node.arguments)
                return f"{self.name((node.name,))}({arguments})"

    def operand(self, node: Operand, place: int = _ADDITIVE) -> str:
        match node:
            case Attribute(path=path):
                return self.name(path)
            case Constant(value=value):
                return self.constant(value)
            case Variable(name=name):
                return f"?{name}"
            case Function():
                return self.function(node)
            case Arithmetic():
                level = _ADDITIVE if node.operator in "+-" else _MULTIPLICATIVE
                text = f"{self.operand(node.left, level)} {node.operator} {self.operand(node.right, level + 1)}"
                return f"({text})" if level < place else text

    def function(self, node: Function) -> str:
        return f"{node.name}({', '.join(map(self.operand, node.arguments))})"

    def like(self, node: Like, no: str) -> str:
        match node.operand:
            case Function(name="lower", arguments=(inner,)) if _is_lower(str(node.pattern.value) + node.escape):
                return f"{self.operand(inner)} {no}ILIKE {self.pattern(node)}"
        return f"{self.operand(node.operand)} {no}LIKE {self.pattern(node)}"

    def rlike(self, node: RLike, no: str) -> str:
        return f"{self.operand(node.operand)} {no}RLIKE {self.constant(node.pattern.value)}"

    def xpath_boolean(self, node: XPathBoolean) -> str:
        return f"xpath_boolean({self.operand(node.operand)}, {self.constant(node.xpath.value)})"

    def contains(self, node: Contains, no: str) -> str:
        return f"{self.name(node.attribute.path)} {no}CONTAINS {self.constant(node.value.value)}"

    def pattern(self, node: Like) -> str:
        text = self.constant(node.pattern.value)
        return text if node.escape == DEFAULT_ESCAPE else f"{text} ESCAPE {self.constant(node.escape)}"

    def name(self, path: Path) -> str:
        return format_path(path)

    def constant(self, value: Value) -> str:
        return show(value)


class _SqlPrinter(Printer):
    """What the SQL dialects have in common: types are spelled out, so that no implicit cast decides."""

    def predicate(self, node: Predicate, negated: bool = False) -> str:
        if isinstance(node, Call):
            raise UnavailableError(f"the operator {node.name} has no form in SQL")
        return super().predicate(node, negated)

    def operand(self, node: Operand, place: int = _ADDITIVE) -> str:
        if isinstance(node, Variable):
            raise UnavailableError("variables have no form in SQL")
        if isinstance(node, Arithmetic):
            return self.limited(self.arithmetic(node.operator, self.operand(node.left), self.operand(node.right)))
        return super().operand(node, place)

    def arithmetic(self, operator: str, left: str, right: str) -> str:
        raise NotImplementedError

    def limited(self, text: str) -> str:
        """A number that is NULL where it is not finite."""
        for bad in ("Infinity", "-Infinity", "NaN"):
            text = f"nullif({text}, CAST('{bad}' AS DOUBLE))"
        return text

    def function(self, node: Function) -> str:
        if node.name == "cidr_contains":
            raise UnavailableError("cidr_contains has no form in SQL")
        arguments = [self.integer(each) if place else self.operand(each) for place, each in enumerate(node.arguments)]
        if node.name == "coalesce":
            arguments = [*map(self.operand, node.arguments)]
        return self.called(node.name, arguments)

    def integer(self, node: Operand) -> str:
        """Digits, positions and lengths, which SQL takes as plain integers."""
        return str(node.value) if isinstance(node, Constant) else self.operand(node)

    def called(self, name: str, arguments: list[str]) -> str:
        if name == "abs":  # the absolute value of -2^63 does not fit in 64 bits
            return self.limited(f"abs(nullif({arguments[0]}, {self.constant(INT64_MIN)}))")
        return f"{name}({', '.join(arguments)})"

    def like(self, node: Like, no: str) -> str:
        return f"{self.operand(node.operand)} {no}LIKE {self.pattern(node)}"

    def constant(self, value: Value) -> str:
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, float):
            return f"CAST('{value!r}' AS DOUBLE)"
        if isinstance(value, int):
            return f"CAST('{value}' AS BIGINT)"
        if isinstance(value, datetime):
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
        if isinstance(value, date):
            return f"DATE '{value.isoformat()}'"
        return self.string(value)

    def string(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"


class SparkPrinter(_SqlPrinter):
    """Spark SQL, where a backslash in a string is an escape, and `${…}` is replaced before anything is parsed."""

    def name(self, path: Path) -> str:
        for key in path:
            if "${" in key:
                raise UnavailableError(f"the name {key!r} has no form in Spark SQL, which replaces ${{…}}")
        return ".".join("`" + key.replace("`", "``") + "`" for key in path)

    def string(self, text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") + "'"

    def arithmetic(self, operator: str, left: str, right: str) -> str:
        return f"{_TRIED[operator]}({left}, {right})"

    def contains(self, node: Contains, no: str) -> str:
        return f"{no}array_contains({self.name(node.attribute.path)}, {self.constant(node.value.value)})"


class DuckDBPrinter(_SqlPrinter):
    """DuckDB, where LIKE has no escape unless it is named."""

    def name(self, path: Path) -> str:
        return ".".join('"' + key.replace('"', '""') + '"' for key in path)

    def arithmetic(self, operator: str, left: str, right: str) -> str:
        divisor = f"nullif({right}, 0)" if operator in "/%" else right
        return f"TRY({left} {operator} {divisor})"

    def called(self, name: str, arguments: list[str]) -> str:
        match name:
            case "trim":
                return f"trim({arguments[0]}, ' ')"
            case "size":
                return f"nullif(len({arguments[0]}), 0)"
            case "dayofweek":
                return f"(dayofweek({arguments[0]}) + 1)"
            case "substring" if arguments[1] == "0":
                return super().called(name, [arguments[0], "1", *arguments[2:]])
        return super().called(name, arguments)

    def rlike(self, node: RLike, no: str) -> str:
        return f"{no}regexp_matches({self.operand(node.operand)}, {self.constant(node.pattern.value)})"

    def pattern(self, node: Like) -> str:
        return f"{self.string(str(node.pattern.value))} ESCAPE {self.string(node.escape)}"

    def contains(self, node: Contains, no: str) -> str:
        return f"{no}list_contains({self.name(node.attribute.path)}, {self.constant(node.value.value)})"


DIALECTS: dict[str, Printer] = {"harken": Printer(), "spark": SparkPrinter(), "duckdb": DuckDBPrinter()}


def print_expression(expression: Expression, dialect: str = "harken") -> str:
    """The expression as text of a dialect: harken, spark or duckdb."""
    return DIALECTS[dialect].expression(expression)


def print_operand(operand: Operand) -> str:
    """An operand in Harken's own language."""
    return DIALECTS["harken"].operand(operand)


def _is_lower(text: str) -> bool:
    return text == text.lower()
