"""The languages of subscriptions: text → expression → normal form, or a plan for another kind of index."""

from harken.language.ast import Expression
from harken.language.compiled import Compiled, Compiler
from harken.language.normal_form import NormalForm
from harken.language.normalise import normalise

__all__ = ["Compiled", "Compiler", "Expression", "NormalForm", "normalise"]
