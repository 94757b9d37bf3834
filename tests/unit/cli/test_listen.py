"""`harken listen`: a line for each notification, at once, until there are enough."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from harken.cli.tickets import TicketFile
from services.stand import Reply, Stand, problem

from .conftest import PROGRAM, Run, lines

TIME = "2030-01-02T03:04:05.000006Z"


def plain(id: int, **more: Any) -> dict[str, Any]:
    return {"id": str(id), "subscription": "a", "event_id": "9", "time": TIME, "event": {"price": id}, **more}


def frame(id: int, **more: Any) -> bytes:
    return f"id: {id}\nevent: notification\ndata: {json.dumps(plain(id, **more))}\n\n".encode()


def test_notifications_are_json_lines(run: Run, stand: Stand) -> None:
    TicketFile().keep(stand.url, {"a": "1", "b": "2"})
    stand.will(Reply(pieces=[frame(1), frame(2, suppressed=3), frame(3)]))
    result = run("listen", "a", "b", "--count", "2", "--after", "0")
    assert result.exit_code == 0
    assert lines(result.stdout) == [plain(1), plain(2, suppressed=3)]
    assert stand.seen[0].query == [("subscription", "a"), ("subscription", "b"), ("after", "0")]
    assert stand.seen[0].headers["harken-ticket"] == "1, 2"


def test_once(run: Run, stand: Stand) -> None:
    stand.will(Reply(pieces=[frame(1), frame(2)]))
    assert lines(run("listen", "a", "--once", "--ticket", "9").stdout) == [plain(1)]
    assert stand.seen[0].headers["harken-ticket"] == "9"
    assert run("listen", "a", "--once", "--count", "2").exit_code == 2
    assert run("listen").exit_code == 2


def test_a_stream_that_breaks_off_goes_on(run: Run, stand: Stand) -> None:
    stand.will(Reply(pieces=[frame(1)]), Reply(503), Reply(pieces=[frame(1), frame(2)]))
    result = run("listen", "a", "--count", "2")
    assert lines(result.stdout) == [plain(1), plain(2)]
    assert result.stderr.startswith("warning: the stream broke off and will be reopened")


def test_what_the_server_rejects(run: Run, stand: Stand) -> None:
    stand.will(problem(404, "there is no subscription 'a'"))
    result = run("listen", "a")
    assert (result.exit_code, result.stderr) == (3, "error: there is no subscription 'a'\n")


def test_lines_come_at_once_and_ctrl_c_ends_it(stand: Stand) -> None:
    over = threading.Event()

    def endless() -> Iterator[bytes]:
        yield frame(1)
        while not over.wait(0.05):
            yield b": ping\n\n"

    stand.will(Reply(pieces=endless()))
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    *python, program = PROGRAM
    command = [*python, f"{heed}; {program}", "listen", "a", "--server", stand.url]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        with subprocess.Popen(command, text=True, **pipes) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(process.stdout.readline()) == plain(1)
            process.send_signal(signal.SIGINT)
            assert process.stderr.read() == "interrupted\n"
        assert process.returncode == 130
    finally:
        over.set()
