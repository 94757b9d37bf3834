"""The SQL front end: parse, check, print; shapes that were parsed before; messages, hints and warnings."""

from harken.language.sql.check import check
from harken.language.sql.parser import parse
from harken.language.sql.printer import print_expression

__all__ = ["check", "parse", "print_expression"]
