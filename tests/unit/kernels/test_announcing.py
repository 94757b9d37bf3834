"""What is said while kernels are compiled, when, and by whom."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harken.kernels import announcing
from harken.kernels.announcing import Announcer


class Lock:
    """What is written beside the lock."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    def read(self) -> str:
        return self.text

    def write(self, text: str) -> None:
        self.text = text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still until it is moved."""
    now = SimpleNamespace(seconds=1_000_000.0)
    monkeypatch.setattr(announcing, "time", SimpleNamespace(monotonic=lambda: now.seconds, time=lambda: now.seconds))
    return now


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, "harken.kernels.compile")
    return lambda: [record.getMessage() for record in caplog.records]


def compiles(announcer: Announcer, clock: SimpleNamespace, seconds: float, *, inside: int = 0) -> None:
    """One kernel is compiled, and some that it calls."""
    started: Any = SimpleNamespace(data={"dispatcher": compiles})
    announcer.on_start(started)
    for _ in range(inside):
        announcer.on_start(started)
        announcer.on_end(started)
    clock.seconds += seconds
    announcer.on_end(started)


compiles.py_func = SimpleNamespace(__module__="harken.kernels.runs")  # type: ignore[attr-defined]


def test_with_an_empty_cache_it_is_said_at_once_and_once(clock: SimpleNamespace, said: Callable[[], list[str]]) -> None:
    announcer = Announcer(lambda: "/kept", Lock())
    announcer.kernel_is_missing(True)
    for _ in range(5):
        compiles(announcer, clock, 10)
        announcer.kernel_is_missing(False)
    assert len(said()) == 1
    assert "kept in /kept" in said()[0]


def test_a_few_missing_kernels_are_compiled_in_silence_and_many_are_not(
    clock: SimpleNamespace, said: Callable[[], list[str]]
) -> None:
    announcer = Announcer(lambda: "/kept", Lock())
    announcer.kernel_is_missing(False)
    compiles(announcer, clock, 0.5)
    compiles(announcer, clock, 1.4)
    compiles(announcer, clock, 1)
    assert said() == []
    compiles(announcer, clock, 1)
    assert len(said()) == 1


def test_of_several_processes_one_says_it(clock: SimpleNamespace, said: Callable[[], list[str]]) -> None:
    lock = Lock()
    for is_first in (True, False, False):
        announcer = Announcer(lambda: "/kept", lock)
        announcer.kernel_is_missing(is_first)
        for _ in range(3):
            compiles(announcer, clock, 5)
    assert len(said()) == 1
    clock.seconds += 3_600
    later = Announcer(lambda: "/kept", lock)
    for _ in range(3):
        compiles(later, clock, 5)
    assert len(said()) == 2, "another day it is news again"


def test_a_silent_process_says_nothing_and_counts(clock: SimpleNamespace, said: Callable[[], list[str]]) -> None:
    counted: list[int] = []
    announcer = Announcer(lambda: "/kept", Lock())
    announcer.is_silent, announcer.watcher = True, counted.append
    announcer.kernel_is_missing(True)
    compiles(announcer, clock, 30, inside=2)
    compiles(announcer, clock, 30)
    assert said() == []
    assert counted == [1, 2, 3, 4]


def test_without_a_folder_every_process_says_what_to_set(clock: SimpleNamespace, said: Callable[[], list[str]]) -> None:
    announcer = Announcer(lambda: None, Lock(f"announced {clock.seconds:.0f}"))
    compiles(announcer, clock, 1)
    compiles(announcer, clock, 1)
    assert len(said()) == 1
    assert "Set NUMBA_CACHE_DIR" in said()[0]


def test_on_a_terminal_a_line_counts_and_goes_away(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(announcing.log, "hasHandlers", lambda: False)
    announcer = Announcer(lambda: "/kept", Lock())
    announcer.kernel_is_missing(True)
    compiles(announcer, clock, 1, inside=2)
    compiles(announcer, clock, 1)
    shown = terminal.getvalue().split(announcing._CLEAR)
    assert [text.rpartition(": ")[2] for text in shown if text] == [f"{count} of about 50" for count in (0, 1, 2, 3)]
    assert terminal.getvalue().endswith(announcing._CLEAR)
    for _ in range(60):
        compiles(announcer, clock, 1)
    assert "63 of about 70" in terminal.getvalue()


def test_kernels_of_others_are_none_of_its_business(clock: SimpleNamespace, said: Callable[[], list[str]]) -> None:
    announcer = Announcer(lambda: "/kept", Lock())
    announcer.kernel_is_missing(True)
    stranger: Any = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__="stumpy"))})
    announcer.on_start(stranger)
    announcer.on_end(stranger)
    assert said() == []
