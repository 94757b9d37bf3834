"""`${NAME}` in a text stands for a variable of the environment, `$${` for the characters `${`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from harken.errors import did_you_mean

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{")

Complaint = Callable[[str, str | None, int], None]
"""Is told what is wrong, a hint, and the offset into the text."""


def expanded(text: str, environment: Mapping[str, str], complain: Complaint) -> str:
    """The text with the values of its variables. What is left of a faulty one is not to be used."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        name = found["name"]
        if name is None:
            hint = "write ${NAME} for a variable of the environment, $${ for the characters ${"
            complain("`${` is not followed by a name and `}`", hint, found.start())
            return ""
        if name not in environment:
            hint = did_you_mean(name, environment) or "set it; to mean the characters ${ themselves, write $${"
            complain(f"the environment has no variable `{name}`", hint, found.start())
        return environment.get(name, "")

    return _REFERENCE.sub(value, text)
