"""The laboratory's commands stand beside Harken's, and complete names as these do."""

from __future__ import annotations

import pytest

from unit.cli.conftest import Program, Run
from unit.cli.test_program import fits_80_columns

pytestmark = pytest.mark.seconds

COMMANDS = ["bench", "demo", "experiment", "generate", "report", "tour", "warm-up-papers"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_80_columns_and_has_an_example(run: Run, command: str) -> None:
    fits_80_columns(run, command)


def test_help_lists_them_apart(run: Run) -> None:
    ours, _, theirs = run("--help").stdout.partition("\nLaboratory:\n")
    listed = [line.split()[0] for line in theirs.partition("\n\n")[0].splitlines()]
    assert listed == COMMANDS
    assert "  match " in ours


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("harken ben", ["bench"]),
        ("harken match --algorithm q", ["quarantine"]),
        ("harken generate le", ["le-subscribe"]),
        ("harken generate w4 --format j", ["jsonl"]),
    ],
)
def test_the_shell_completes_names(program: Program, words: str, completed: list[str]) -> None:
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_HARKEN_COMPLETE": "complete_bash"}
    result = program(env=typed)
    assert (result.returncode, result.stdout.split()) == (0, completed)
