"""Expands `${NAME}` in a text to a variable of the environment, and `$${` to the characters `${`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from harken.errors import did_you_mean

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{")

Report = Callable[[str, str | None, int], None]
"""Called with a fault's message, hint, and offset into the text."""


def expanded(text: str, environment: Mapping[str, str], report: Report) -> str:
    """The text with the values of its variables. If a fault is reported, the result must not be used."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        name = match["name"]
        if name is None:
            hint = "write ${NAME} for a variable of the environment, $${ for the characters ${"
            report("`${` is not followed by a name and `}`", hint, match.start())
            return ""
        if name not in environment:
            hint = did_you_mean(name, environment) or "set it; to mean the characters ${ themselves, write $${"
            report(f"the environment has no variable `{name}`", hint, match.start())
        return environment.get(name, "")

    return _REFERENCE.sub(value, text)
