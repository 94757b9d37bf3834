"""Equal warnings about several subscriptions, shown as one: their number, and the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.cli.input_findings import WARNING, InputFinding, indented
from harken.cli.screen import Screen, counted

if TYPE_CHECKING:
    from rich.text import Text

_EXAMPLES = 3
_MOST_SHOWN = 20


class Groups:
    """Collects warnings by kind, message and hint."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str | None], list[InputFinding]] = {}

    def add(self, finding: InputFinding) -> None:
        """Add a warning."""
        key = (finding.kind, finding.error.message, finding.error.hint)
        self._groups.setdefault(key, []).append(finding)

    def show(self, screen: Screen) -> None:
        """Show all groups, the largest first."""
        groups = sorted(self._groups.values(), key=lambda group: -len(group))
        for group in groups[:_MOST_SHOWN]:
            screen.show(group[0].to_text() if len(group) == 1 else _text(group))
        rest = groups[_MOST_SHOWN:]
        if rest:
            screen.show(f"… and {counted(sum(map(len, rest)), 'more warning')}; -v lists all of them")


def _text(group: list[InputFinding]) -> Text:
    from rich.text import Text

    first = group[0]
    hint = [] if first.error.hint is None else indented(f"hint: {first.error.hint}", 2)
    examples = [f"  {each.where()}" for each in group[:_EXAMPLES]]
    more = len(group) - len(examples)
    rest = [f"  … and {more:,} more; -v lists all of them"] if more else []
    lines = "\n".join([*indented(first.error.message, 2), *hint, *examples, *rest])
    return Text.assemble(WARNING, (counted(len(group), first.kind), "bold"), "\n", lines)
