"""`harken` as a program: exit codes, pipes, signals, terminals, and how soon it answers."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import harken

from .conftest import PAIRS, PROGRAM, Program, Run, Write, lines

pytestmark = pytest.mark.seconds

COMMANDS = ["match", "check", "explain", "algorithms"]
COMMANDS += ["subscribe", "unsubscribe", "renew", "publish", "listen", "sql"]
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7])m")


def test_version(program: Program) -> None:
    result = program("--version")
    assert (result.returncode, result.stdout) == (0, f"harken {harken.__version__}\n")


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_fits_80_columns_and_has_an_example(run: Run, command: list[str]) -> None:
    fits_80_columns(run, *command)


def fits_80_columns(run: Run, *command: str) -> None:
    result = run(*command, "--help", env={"COLUMNS": "80"}, prog_name="harken")
    assert result.exit_code == 0
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert f"harken {' '.join(command)}" in result.stdout.partition("Example")[2]
    assert "..." not in result.stdout.partition("Commands:")[2]


def test_help_tells_the_exit_codes(run: Run) -> None:
    text = run("--help").stdout
    assert all(f"  {code} " in text for code in (0, 1, 2, 3, 70, 130, 141, 143))


def test_help_is_quick() -> None:
    """By the processor's time, beside what Typer takes alone, the best of three: other tests run meanwhile."""

    def seconds(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    of_typer = min(seconds(sys.executable, "-c", "import typer.core") for _ in range(3))
    assert min(seconds(*PROGRAM, "--help") for _ in range(3)) < 10 * of_typer


def test_help_imports_nothing_heavy() -> None:
    heavy = {"pyarrow", "numpy", "pandas", "rich", "pyspark"}
    script = f"import sys, harken.cli; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_exit_codes(program: Program, subscriptions: Path, write: Write) -> None:
    bad = write("bad.jsonl", "{\n")
    half = write("half.jsonl", '{\n{"price": 1}\n')
    codes = {
        ("match", half, "-s", subscriptions): 0,
        ("match", bad, "-s", subscriptions): 3,
        ("check", "-e", bad): 1,
        ("match", bad): 2,
        ("match", bad, "-s", bad): 3,
    }
    for command, code in codes.items():
        result = program(*command)
        assert result.returncode == code, command
        assert "Traceback" not in result.stderr


def test_an_unknown_command_has_a_hint(program: Program) -> None:
    assert "Did you mean 'match'?" in program("mach").stderr


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("harken ma", ["match"]),
        ("harken match --algorithm rel", ["relational_anchored"]),
        ("harken match --format p", ["parquet"]),
        ("harken match eve", []),  # then the shell completes files
    ],
)
def test_the_shell_completes_names(program: Program, words: str, completed: list[str]) -> None:
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_HARKEN_COMPLETE": "complete_bash"}
    result = program(env=typed)
    assert (result.returncode, result.stdout.split()) == (0, completed)


@pytest.mark.slow
def test_no_control_codes_in_pipes(program: Program, events: Path, subscriptions: Path, write: Write) -> None:
    """Also on a machine where Typer, if it framed its help, would write some."""
    bad = write("bad.jsonl", '{"price": 9}\n{\n')
    for command in (
        ["match", bad, "-s", subscriptions, "-v"],
        ["match", events, "-s", "nosuch.jsonl"],
        ["check", "-e", bad],
        ["explain", events, "--where", "price < 5"],
        ["algorithms"],
        ["--help"],
        ["match"],
    ):
        result = program(*command, env={"GITHUB_ACTIONS": "true"})
        told = result.stdout + result.stderr
        assert told
        assert not any(each in told for each in ("\x1b", "\r", "Traceback")), command


def test_pipes_are_utf8_whatever_the_locale(program: Program, events: Path, write: Write) -> None:
    subscriptions = write("s.jsonl", [{"id": "é✓", "where": "price < 5"}])
    latin = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1"}
    result = program("match", events, "-s", subscriptions, env=latin, encoding="utf-8")
    assert lines(result.stdout)[0]["subscription"] == "é✓"
    assert program("explain", events, "--where", "price < 5", env=latin, encoding="utf-8").stdout.endswith(
        "✓ price < 5   (price is 3.5)\n"
    )


def test_a_closed_pipe_ends_quietly(write: Write, subscriptions: Path) -> None:
    events = write("many.jsonl", '{"price": 9}\n' * 20_000)
    command = [*PROGRAM, "match", str(events), "-s", str(subscriptions), "--batch-size", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["event"] == 0
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_a_full_disk_is_told(program: Program, events: Path, subscriptions: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        command = [*PROGRAM, "match", str(events), "-s", str(subscriptions)]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 3
    assert "error: standard output cannot be written: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_behind(subscriptions: Path, tmp_path: Path, number: int, code: int) -> None:
    output = tmp_path / "out.jsonl"
    before = set(tmp_path.iterdir())
    # A shell has what it starts in the background ignore SIGINT, and who runs the tests hands that on.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    *python, program = PROGRAM
    command = [*python, f"{heed}; {program}", "match", "-", "-s", str(subscriptions), "-o", str(output), "-v"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stderr is not None
        assert "2 subscriptions loaded" in process.stderr.readline()
        process.send_signal(number)
        told = process.stderr.read()
    assert process.returncode == code
    assert "Traceback" not in told
    assert set(tmp_path.iterdir()) == before


def on_terminal(*arguments: object, env: dict[str, str] | None = None) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **(env or {})}
    command = [*PROGRAM, *map(str, arguments)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65_536):
                shown += piece
        except OSError:  # Linux says so when the other side is closed
            pass
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def test_on_a_terminal_there_is_a_table_of_the_first_rows(write: Write, subscriptions: Path) -> None:
    shown = on_terminal("match", write("e.jsonl", '{"price": 9}\n' * 50), "-s", subscriptions)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "event   subscription   owner   channel" in plain
    assert plain.count("bob") == 20
    assert "… and 30 more; -o FILE writes all of them" in plain
    assert "50 matches" in plain


def test_json_on_a_terminal_is_json(events: Path, subscriptions: Path) -> None:
    told = lines(on_terminal("match", events, "-s", subscriptions, "--json"))
    assert [(each["event"], each["subscription"]) for each in told[:-1]] == PAIRS
    assert told[-1]["kind"] == "summary"


def test_no_color_is_respected(events: Path) -> None:
    command = ("explain", events, "--where", "price < 5")
    assert COLOUR.search(on_terminal(*command))
    assert not COLOUR.search(on_terminal(*command, env={"NO_COLOR": "1"}))
