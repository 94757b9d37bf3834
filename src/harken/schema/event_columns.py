"""The columns of events, as Arrow or Spark declares them: names and types, through structs, arrays and maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from harken.schema.domains import BUILT_IN, Domain
from harken.schema.paths import Path
from harken.schema.values import Kind

if TYPE_CHECKING:
    import pyarrow as pa

_LISTS = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
# By function of pyarrow.types; the first that holds decides.
_OF_ARROW = {
    "is_string": "string",
    "is_large_string": "string",
    "is_string_view": "string",
    "is_integer": "integer",
    "is_floating": "float",
    "is_decimal": "float",
    "is_boolean": "boolean",
    "is_timestamp": "timestamp",
    "is_date": "date",
}
# By DataType.typeName(), so that pyspark need not be imported.
_OF_SPARK = {
    "string": "string",
    "char": "string",
    "varchar": "string",
    "byte": "integer",
    "short": "integer",
    "integer": "integer",
    "long": "integer",
    "float": "float",
    "double": "float",
    "decimal": "float",
    "boolean": "boolean",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "date": "date",
}
_NULLS = ("null", "void")
_BINARIES = ("binary", "large_binary", "binary_view")
"""Types of columns that hold XML documents, as both Arrow and Spark call them."""


class SparkStruct(Protocol):
    """A `pyspark.sql.types.StructType`, without importing pyspark."""

    @property
    def fields(self) -> Sequence[Any]: ...


class Leaf(NamedTuple):
    """A column, or a field inside one, that holds values or arrays of them."""

    domain: Domain | None
    """The built-in domain of its values. None if it is unknown (a column of nulls only), or if
    subscriptions cannot read the type (binary, variant, intervals)."""
    type: str
    """Its type, as Arrow or Spark calls it."""
    is_document: bool = False
    """Whether the column holds XML documents as bytes."""
    has_no_times: bool = False
    """Whether it has strings, and none parses as the timestamp or date that subscriptions compare with."""

    @property
    def kind(self) -> Kind | None:
        return None if self.domain is None else self.domain.kind


@dataclass(frozen=True, slots=True)
class Fields:
    """A struct, or the columns of a table: nodes by name."""

    by_name: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entries:
    """A map. Its keys are data, so any name may be a key."""

    value: Node


Node = Leaf | Fields | Entries


@dataclass(frozen=True, slots=True)
class EventColumns:
    """The columns of events, by path. Arrays add no level: `items.price` goes through `items`."""

    columns: Fields

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Self:
        """The columns of Arrow tables with this schema. Binary ones hold XML documents."""
        return cls(Fields({column.name: _column(str(column.type)) or _arrow_node(column.type) for column in schema}))

    @classmethod
    def from_spark(cls, schema: SparkStruct) -> Self:
        """The columns of DataFrames with this schema. Binary ones hold XML documents."""
        nodes = {each.name: _column(each.dataType.typeName()) or _spark_node(each.dataType) for each in schema.fields}
        return cls(Fields(nodes))

    def only(self, names: Iterable[str]) -> Self:
        """The columns with these names."""
        wanted = set(names)
        return type(self)(Fields({name: node for name, node in self.columns.by_name.items() if name in wanted}))

    def of_any_kind(self, names: Iterable[str]) -> Self:
        """A copy in which the columns with these names may hold values of any kind."""
        loosened = {name: _of_any_kind(self.columns.by_name[name]) for name in names if name in self.columns.by_name}
        return type(self)(Fields({**self.columns.by_name, **loosened}))

    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
        return iter(self.columns.by_name)

    def at(self, path: Path) -> Node | None:
        """The node at a path; None if there is none."""
        node: Node | None = self.columns
        for key in path:
            if isinstance(node, Fields):
                node = node.by_name.get(key)
            elif isinstance(node, Entries):
                node = node.value
            else:
                return None
        return node

    def leaves(self) -> Iterator[tuple[Path, Leaf]]:
        """Every leaf with its path, except those inside maps, which have no names."""
        return _leaves(self.columns, ())

    def unreadable(self) -> Iterator[tuple[Path, Leaf]]:
        """The leaves of types that events cannot hold, such as intervals, also inside maps."""
        leaves = _leaves(self.columns, (), in_maps=True)
        unknown = ((path, leaf) for path, leaf in leaves if leaf.domain is None and leaf.type not in _NULLS)
        return ((path, leaf) for path, leaf in unknown if not leaf.is_document)


def _column(type_name: str) -> Leaf | None:
    """The leaf of a column of documents; None for a column of another type."""
    return Leaf(None, type_name, is_document=True) if type_name in _BINARIES else None


def _of_any_kind(node: Node) -> Node:
    if isinstance(node, Fields):
        return Fields({name: _of_any_kind(inner) for name, inner in node.by_name.items()})
    return Entries(_of_any_kind(node.value)) if isinstance(node, Entries) else Leaf(None, _NULLS[0])


def _leaves(node: Node, path: Path, in_maps: bool = False) -> Iterator[tuple[Path, Leaf]]:
    if isinstance(node, Leaf):
        yield path, node
    elif isinstance(node, Fields):
        for name, inner in node.by_name.items():
            yield from _leaves(inner, (*path, name), in_maps)
    elif in_maps:
        yield from _leaves(node.value, path, in_maps)


def _arrow_fields(fields: Any) -> Fields:
    return Fields({inner.name: _arrow_node(inner.type) for inner in fields})


def _arrow_node(kind: Any) -> Node:
    from pyarrow import BaseExtensionType, types

    if isinstance(kind, BaseExtensionType):
        return _arrow_node(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _arrow_node(kind.value_type)
    if any(getattr(types, is_list)(kind) for is_list in _LISTS):
        return _arrow_node(kind.value_type)
    if types.is_struct(kind):
        return _arrow_fields(kind)
    if types.is_map(kind):
        return Entries(_arrow_node(kind.item_type))
    name = next((name for is_kind, name in _OF_ARROW.items() if getattr(types, is_kind)(kind)), None)
    return Leaf(None if name is None else BUILT_IN[name], str(kind))


def _spark_fields(kind: SparkStruct) -> Fields:
    return Fields({inner.name: _spark_node(inner.dataType) for inner in kind.fields})


def _spark_node(kind: Any) -> Node:
    if hasattr(kind, "sqlType"):  # a user-defined type, by its storage type
        return _spark_node(kind.sqlType())
    match kind.typeName():
        case "struct":
            return _spark_fields(kind)
        case "array":
            return _spark_node(kind.elementType)
        case "map":
            return Entries(_spark_node(kind.valueType))
        case name:
            domain = _OF_SPARK.get(name)
            return Leaf(None if domain is None else BUILT_IN[domain], kind.simpleString())
