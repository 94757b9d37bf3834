"""A language and a residual predicate that no other module knows of: what it takes to add either.

A text such as `colour? size>3 title/^la/` asks that an attribute is there, is greater than a number, or meets a regular
expression; all at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harken.errors import HarkenError, ParseError
from harken.language.capabilities import Capability
from harken.language.compiled import Compiled, FlatPlan
from harken.language.explanation import Clause, Explanation
from harken.language.intervals import COMPARISONS
from harken.language.normal_form import Conjunction, Constraint, Implied, NormalForm, Presence, Residual, ValueSet
from harken.language.registry import FindEvent
from harken.limits import Limits
from harken.schema import Kind, Schema
from harken.schema.paths import Path
from harken.schema.signatures import Signatures

_WORD = re.compile(r"(\w+)(?:\?|>(\d+)|/(.*)/)")


@dataclass(frozen=True, slots=True)
class RegexResidual:
    """A string that a regular expression is found in."""

    path: Path
    pattern: str
    capability: ClassVar[Capability] = Capability.PATTERN
    of_sets: ClassVar[bool] = False

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    def implied(self) -> Implied:
        return ((self.path, Presence.PRESENT),)

    def holds(self, values: Sequence[Any]) -> bool:
        return isinstance(values[0], str) and re.search(self.pattern, values[0]) is not None


class ToyFrontEnd:
    def __init__(self, schema: Schema | None, limits: Limits, signatures: Signatures) -> None:
        self.texts = 0

    def compile(self, text: str) -> Compiled:
        self.texts += 1
        constraints: dict[Path, Constraint] = {}
        residuals: list[Residual] = []
        for word in text.split():
            found = _WORD.fullmatch(word)
            if found is None:
                raise ParseError(f"{word!r} is no toy")
            name, number, pattern = found.groups()
            if pattern is not None:
                residuals.append(RegexResidual((name,), pattern))
            elif number is not None:
                constraints[name,] = ValueSet(((Kind.NUMBER, COMPARISONS[">"](int(number))),))
            else:
                constraints[name,] = Presence.PRESENT
        form = NormalForm((Conjunction(tuple(sorted(constraints.items())), tuple(residuals)),))
        return Compiled(text, "toy", FlatPlan(form))

    def faults(self, text: str) -> list[HarkenError]:
        self.compile(text)
        return []

    def print(self, text: str, dialect: str) -> str:
        return f"{dialect}: {text}"

    def stats(self) -> Mapping[str, Any]:
        return {"toys": self.texts}


def explain_toy(front_end: ToyFrontEnd, text: str, find_event: FindEvent) -> Explanation:
    event = find_event(frozenset(front_end.compile(text).plan.names()))
    return Explanation(bool(event), Clause(text, bool(event)))
