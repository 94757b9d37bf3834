"""Keys by which linear paths and tag paths that may fit are found: equal keys, looked up in an index.

The paper finds them by prefix and reversed postfix (section 3.4). Here a linear path has one key: the whole path if it
has neither `//` nor `*`, else its end or, if it ends in `*`, its beginning. A tag path has a key for each beginning and
each end of it, up to `_LONGEST` names. Whether a linear path fits is decided afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken.language.xpath.ast import NodeKind, Step
from harken.language.xpath.linear import LinearPath, node_text
from harken.relational.tables import row_key

_LONGEST = 8
"""Most names in a key: a tag path of n names has at most 2n keys, and n may be large."""


def linear_path_key(path: LinearPath) -> int:
    """The key of a linear path."""
    steps = path.steps
    if not any(step.is_descendant or _is_wildcard(step) for step in steps):
        return row_key("whole", path.text)
    end = list(_named(reversed(steps), is_reversed=True))
    if end:
        return row_key("end", *end)
    beginning = list(_named(steps, is_reversed=False))
    return row_key("beginning", *beginning) if beginning else row_key("any")


def tag_path_keys(tag_path: str) -> list[int]:
    """The keys of all linear paths that may fit a tag path."""
    nodes = tag_path[1:].split("/") if tag_path != "/" else []
    counts = range(1, min(len(nodes), _LONGEST) + 1)
    beginnings = [row_key("beginning", *nodes[:count]) for count in counts]
    ends = [row_key("end", *nodes[: -count - 1 : -1]) for count in counts]
    return [row_key("whole", tag_path), row_key("any"), *beginnings, *ends]


def _named(steps: Iterable[Step], *, is_reversed: bool) -> Iterator[str]:
    """The names of the first steps, up to a wildcard or a double slash."""
    for count, step in enumerate(steps):
        if count == _LONGEST or _is_wildcard(step) or (step.is_descendant and not is_reversed):
            return
        yield node_text(step.kind, step.name)
        if step.is_descendant:
            return


def _is_wildcard(step: Step) -> bool:
    return step.name is None and step.kind != NodeKind.TEXT
