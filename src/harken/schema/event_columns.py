"""The columns that events come in: names and types, through structs, arrays and maps, as Arrow or Spark tells them."""

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
# By the names of pyarrow.types, in the order in which they are asked.
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
# By DataType.typeName(). So pyspark need not be imported.
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
"""Types of columns that hold XML documents, by the names that Arrow and Spark share."""


class SparkStruct(Protocol):
    """A `pyspark.sql.types.StructType`: only the rooms of Spark import that."""

    @property
    def fields(self) -> Sequence[Any]: ...


class Leaf(NamedTuple):
    """A column, or a field inside one, that holds values or arrays of them."""

    domain: Domain | None
    """The built-in domain of its values. None where the type does not tell (a column of nulls only), or where no
    subscription can ask for it (binary, variant, intervals)."""
    type: str
    """Its type, as Arrow or Spark calls it."""
    is_document: bool = False
    """Whether it is a column of bytes, which are XML documents."""
    has_no_times: bool = False
    """Whether it has strings, none of which reads as the timestamp or the date that subscriptions ask for."""

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
    """What columns events have, by path. Arrays are no level of their own: `items.price` goes through `items`."""

    columns: Fields

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Self:
        """The columns of Arrow tables with this schema. Binary ones hold XML documents."""
        return cls(Fields({each.name: _column(str(each.type)) or _arrow_node(each.type) for each in schema}))

    @classmethod
    def from_spark(cls, schema: SparkStruct) -> Self:
        """The columns of DataFrames with this schema. Binary ones are as in Arrow."""
        found = {each.name: _column(each.dataType.typeName()) or _spark_node(each.dataType) for each in schema.fields}
        return cls(Fields(found))

    def only(self, names: Iterable[str]) -> Self:
        """Those columns that are among these names."""
        wanted = set(names)
        return type(self)(Fields({name: node for name, node in self.columns.by_name.items() if name in wanted}))

    def of_any_kind(self, names: Iterable[str]) -> Self:
        """The same columns, except that those of these names may hold values of any kind."""
        loosened = {name: _of_any_kind(self.columns.by_name[name]) for name in names if name in self.columns.by_name}
        return type(self)(Fields({**self.columns.by_name, **loosened}))

    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
        return iter(self.columns.by_name)

    def at(self, path: Path) -> Node | None:
        """What is at a path; None if there is nothing."""
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
        """Every leaf with its path. What is inside maps is left out: it has no name."""
        return _leaves(self.columns, ())

    def unreadable(self) -> Iterator[tuple[Path, Leaf]]:
        """The leaves that no event can hold, such as intervals, also inside maps. Columns of documents are none."""
        found = _leaves(self.columns, (), in_maps=True)
        unknown = ((path, leaf) for path, leaf in found if leaf.domain is None and leaf.type not in _NULLS)
        return ((path, leaf) for path, leaf in unknown if not leaf.is_document)


def _column(kind: str) -> Leaf | None:
    """A column of documents, if it is one by the name of its type."""
    return Leaf(None, kind, is_document=True) if kind in _BINARIES else None


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
    return Fields({each.name: _arrow_node(each.type) for each in fields})


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
    return Fields({each.name: _spark_node(each.dataType) for each in kind.fields})


def _spark_node(kind: Any) -> Node:
    if hasattr(kind, "sqlType"):  # a user-defined type, by what stores it
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
