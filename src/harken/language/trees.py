"""An expression as a tree of AND and OR over predicates, none of them negated: the form that is never multiplied out.

It is equivalent to the normal form, and as large as the text. The index of programs takes it where the normal form
would be large, or where predicates are patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harken.errors import ContradictionError
from harken.language.normal_form import (
    Constraint,
    Presence,
    Residual,
    excludes,
    implies,
    intersection_of,
    lacking,
    union_of,
)
from harken.schema.derived import place_of, sources_of
from harken.schema.paths import Path, format_path


@dataclass(frozen=True, slots=True)
class Constrained:
    """A predicate that is a constraint on one attribute."""

    path: Path
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class Every:
    """All of the items hold. Without items it is true."""

    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """One of the items holds. Without items it is false."""

    items: tuple[Tree, ...]


Tree = Constrained | Every | Some | Residual
TRUE, FALSE = Every(()), Some(())


def simplified(tree: Tree) -> Tree:
    """A tree without the parts that the constraints beside them decide.

    Raises ContradictionError if a constraint leaves no value, alone or with those that have to hold beside it. Not
    every contradiction between alternatives is detected.
    """
    simplifier = _Simplifier()
    simpler = simplifier.simplified(tree, {})
    if simpler == FALSE:
        emptied = None if simplifier.emptied is None else place_of(simplifier.emptied)
        raise ContradictionError("no event can ever match this", path=emptied, hint=simplifier.why_empty())
    return simpler


def leaves_of(tree: Tree) -> Iterator[Constrained | Residual]:
    """The predicates of a tree, from left to right."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Every | Some):
            waiting.extend(reversed(node.items))
        else:
            yield node


def names_of(tree: Tree) -> set[str]:
    """The attributes that a tree reads, each by the first key of its path."""
    paths = (path for leaf in leaves_of(tree) for path in paths_of(leaf))
    return {source[0] for path in paths for source in sources_of(path)}


def has_alternatives(tree: Tree) -> bool:
    """Whether a tree has an OR."""
    if isinstance(tree, Every):
        return any(map(has_alternatives, tree.items))
    return isinstance(tree, Some)


def paths_of(leaf: Constrained | Residual) -> tuple[Path, ...]:
    """The attributes that a predicate reads."""
    return (leaf.path,) if isinstance(leaf, Constrained) else leaf.paths


_Constraints = dict[Path, Constraint]
_MOST_PASSES = 4
"""Passes over the items of an AND; after them its tree is left as it is."""


class _Simplifier:
    """Removes from a tree the parts that the constraints beside them decide."""

    def __init__(self) -> None:
        self.emptied: Path | None = None

    def why_empty(self) -> str:
        if self.emptied is None:
            return "it is false, or unknown, whatever the event"
        return f"its conditions on `{format_path(self.emptied)}` leave no value that meets them all"

    def simplified(self, node: Tree, given: _Constraints) -> Tree:
        """A node simplified, given the constraints that hold beside it."""
        if isinstance(node, Constrained):
            return self._constrained(node, given)
        if isinstance(node, Every):
            return self._every(node.items, given)
        if isinstance(node, Some):
            return self._some(node.items, given)
        return FALSE if self._lacks(node.paths, given) else node

    def _lacks(self, paths: Iterable[Path], given: _Constraints) -> bool:
        """Whether an attribute cannot have a value without which a predicate on these paths is unknown."""
        for path in paths:
            need = lacking(path, given)
            if need is not None:
                self.emptied = need
                return True
        return False

    def _constrained(self, node: Constrained, given: _Constraints) -> Tree:
        existing = given.get(node.path)
        if existing is None:
            is_lost = not node.path[0] and self._lacks((node.path,), given)
            return FALSE if is_lost else node
        if excludes(existing, node.constraint):
            self.emptied = node.path
            return FALSE
        return TRUE if implies(existing, node.constraint) else node

    def _every(self, items: Iterable[Tree], given: _Constraints) -> Tree:
        constraints: _Constraints = {}
        others: list[Tree] = []
        waiting = list(items)
        for _ in range(_MOST_PASSES):  # or until no item becomes a constraint
            if not waiting:
                break
            others, remaining = [], [*others, *waiting]
            waiting = []
            several = {path: [each] for path, each in constraints.items()}
            for item in _flattened(remaining, Every):
                if isinstance(item, Constrained):
                    several.setdefault(item.path, []).append(item.constraint)
                else:
                    others.append(item)
            for path, each in several.items():
                both = intersection_of(each)
                if both is None:
                    self.emptied = path
                    return FALSE
                constraints[path] = both
            beside = {**given, **constraints}
            simpler = [self.simplified(item, beside) for item in others]
            if FALSE in simpler:
                return FALSE
            others = [item for item in simpler if not isinstance(item, Constrained | Every)]
            waiting = [item for item in simpler if isinstance(item, Constrained | Every) and item != TRUE]
        beside = {**given, **constraints}
        if any(not path[0] and self._lacks((path,), beside) for path in constraints):
            return FALSE
        constrained = [self._constrained(Constrained(path, each), given) for path, each in constraints.items()]
        if FALSE in constrained:
            return FALSE
        return _one_or(Every, [*(each for each in constrained if each != TRUE), *dict.fromkeys([*others, *waiting])])

    def _some(self, items: Iterable[Tree], given: _Constraints) -> Tree:
        simpler = [item for each in items if (item := self.simplified(each, given)) != FALSE]
        several: dict[Path, list[Constraint]] = {}
        others: dict[Tree, None] = {}
        for item in _flattened(simpler, Some):
            if item == TRUE:
                return TRUE
            if isinstance(item, Constrained) and item.constraint is not Presence.ABSENT:
                several.setdefault(item.path, []).append(item.constraint)
            else:
                others[item] = None
        united = {path: union_of(each) for path, each in several.items()}
        absent = (leaf.path for leaf in others if isinstance(leaf, Constrained))
        if any(united.get(path) is Presence.PRESENT for path in absent):
            return TRUE
        return _one_or(Some, [*(Constrained(path, each) for path, each in united.items()), *others])


def _flattened(items: Iterable[Tree], kind: type[Every] | type[Some]) -> Iterator[Tree]:
    for item in items:
        if isinstance(item, kind):
            yield from _flattened(item.items, kind)
        else:
            yield item


def _one_or(kind: type[Every] | type[Some], items: list[Tree]) -> Tree:
    return items[0] if len(items) == 1 else kind(tuple(items))
