"""Plug-in operators: predicates that a function decides, which may call a model, a database or a service."""

from harken.operators.operating import ORDERS, Operating
from harken.operators.operator import FREE, Free, Operator, operator
from harken.operators.sets import OperatorSet, operators_of

__all__ = ["FREE", "ORDERS", "Free", "Operating", "Operator", "OperatorSet", "operator", "operators_of"]
