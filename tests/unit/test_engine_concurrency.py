"""Engines under several threads and after fork(): what is true all the time is found all the time."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harken import Engine
from harken.matchers import ALGORITHMS
from harken.matchers.algorithm_registry import takes_option
from harken.matchers.columnar import Columnar
from unit.deadline import without_hanging

pytestmark = pytest.mark.seconds

EVENT = {"x": 1, "y": "a"}
ROUNDS = 500 if os.environ.get("HARKEN_LONG") == "1" else 50


@contextmanager
def busy_switching() -> Iterator[None]:
    """Let threads take turns far more often than usual. Whatever is to be compiled had better be compiled before."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def run_together(writers: list[Callable[[int], None]], readers: list[Callable[[], None]], rounds: int) -> None:
    """Run writers for some rounds, and readers until the writers are done. Raises what any of them raised."""
    problems: list[BaseException] = []
    writing = threading.Event()

    def write(work: Callable[[int], None]) -> None:
        try:
            for turn in range(rounds):
                work(turn)
        except BaseException as problem:
            problems.append(problem)

    def read(work: Callable[[], None]) -> None:
        try:
            while not writing.is_set():
                work()
        except BaseException as problem:
            problems.append(problem)

    reading = [threading.Thread(target=read, args=[work]) for work in readers]
    changing = [threading.Thread(target=write, args=[work]) for work in writers]
    for thread in reading + changing:
        thread.start()
    for thread in changing:
        thread.join()
    writing.set()
    for thread in reading:
        thread.join()
    if problems:
        raise problems[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_subscription_that_is_replaced_is_never_missed(algorithm: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"small_rows": 0, "recent_rows": 64} if algorithm == "columnar" else {}
    if takes_option(algorithm, "database"):
        options = {"database": "sqlite"}  # on DuckDB this test takes half a minute
    check_replacing(Engine(algorithm=algorithm, **options), tmp_path)


def test_nor_in_a_small_engine(tmp_path: Path) -> None:
    check_replacing(Engine(), tmp_path)


def check_replacing(engine: Engine, folder: Path) -> None:
    engine.subscribe_many([(f"other-{n}", f"x = {n} AND y = 'b'") for n in range(200)])
    engine.subscribe("always", "y = 'a'")
    engine.subscribe("replaced", "x = 1")

    def replace(turn: int) -> None:
        engine.subscribe("replaced", "x = 1" if turn % 2 else "x < 2 AND y <> 'c'", replace=True)

    def replace_many(turn: int) -> None:
        engine.subscribe_many([("replaced-too", f"x <= {1 + turn}"), (f"other-{turn}", "x = 7")], replace=True)

    def come_and_go(turn: int) -> None:
        engine.subscribe(f"guest-{turn}", "x = 1")
        engine.unsubscribe(f"guest-{turn}")

    def tidy(turn: int) -> None:
        if turn % 10 == 0:
            engine.merge()
        if turn % 50 == 0:
            engine.save(folder / "saved")

    engine.subscribe("replaced-too", "x = 1")
    wanted = {"always", "replaced", "replaced-too"}

    def judge(ids: list[str]) -> None:
        missed = wanted - set(ids)
        assert not missed, f"missed {missed}"
        assert len(ids) == len(set(ids)), f"found twice: {ids}"
        assert all(id in wanted or id.startswith("guest-") for id in ids), f"found what is not true: {ids}"

    def match() -> None:
        judge(engine.match(EVENT).ids)

    def match_batch() -> None:
        for ids in engine.match_batch([EVENT] * 5).ids:
            judge(ids)

    def look_up() -> None:
        assert "replaced" in engine
        assert engine.subscription("replaced").id == "replaced"

    run_together([replace, replace_many, come_and_go, tidy], [match, match_batch, look_up], 2)
    with busy_switching():
        run_together([replace, replace_many, come_and_go, tidy], [match, match_batch, look_up], ROUNDS)
    judge(engine.match(EVENT).ids)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_subscriptions_are_replaced_at_one_moment(algorithm: str) -> None:
    options: dict[str, Any] = {"small_rows": 0, "recent_rows": 64} if algorithm == "columnar" else {}
    if takes_option(algorithm, "database"):
        options = {"database": "sqlite"}
    check_replacing_all(Engine(algorithm=algorithm, **options), [])


def test_also_where_several_indexes_hold_them() -> None:
    others = [{"id": "document", "where": "/a", "language": "xpath"}, ("pattern", "y LIKE '%a%' OR y LIKE '%b%'")]
    check_replacing_all(Engine(), others)
    check_replacing_all(Engine(small_rows=0, recent_rows=8), others)


def check_replacing_all(engine: Engine, others: list[Any]) -> None:
    """Two sets, one for the other in turns. Both stay in part, and a match has all of one of them."""
    sets = [
        [("same", "y = 'a'"), ("other", f"x = {turn}"), *((f"{turn}-{n}", f"x <= {n + 1}") for n in range(40 + turn))]
        for turn in range(2)
    ]
    sets[0] += others
    event = EVENT | {"document": "<a/>"}
    alone = []
    for rules in sets:
        engine.replace_all(rules)
        alone.append(sorted(engine.match(event).ids))
    assert alone[0] != alone[1]

    def replace(turn: int) -> None:
        assert engine.replace_all(sets[turn % 2]).unchanged == ["same"]

    def judge(ids: list[str]) -> None:
        assert sorted(ids) in alone, f"a mixture: {sorted(ids)}"

    def match() -> None:
        judge(engine.match(event).ids)

    def match_batch() -> None:
        for ids in engine.match_batch([event] * 5, threads=2).ids:
            judge(ids)
        every = engine.match_batch([event] * 5).ids
        judge(every[0])
        assert all(sorted(ids) == sorted(every[0]) for ids in every)

    run_together([replace], [match, match_batch], 2)
    with busy_switching():
        run_together([replace], [match, match_batch], ROUNDS)


@pytest.mark.seconds
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_fork_works_whatever_other_threads_were_at() -> None:
    engine = Engine(recent_rows=64, small_rows=0)
    engine.subscribe_many([(f"s{n}", f"x = {n % 7} AND y < {n}") for n in range(1_000)])
    engine.match({"x": 1, "y": 3})
    done = threading.Event()

    def change() -> None:
        turn = 0
        while not done.is_set():
            engine.subscribe_many([(f"n{turn}-{n}", f"x = {n} AND y < {turn}") for n in range(70)])
            turn += 1
            time.sleep(0.001)

    def match() -> None:
        while not done.is_set():
            engine.match_batch([{"x": 1, "y": 5_000}] * 3)

    threads = [threading.Thread(target=change), threading.Thread(target=match)]
    for thread in threads:
        thread.start()
    try:
        with without_hanging():
            for _ in range(30):
                child = os.fork()
                if child == 0:
                    os._exit(_life_of_a_child(engine))
                _, status = os.waitpid(child, 0)
                assert os.waitstatus_to_exitcode(status) == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


def _life_of_a_child(engine: Engine) -> int:
    """0 if a child of fork() can match, subscribe and merge."""
    try:
        before = len(engine)
        engine.subscribe("child", "x = 1")
        engine.subscribe_many([(f"child-{n}", f"x = {n}") for n in range(100)])
        found = engine.match({"x": 1, "y": 3}).ids
        engine.merge()
        again = engine.match({"x": 1, "y": 3}).ids
        engine.unsubscribe("child")
        good = {"child", "child-1"} <= set(found) and set(again) == set(found) and len(engine) == before + 100
        return 0 if good else 1
    except BaseException:
        return 2


def test_a_merge_that_was_going_on_in_the_parent_is_forgotten_in_the_child() -> None:
    matcher = Columnar(background=True)
    assert matcher._merging.acquire()
    child = os.fork()
    if child == 0:
        os._exit(0 if matcher._merging.acquire(blocking=False) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
