"""Subscriptions with operators: what the index decides, what operators decide, and how variables join them.

A subscription becomes conjunctions, each of which has a *plain* part, which an index takes; *literals*, each a call of
an operator and its wanted truth; and *tests* over variables. An event matches a conjunction if its plain part is true,
every literal holds, and one substitution of the variables is in the results of all its calls and passes all tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from harken.errors import CheckError, ContradictionError, LanguageError, LimitError
from harken.language.ast import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Expression,
    Function,
    Holds,
    In,
    IsTruth,
    Like,
    Not,
    Operand,
    Or,
    RLike,
    Variable,
    attributes,
    conjunction,
    leaves,
    predicates,
)
from harken.language.capabilities import Capability
from harken.language.compiled import Compiled
from harken.language.sql.printer import print_expression
from harken.limits import Limits
from harken.schema import CodedDomain, Schema

Compile = Callable[[Expression], Compiled]


@dataclass(frozen=True, slots=True)
class Literal:
    """The call of an operator, its wanted truth, and tests of its bindings alone. Equal ones are one literal.

    Variables are named by their place among those of the call, so that p(?a, ?b) is p(?c, ?d), and not p(?x, ?x).
    """

    call: Call
    wanted: bool = True
    tests: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A literal in a conjunction, with the names of its variables in the subscription."""

    literal: Literal
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorConjunction:
    """One way for a subscription to be true."""

    plain: Compiled | None
    """The part that an index decides, if there is one."""
    occurrences: tuple[Occurrence, ...]
    tests: tuple[Expression, ...] = ()
    """Tests over the variables of several calls."""
    mixed: Expression | None = None
    """Comparisons of variables with attributes, together with plain parts on the same arrays: one choice of elements
    has to meet both."""

    @property
    def is_joined(self) -> bool:
        """Whether more than its literals has to hold: a join of variables, or tests."""
        if self.tests or self.mixed is not None:
            return True
        names = [name for each in self.occurrences if each.literal.wanted for name in set(each.variables)]
        return len(names) != len(set(names))


@dataclass(slots=True)
class OperatorPlan:
    """Conjunctions, for the index of operators."""

    conjunctions: tuple[OperatorConjunction, ...]
    compile_test: Compile
    """Compiles a test, after `as_attributes`, for an event that has the variables as attributes."""
    kind: ClassVar[str] = "operators"

    @property
    def always(self) -> bool:
        return any(not each.occurrences and each.plain is None for each in self.conjunctions)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset()  # the index of operators takes it, whatever the algorithm

    def names(self) -> set[str]:
        """The attributes of plain parts and of comparisons with variables. Operators see events as they came."""
        names: set[str] = set()
        for each in self.conjunctions:
            if each.plain is not None:
                names |= each.plain.plan.names()
            if each.mixed is not None:
                names.update(path[0] for path in attributes(each.mixed))
        return names


def has_operators(expression: Expression) -> bool:
    """Whether an expression calls an operator or has a variable."""
    return any(
        isinstance(each, Call) or any(isinstance(leaf, Variable) for leaf in leaves(each))
        for each, _ in predicates(expression)
    )


# From an expression to a plan


class FaultAt(Exception):  # noqa: N818 -- it carries an error to where its place is known
    """A fault, and the offset in the text that it is about."""

    def __init__(self, error: LanguageError, at: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.at = at


def plan_operators(
    expression: Expression,
    schema: Schema | None,
    limits: Limits,
    compile: Compile,
    compile_test: Compile,
) -> OperatorPlan:
    """The plan of an expression with operators, whose calls have no faults. Raises FaultAt, LimitError, or
    ContradictionError. `compile` makes plain parts, `compile_test` those that have variables for attributes."""
    _reject_shared_negations(expression)
    distinct: dict[object, OperatorConjunction] = {}
    contradiction: ContradictionError | None = None
    for atoms in _conjunctions(expression, True, limits):
        try:
            made = _conjunction(atoms, schema, compile, compile_test)
            distinct[made.plain and made.plain.text, made.occurrences, made.tests, made.mixed] = made
        except ContradictionError as error:
            contradiction = error
    if not distinct:
        assert contradiction is not None
        raise contradiction
    return OperatorPlan(tuple(distinct.values()), compile_test)


_Atom = tuple[Expression, bool]
"""A part that is not split any further, and its wanted truth."""


def _conjunctions(node: Expression, wanted: bool, limits: Limits) -> list[tuple[_Atom, ...]]:
    """The ways to make a part true, or false. Parts without operators stay whole. Raises LimitError and FaultAt."""
    if not any(isinstance(each, Call) for each, _ in predicates(node)):
        return [_split(node, wanted)]
    if isinstance(node, Not):
        return _conjunctions(node.item, not wanted, limits)
    if isinstance(node, IsTruth):
        if not wanted:
            message = "IS TRUE and IS FALSE cannot be negated where an operator is called"
            at = next(predicate.at for predicate, _ in predicates(node) if isinstance(predicate, Call))
            raise FaultAt(CheckError(message, hint="write NOT (…) in place of IS NOT TRUE"), at)
        return _conjunctions(node.item, node.wanted, limits)
    if isinstance(node, And | Or):
        below = [_conjunctions(item, wanted, limits) for item in node.items]
        if isinstance(node, Or) is wanted:
            return _bounded([each for part in below for each in part], limits)
        products: list[tuple[_Atom, ...]] = [()]
        for part in below:
            if len(products) * len(part) > limits.max_conjunctions:
                raise _too_many(limits)
            products = [before + each for before, each in product(products, part)]
        return products
    return [((node, wanted),)]


def _split(node: Expression, wanted: bool) -> tuple[_Atom, ...]:
    """A part without operators, split into the items of conjunctions: each is tested as early as possible."""
    if isinstance(node, Not):
        return _split(node.item, not wanted)
    if (isinstance(node, And) and wanted) or (isinstance(node, Or) and not wanted):
        return tuple(atom for item in node.items for atom in _split(item, wanted))
    return ((node, wanted),)


def _bounded(alternatives: list[tuple[_Atom, ...]], limits: Limits) -> list[tuple[_Atom, ...]]:
    if len(alternatives) > limits.max_conjunctions:
        raise _too_many(limits)
    return alternatives


def _too_many(limits: Limits) -> LimitError:
    message = f"the operators can be met in more than {limits.max_conjunctions:,} ways"
    return LimitError(message, limit="max_conjunctions")


def _conjunction(
    atoms: Iterable[_Atom], schema: Schema | None, compile: Compile, compile_test: Compile
) -> OperatorConjunction:
    calls: dict[tuple[Call, bool], Call] = {}
    plain: list[Expression] = []
    tests: list[Expression] = []
    for node, wanted in atoms:
        if isinstance(node, Call):
            calls.setdefault((node, wanted), node)
        elif variables_of(node):
            tests.append(node if wanted else Not(node))
        else:
            plain.append(node if wanted else Not(node))
    bound = {name for node, wanted in calls if wanted for name in variables_of(node)}
    for test in tests:
        for leaf in _variable_leaves(test):
            if leaf.name not in bound:
                hint = "a variable is bound by an operator that stands beside it under AND, not under NOT"
                raise FaultAt(CheckError(f"no operator binds ?{leaf.name} here", hint=hint), leaf.at)
    mixed = [test for test in tests if attributes(test)]
    pure = [test for test in tests if not attributes(test)]
    occurrences: list[Occurrence] = []
    for node, wanted in calls:
        call, names = _canonical(node)
        tests_of_call = [test for test in pure if wanted and variables_of(test) <= set(names)]
        pure = [test for test in pure if test not in tests_of_call]
        renamed = {name: str(place) for place, name in enumerate(names)}
        literal = Literal(call, wanted, tuple(sorted((_renamed(test, renamed) for test in tests_of_call), key=repr)))
        occurrences.append(Occurrence(literal, names if wanted else ()))
    both = _mixed(mixed, plain, schema) if mixed else None
    tested = [*pure, *(conjunction(list(each.literal.tests)) for each in occurrences if each.literal.tests)]
    for test in tested if both is None else (*tested, both):
        compile_test(as_attributes(test))  # raises for a contradiction
    return OperatorConjunction(_plain(plain, compile), tuple(dict.fromkeys(occurrences)), tuple(pure), both)


def _mixed(mixed: Sequence[Expression], plain: Sequence[Expression], schema: Schema | None) -> Expression:
    """Tests of variables against attributes, with the plain parts that may go through the same arrays.

    Raises FaultAt for an attribute with an order of its own: the values of variables are not of its domain.
    """
    heads = {path[0] for test in mixed for path in attributes(test)}
    beside: list[Expression] = []
    while True:  # a part on the same arrays may lead on to others
        more = [part for part in plain if part not in beside and heads & {path[0] for path in attributes(part)}]
        if not more:
            break
        beside += more
        heads.update(path[0] for part in more for path in attributes(part))
    if schema is not None:
        for leaf in (leaf for part in (*mixed, *beside) for each, _ in predicates(part) for leaf in leaves(each)):
            if isinstance(leaf, Attribute) and isinstance(schema.domain_of(leaf.path), CodedDomain):
                message = f"`{leaf.name}` has an order of its own, and cannot be compared with variables"
                raise FaultAt(CheckError(message), leaf.at)
    return conjunction([*mixed, *beside])


def _plain(parts: Sequence[Expression], compile: Compile) -> Compiled | None:
    if not parts:
        return None
    compiled = compile(conjunction(list(parts)))
    return None if compiled.plan.always else compiled


# Variables


def _variable_leaves(node: Expression) -> list[Variable]:
    return [leaf for each, _ in predicates(node) for leaf in leaves(each) if isinstance(leaf, Variable)]


def variables_of(node: Expression) -> set[str]:
    """The names of the variables in an expression."""
    return {leaf.name for leaf in _variable_leaves(node)}


def _canonical(call: Call) -> tuple[Call, tuple[str, ...]]:
    """The call with its variables named by their place, and their names in the text."""
    names = tuple(dict.fromkeys(argument.name for argument in call.arguments if isinstance(argument, Variable)))
    renamed = {name: str(place) for place, name in enumerate(names)}
    arguments = tuple(Variable(renamed[each.name]) if isinstance(each, Variable) else each for each in call.arguments)
    return Call(call.name, arguments, call.at), names


def _reject_shared_negations(expression: Expression) -> None:
    """Raise FaultAt for a call under NOT whose variables occur in another predicate."""
    every = [each for each, _ in predicates(expression)]
    counts = Counter(name for each in every for name in variables_of(each))
    for call, negation in _negated(expression, None, True):
        for leaf in leaves(call):
            if isinstance(leaf, Variable) and counts[leaf.name] > 1:
                raise FaultAt(_shared_negation(leaf.name, call, negation), leaf.at)


def _shared_negation(name: str, call: Call, negation: Expression) -> CheckError:
    """Why the variable of a call under NOT cannot be used by another predicate."""
    beside = [each for each, _ in predicates(negation) if each is not call and name in variables_of(each)]
    if not beside:
        message = f"?{name} stands under NOT and elsewhere: NOT binds nothing that could be used there"
        hint = "under NOT a variable means `for no value at all`; give it a name of its own"
        return CheckError(message, hint=hint)
    message = f"under NOT `{print_expression(call):.80}` only tests whether there is any ?{name}"
    hint = "have the operator decide both, or say it without NOT"
    return CheckError(f"{message}: `{print_expression(beside[0]):.80}` cannot use its bindings", hint=hint)


def _negated(node: Expression, negation: Expression | None, wanted: bool) -> Iterable[tuple[Call, Expression]]:
    """The calls that stand under an odd number of NOT, each with the operand of the outermost of them."""
    if isinstance(node, Call):
        return () if wanted or negation is None else ((node, negation),)
    if isinstance(node, Not):
        return _negated(node.item, negation or node.item, not wanted)
    if isinstance(node, IsTruth):
        return _negated(node.item, negation if node.wanted else negation or node.item, wanted is node.wanted)
    if isinstance(node, And | Or):
        return [pair for item in node.items for pair in _negated(item, negation, wanted)]
    return ()


def _renamed(node: Expression, names: dict[str, str]) -> Expression:
    return _with_operands(node, lambda leaf: Variable(names[leaf.name], leaf.at))


def as_attributes(node: Expression) -> Expression:
    """The expression with attributes in place of variables, each named like the variable, with its `?`."""
    return _with_operands(node, lambda leaf: Attribute((f"?{leaf.name}",), leaf.at))


def _with_operands(node: Expression, replaced: Callable[[Variable], Operand]) -> Expression:
    """A copy of an expression with other operands in place of its variables."""

    def operand(part: Operand) -> Operand:
        if isinstance(part, Variable):
            return replaced(part)
        if isinstance(part, Arithmetic):
            return Arithmetic(operand(part.left), part.operator, operand(part.right))
        if isinstance(part, Function):
            return replace(part, arguments=tuple(map(operand, part.arguments)))
        return part

    match node:
        case And(items=items):
            return And(tuple(_with_operands(item, replaced) for item in items))
        case Or(items=items):
            return Or(tuple(_with_operands(item, replaced) for item in items))
        case Not(item=item):
            return Not(_with_operands(item, replaced))
        case IsTruth(item=item, wanted=wanted):
            return IsTruth(_with_operands(item, replaced), wanted)
        case Comparison(left=left, operator=sign, right=right):
            return Comparison(operand(left), sign, operand(right))
        case Between(operand=subject, low=low, high=high):
            return Between(operand(subject), operand(low), operand(high))
        case In(operand=subject, values=values):
            return In(operand(subject), values)
        case Like(operand=subject, pattern=pattern, escape=escape):
            return Like(operand(subject), pattern, escape)
        case RLike(operand=subject, pattern=pattern):
            return RLike(operand(subject), pattern)
        case Holds(operand=Function() as subject):
            return Holds(operand(subject))  # type: ignore[arg-type]
        case _:
            return node
