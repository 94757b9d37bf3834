"""What events may hold: domains, attributes, event types, and the rules by which a schema grows."""

from harken.schema.coded import CodedDomain, EnumeratedDomain, HierarchicalDomain
from harken.schema.domains import (
    BUILT_IN,
    BooleanDomain,
    DateDomain,
    Domain,
    FloatDomain,
    IntegerDomain,
    StringDomain,
    TimestampDomain,
)
from harken.schema.event_columns import EventColumns
from harken.schema.event_types import EVENT_TYPE, EventType, Rule, View
from harken.schema.extensions import Extension, NewAttribute, NewDomain, NewEventType, NewOptionalAttribute
from harken.schema.model import Schema
from harken.schema.paths import Path, format_path, parse_path
from harken.schema.schema_files import check_schema, format_schema, load_schema, parse_schema
from harken.schema.values import Kind, Value

__all__ = [
    "BUILT_IN",
    "EVENT_TYPE",
    "BooleanDomain",
    "CodedDomain",
    "DateDomain",
    "Domain",
    "EnumeratedDomain",
    "EventColumns",
    "EventType",
    "Extension",
    "FloatDomain",
    "HierarchicalDomain",
    "IntegerDomain",
    "Kind",
    "NewAttribute",
    "NewDomain",
    "NewEventType",
    "NewOptionalAttribute",
    "Path",
    "Rule",
    "Schema",
    "StringDomain",
    "TimestampDomain",
    "Value",
    "View",
    "check_schema",
    "format_path",
    "format_schema",
    "load_schema",
    "parse_path",
    "parse_schema",
]
