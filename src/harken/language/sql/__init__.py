"""The SQL front end: parse, check, print; the cache of shapes; messages, hints and warnings."""

from harken.language.sql.parser import parse
from harken.language.sql.printer import print_expression
from harken.language.sql.type_check import check

__all__ = ["check", "parse", "print_expression"]
