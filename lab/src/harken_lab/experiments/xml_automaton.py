"""Tian et al., section 2: an automaton in memory, in the manner of YFilter, beside the index by values.

The paper sets itself against automata and has no figure of one. Whole engines are measured, parsing included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from time import perf_counter

from harken.engine import Engine
from harken_lab.experiments.definition import RELATIONAL_XML, Experiment
from harken_lab.experiments.documents import XPATH, filled_engine, model_of, streams, verify_documents
from harken_lab.experiments.figure_rows import TIME, Row, WorkloadRows
from harken_lab.experiments.findings import Claim, Finding
from harken_lab.experiments.margins import LESS, SUBLINEAR
from harken_lab.experiments.plotting import Plot
from harken_lab.experiments.running import Run, timed
from harken_lab.experiments.spreads import FigureSpread, everywhere, growth_of, spreads, within
from harken_lab.harness.charts import shown
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.harness.rounds import interleaved
from harken_lab.workloads import generate
from harken_lab.workloads.nasa import Nasa

YFILTER = "yfilter"
_ALGORITHMS = (XPATH, YFILTER)
_NASA, _STOCK = "nasa", "stock-xml"


def measure(run: Run) -> Iterator[Row]:
    for name in (_NASA, _STOCK):
        for size in run["sizes"]:
            texts, documents = _drawn(run, name, size)
            yield from _measured(run, name, texts, documents)


def _drawn(run: Run, name: str, size: int) -> tuple[list[str], Sequence[bytes]]:
    """The subscriptions and the documents of a workload."""
    if name == _STOCK:
        workload = generate(_STOCK, size, run["messages"], run.seed)
        documents = workload.events.column("document").to_pylist()
        return workload.texts().to_pylist(), [each.encode() if isinstance(each, str) else each for each in documents]
    model = model_of(_NASA)
    assert isinstance(model, Nasa)
    return list(model.xpaths().texts(size, streams(run.seed)[0])), model.collection()[: run["documents"]]


def _measured(run: Run, name: str, texts: Sequence[str], documents: Sequence[bytes]) -> Iterator[Row]:
    engines: dict[str, Engine] = {}
    seconds, answers = {}, {}
    for algorithm in _ALGORITHMS:
        run.tell(f"{name}, {len(texts):,} subscriptions: filling {algorithm}")
        engine, seconds[algorithm] = filled_engine(texts, lambda text: None, documents=algorithm)
        answers[algorithm] = [sorted(ids) for ids in engine.match_batch(documents).ids]
        engines[algorithm] = engine
    if answers[YFILTER] != answers[XPATH]:
        raise WrongAnswerError(f"{name}: {YFILTER} finds other subscriptions than {XPATH}")
    verify_documents(engines[XPATH], documents, run.seed)
    runs = {each: lambda engine=engine: engine.match_batch(documents) for each, engine in engines.items()}
    timings = interleaved(runs, run.pace.rounds)
    for algorithm, engine in engines.items():
        yield {
            **{"workload": name, "subscriptions": len(texts), "entrant": algorithm, "algorithm": algorithm},
            "options": {"documents": algorithm},
            **timed(timings[algorithm].microseconds(len(documents))),
            **_described(engine, documents),
            "fill_seconds": round(seconds[algorithm], 4),
            "change_us": round(_change_seconds(engine, texts[: run["changes"]], documents[0]) * 1e6, 1),
        }


def _described(engine: Engine, documents: Sequence[bytes]) -> Row:
    stats = engine.stats()["documents"]
    return {
        "events": len(documents),
        "matches_per_event": round(sum(engine.match_batch(documents).counts) / len(documents), 3),
        "examined_per_event": stats["seen_programs"],
        "states": stats.get("states"),
        "bytes": sum(stats["memory"].values()),
    }


def _change_seconds(engine: Engine, texts: Sequence[str], document: bytes) -> float:
    """Seconds to add a subscription, match one document and remove it again; the median of some."""
    times = []
    for text in texts:
        started = perf_counter()
        engine.subscribe("new", text, language="xpath")
        engine.match_batch([document])
        engine.unsubscribe("new")
        times.append(perf_counter() - started)
    return median(times)


def judge(rows: WorkloadRows) -> Iterator[Finding]:
    yield _shares(rows.where(workload=_NASA, entrant=YFILTER))
    yield _grows(rows.where(workload=_NASA))
    yield _postpones(rows)


def _shares(rows: WorkloadRows) -> Finding:
    power = growth_of(spreads(rows, "states"))
    if power is None:
        return _STATES.unmeasured("it takes two sizes")
    counts = ", ".join(f"{size:,}: {shown(states)}" for size, states in rows.points("states").items())
    return _STATES.judged(within(power, most=SUBLINEAR), f"{counts}; as size^{power} (holds up to {SUBLINEAR:g})")


def _grows(rows: WorkloadRows) -> Finding:
    powers = {each: growth_of(spreads(rows, TIME, entrant=each)) for each in _ALGORITHMS}
    automaton = powers[YFILTER]
    if automaton is None:
        return _TIME.unmeasured("it takes two sizes")
    ours = ", ".join(f"{each} as size^{power}" for each, power in powers.items() if power is not None)
    return _TIME.judged(within(automaton, most=SUBLINEAR), f"{ours} (holds if {YFILTER} is up to {SUBLINEAR:g})")


def _postpones(rows: WorkloadRows) -> Finding:
    ratios: list[tuple[str, int, FigureSpread]] = []
    for name in (_NASA, _STOCK):
        times = [spreads(rows.where(workload=name), TIME, entrant=each) for each in _ALGORITHMS]
        sizes = sorted(times[0].keys() & times[1].keys())
        ratios += [(name, sizes[-1], times[1][sizes[-1]] / times[0][sizes[-1]])] if sizes else []
    if not ratios:
        return _VALUES.unmeasured("nothing was measured")
    ours = ", ".join(f"{name}, {size:,} subscriptions: {ratio} times" for name, size, ratio in ratios)
    verdict = everywhere([within(ratio, most=LESS) for _, _, ratio in ratios])
    return _VALUES.judged(verdict, f"{YFILTER} by {XPATH}: {ours} (holds up to {LESS:g})")


_NONE = "the paper has no figure of an automaton"
_STATES = Claim(
    "States grow less than subscriptions",
    _NONE,
    "Paths of one kind of documents begin alike, and share these states.",
    "Wildcards and `//` make most paths new ones.",
)
_TIME = Claim(
    "The time of a document grows less than subscriptions",
    "section 2: automata share the work of common paths",
    "Running the automaton costs in proportion to its active states, which are shared.",
    "Most of the time is comparing values afterwards, for every subscription whose paths the document has.",
)
_VALUES = Claim(
    "An automaton in memory is as quick as the index by values",
    _NONE,
    "The paths of subscriptions select as much as their values do.",
    "Documents of one kind have most paths, so that structure selects little: every stock message has all paths of "
    "all subscriptions. The index begins with the rarest value.",
)

EXPERIMENT = Experiment(
    name="xml-automaton",
    title="An automaton of shared prefixes",
    paper=f"{RELATIONAL_XML}, section 2",
    scales={
        "smoke": {"sizes": [100, 400], "documents": 40, "messages": 60, "changes": 3},
        "laptop": {"sizes": [100, 1_000, 10_000], "documents": 1_000, "messages": 2_000, "changes": 25},
        "full": {"sizes": [100, 1_000, 10_000, 100_000], "documents": 2_435, "messages": 10_000, "changes": 100},
    },
    measure=measure,
    judge=judge,
    plots=(Plot("time", "Time of a document", y_title="µs a document"),),
)
