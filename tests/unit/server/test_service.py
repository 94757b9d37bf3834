"""The life of a server: it starts, tells when it is ready, is told to stop in the middle of work, and starts again."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from services.processes import free_port
from services.serving import PROGRAM
from unit.server.serving import SECONDS, Server, problem, running_server, wait_until

pytestmark = [pytest.mark.together, pytest.mark.seconds]

TERMINATED = 143
LONGEST_POLL = 60


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], Server]]:
    """A server that may not be ready yet. Its process is dead when the block ends."""
    port = free_port()
    command = [*PROGRAM, "serve", "--port", str(port), "--store", str(folder / "harken.db"), *options]
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        server = Server(f"http://127.0.0.1:{port}")
        with server.http:
            yield process, server
    finally:
        process.kill()
        process.wait()


def answers(server: Server, path: str) -> int | None:
    """The status of an answer; None if nobody listens."""
    try:
        return server.get(path).status_code
    except httpx.TransportError:
        return None


def test_a_store_that_stays_empty_is_served_again_without_a_warning(tmp_path: Path) -> None:
    for _ in range(2):
        with started(tmp_path) as (process, server):
            wait_until(lambda server=server: answers(server, "/readyz") == 200)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == TERMINATED
    assert "rebuilt" not in (tmp_path / "serve.log").read_text()


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "harken.db").mkdir()
    with started(tmp_path) as (process, _):
        assert process.wait(SECONDS) == 3
    log = (tmp_path / "serve.log").read_text()
    assert f"the store {tmp_path / 'harken.db'} is a folder" in log
    assert "chmod" not in log
    assert not (tmp_path / "harken.db.lock").exists()


def test_a_server_that_starts_says_so(tmp_path: Path) -> None:
    """It waits as long as somebody else writes to its store, and rejects meanwhile."""
    store = tmp_path / "harken.db"
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with started(tmp_path) as (process, server):
            wait_until(lambda: answers(server, "/readyz") == 503)
            assert server.get("/readyz").json() == {"status": "starting", "detail": None}
            assert server.get("/healthz").status_code == 200
            assert "harken_ready 0.0" in server.get("/metrics").text
            for answer in (server.post("/events", {}), server.get("/subscriptions")):
                assert problem(answer, 503)["detail"] == "the server is starting"
            other.execute("ROLLBACK")
            other.close()
            wait_until(lambda: answers(server, "/readyz") == 200)
            assert server.post("/events", {}).status_code == 202
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == TERMINATED


def test_what_was_accepted_while_it_was_told_to_stop_is_there(tmp_path: Path) -> None:
    accepted: list[tuple[int, int]] = []
    with started(tmp_path) as (process, server):
        wait_until(lambda: answers(server, "/readyz") == 200)
        taken = server.subscribe("n >= 0")
        statuses: set[int] = set()

        def publish(worker: int) -> None:
            with httpx.Client(base_url=server.url, timeout=SECONDS, trust_env=False) as http:
                for n in range(100_000):
                    try:
                        status = http.post("/events", json={"n": n, "worker": worker}).status_code
                    except httpx.TransportError:
                        return  # the answer is lost: it may be there, or not
                    statuses.add(status)
                    if status == 202:
                        accepted.append((worker, n))

        workers = [threading.Thread(target=publish, args=(worker,)) for worker in range(6)]
        for each in workers:
            each.start()
        wait_until(lambda: len(accepted) > 300)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == TERMINATED
        for each in workers:
            each.join()
        assert statuses <= {202, 503}
    with running_server(tmp_path) as server:
        found: list[tuple[int, int]] = []
        cursor = "0"
        while page := server.page(taken, after=cursor, limit=1_000)["notifications"]:
            found += [(each["event"]["worker"], each["event"]["n"]) for each in page]
            cursor = page[-1]["id"]
    assert len(found) == len(set(found))
    assert set(accepted) <= set(found)
    lost = set(found) - set(accepted)
    assert len(lost) <= len(workers), "each may have had one request whose answer was lost"


def test_answers_that_go_on_end_when_it_is_told_to_stop(tmp_path: Path) -> None:
    """Had it waited for one of them, it would wait for more than a quarter of an hour, and for the poll a minute."""
    with started(tmp_path, "--set", "drain_timeout=1000") as (process, server):
        wait_until(lambda: answers(server, "/readyz") == 200)
        taken = server.subscribe("a = 1")
        polled: list[object] = []
        poll = threading.Thread(target=lambda: polled.append(server.page(taken, wait=LONGEST_POLL)["notifications"]))
        poll.start()
        with server.stream(taken) as frames, server.stream(path="/live") as feed:
            time.sleep(0.2)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert list(frames) == []
            assert all(each.kind == "rates" for each in feed)
            poll.join()
            assert polled == [[]]
        assert process.wait(SECONDS) == TERMINATED
        assert time.monotonic() - began < LONGEST_POLL, "the poll did not go on to its end"


def test_everything_is_there_again(tmp_path: Path) -> None:
    options = ["--api-keys"]
    key = subprocess.run(
        [*PROGRAM, "key", "create", "--owner", "me", "--scope", "admin", "--store", str(tmp_path / "harken.db")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    headers = {"Authorization": f"Bearer {key}"}
    with running_server(tmp_path, *options, headers=headers) as first:
        throttle = {"throttle": {"count": 1, "seconds": 600}}
        some = [first.subscribe(f"n >= {n}", labels={"n": str(n)}, valid_for=600) for n in range(20)]
        slow = first.subscribe("n >= 0", delivery={**throttle, "max_delay": 3, "format": "cloudevents"})
        path = first.subscribe("/a[b > 1]", language="xpath")
        gone = first.subscribe("n >= 0")
        first.http.delete(gone.path, headers=gone.headers)
        short = first.subscribe("n >= 0", valid_for=0.5)
        first.publish({"n": 10}, {"n": 5})
        first.send("/events", "<a><b>2</b></a>", "application/xml")
        once = first.http.post("/events", json={"n": 0}, headers={"Idempotency-Key": "once"})
        token = first.post(f"{some[0].path}/token").json()["token"]
        states = [first.get(each.path).json() for each in (*some, slow, path)]
        told = [first.notified(each) for each in (*some, slow, path)]
        time.sleep(0.6)
    with running_server(tmp_path, *options, headers=headers) as second:
        assert [second.get(each.path).json() for each in (*some, slow, path)] == states
        assert [second.notified(each) for each in (*some, slow, path)] == told
        assert second.matches({"n": 3}) == [sorted([*(each.id for each in some[:4]), slow.id])]
        for each in (gone, short):
            problem(second.get(each.path, each), 404)
        again = second.http.post("/events", json={"n": 0}, headers={"Idempotency-Key": "once"})
        assert again.json() == once.json()
        assert second.notified(some[0]) == told[0], "a repetition is known"
        second.publish({"n": 19})
        assert len(second.notified(some[19])) == 1
        assert second.notified(slow) == told[20], "the throttle goes on"
        assert int(second.notified(some[0])[-1]["id"]) > int(told[0][-1]["id"]), "cursors grow on"
        other = Server(second.url)
        asked = {"subscription": some[0].id, "token": token, "after": "0"}
        with other.http, other.stream(path="/stream", **asked) as frames:
            assert next(frames).data == told[0][0]
        assert second.get("/stats").json()["journal_events"] == 5
