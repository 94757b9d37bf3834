"""What Harken's other rooms need of an engine and its users do not: its parts, its settings, what its index reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING, Any

from harken.errors import did_you_mean
from harken.limits import Limits
from harken.matchers.kinds import OPERATORS
from harken.matchers.roles import CallsOperators, Plans
from harken.operators import OperatorSet
from harken.schema import Kind, Path, Schema
from harken.schema.derived import needed

if TYPE_CHECKING:
    from harken.engine import Engine
    from harken.events import Decoded
    from harken.live.results import BatchMatches


class EngineInternals:
    """The inside of an engine, for Spark, pipelines, the server and the command line. It may change in any release."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # Settings

    @property
    def limits(self) -> Limits:
        """The limits on texts and events."""
        return self._engine._live.limits

    @property
    def options(self) -> dict[str, Any]:
        """The options of the algorithm."""
        return dict(self._engine._live.options)

    @property
    def operators(self) -> OperatorSet:
        """The operators that subscriptions may call, by name."""
        return self._engine._live.operating.operators

    @property
    def order(self) -> str:
        """The order in which predicates of operators are evaluated."""
        return self._engine._live.operating.order

    # What subscriptions use

    def field_names(self) -> list[str]:
        """The names of the fields of subscriptions, such as `owner`."""
        return list(self._engine._live.catalogue.field_counts())

    def unknown_fields(self, names: Iterable[str]) -> list[tuple[str, str | None]]:
        """The names that are no field of any subscription, each with a hint at a similar one."""
        fields = self.field_names()
        return [(name, did_you_mean(name, fields, case_sensitive=False)) for name in names if name not in fields]

    def validated(self) -> frozenset[str] | None:
        """Those of `Engine.attributes()` whose values are checked. Others are for operators and may hold anything."""
        return self._engine._live.decoded_names

    def used_columns(self) -> list[tuple[Path, Kind | None]] | None:
        """The attributes that subscriptions use, each with the kind of its values; None is any kind.

        Some may belong to removed subscriptions only. Returns None if the algorithm does not list them.
        """
        asking = self._engine._live.index.asking()
        if asking is None:
            return None
        return list(dict.fromkeys(need for each in asking.columns() for need in needed(each.path, each.kind)))

    def document_paths(self) -> tuple[Path, ...]:
        """The attributes that subscriptions read as XML documents."""
        return self._engine._live.index.document_paths()

    def clustering_attribute(self) -> str | None:
        """The top-level attribute by which most subscriptions are found, if there is one.

        Events that share its value find their subscriptions in the same place, so matching them one after the other
        is quicker.
        """
        matcher = self._engine._live.matcher
        path = matcher.favourite() if isinstance(matcher, Plans) else None
        return None if path is None or len(path) > 1 else str(path[0])

    def operator_plan(self) -> list[dict[str, Any]]:
        """Statistics of each predicate of operators, as plain data, the most useful first.

        `conjunctions` is the number that need it; `holding` the probability that it is true, learnt from `tried`
        outcomes or guessed if there are none; `worth` the number of conjunctions that evaluating it is expected to
        settle per millisecond.
        """
        matcher = self._engine._live.index.others().get(OPERATORS)
        return matcher.plan() if isinstance(matcher, CallsOperators) else []

    # Matching

    def match_decoding(self, decode: Callable[[Schema | None, frozenset[str] | None], Decoded]) -> BatchMatches:
        """Take a snapshot of the subscriptions, decode events for it, and match them.

        `decode` gets the schema and the names of the attributes to decode; None is all of them.
        """
        from harken.live.match_call import BatchCall

        started, live = perf_counter(), self._engine._current()
        with BatchCall(live) as call:
            names = live.with_names_read(call.snapshot.decoded_names)
            decoded = decode(call.snapshot.compiler.schema, names)
            return call.match(decoded, started, 1, self._engine._unparsed)

    # Parts and copies

    def export(self, path: str | PathLike[str]) -> None:
        """Write the engine to a folder as `save` does, without remembering that folder."""
        from harken.live.saved import save
        from harken.versions.folder import Folder

        with self._engine._changing() as live:
            save(Folder(path), None, live)

    def cut(self, parts: int) -> list[Engine]:
        """Divide the subscriptions among `parts` new engines. An event costs about the same in each."""
        from harken.live.parts import cut

        with self._engine._changing() as live:
            shards = cut(live.index, live.catalogue, live.numbering.size, parts)
            return [self._engine._of_part(each, live.sequence) for each in shards]


def join_engines(engines: Sequence[Engine]) -> tuple[Engine, list[str]]:
    """One engine with the subscriptions of several that have the same settings, and the ids that more than one had.

    Of subscriptions with the same id, the first is kept.
    """
    from harken.live.parts import join

    sets = [each._live for each in engines]
    part, duplicates = join([(each.index, each.catalogue, each.numbering.size) for each in sets])
    sequences = [each.sequence for each in sets]
    sequence = None if None in sequences else min(each for each in sequences if each is not None)
    return engines[0]._of_part(part, sequence), duplicates
