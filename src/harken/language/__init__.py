"""The subscription language: text → AST → normal form, and back to text in several dialects."""

from harken.language.ast import Expression
from harken.language.compiled import Compiled, Compiler
from harken.language.normal_form import NormalForm
from harken.language.normalise import normalise
from harken.language.sql.parser import parse
from harken.language.sql.printer import print_expression
from harken.language.sql.type_check import check

__all__ = ["Compiled", "Compiler", "Expression", "NormalForm", "check", "normalise", "parse", "print_expression"]
