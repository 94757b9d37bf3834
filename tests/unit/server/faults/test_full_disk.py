"""A store that cannot be written to: nothing is acknowledged, reads go on, and so does all else once it can be."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.postgres import Postgres, running_postgres
from unit.server.faults.listening import Listener
from unit.server.faults.server_process import (
    ServerProcess,
    database_url,
    ending,
    matches,
    notifications,
    publish,
    subscribe,
    ticket_of,
    wait_until,
)

pytestmark = pytest.mark.processes
PADDING = "x" * 20_000
_ENOUGH = 200


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes. Only root can have one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount(place, "-t", "tmpfs", "-o", "size=3m", "none")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def mount(place: Path, *options: str) -> None:
    if shutil.which("mount") is None:
        pytest.skip("there is no program mount")
    done = subprocess.run(["mount", *options, str(place)], capture_output=True, check=False, text=True)
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")


class Trouble:
    """A server, what it acknowledged, and what must be true while it cannot write."""

    def __init__(self, server: ServerProcess, client: httpx.Client) -> None:
        self.server = server
        self.client = client
        self.taken = {f"s{n}": subscribe(client, f"n >= {10 * n}", f"s{n}") for n in range(4)}
        self.all = subscribe(client, "n >= 0", "all")
        self.others: set[str] = set()
        self.published: list[int] = []

    def publish(self, padding: str = "") -> httpx.Response:
        """Publish one more event. What is acknowledged is noted."""
        number = len(self.published)
        answer = self.client.post("/events", json={"n": number, "padding": padding})
        if answer.status_code == 202:
            self.published.append(number)
        return answer

    def publish_until_rejected(self) -> None:
        for _ in range(_ENOUGH):
            answer = self.publish(PADDING)
            if answer.status_code != 202:
                check_rejection(answer)
                return
        raise AssertionError("everything was taken")

    def subscribe_until_rejected(self) -> None:
        """The same with subscriptions that no event matches."""
        for number in range(_ENOUGH):
            draft = {"where": f"text = '{PADDING}'", "id": f"long-{number}"}
            answer = self.client.post("/subscriptions", json=draft)
            if answer.status_code != 201:
                check_rejection(answer)
                return
            self.others.add(draft["id"])
        raise AssertionError("everything was taken")

    def check_trouble(self) -> None:
        """No change is acknowledged, and everything that only reads is answered."""
        client, one = self.client, self.taken["s1"]
        path, headers = f"/subscriptions/{one['id']}", ticket_of(one)
        for answer in (
            self.publish(PADDING),
            client.post("/subscriptions", json={"where": "n = 1", "id": "new", "labels": {"padding": "x" * 4_000}}),
            client.delete(path, headers=headers),
            client.post(f"{path}/renew", json={"valid_for": 100}, headers=headers),
            client.put(path, json={"where": "n = -1"}, headers=headers),
        ):
            check_rejection(answer)
        self.check()
        self.check_unready()
        assert client.get(path, headers=headers).json()["where"] == "n >= 10"
        assert client.post("/backtest", json={"where": "n >= 0"}).json()["matched"] == len(self.published)
        assert client.post("/check", json={"where": "n = 1"}).json()["ok"]

    def check_unready(self) -> None:
        """Who asks whether it can accept is told that it cannot, and who counts gets his counts."""
        client = self.client
        wait_until(lambda: client.get("/readyz").status_code == 503)
        answer = client.get("/readyz").json()
        assert answer["status"] == "unavailable"
        assert answer["detail"]
        metrics = client.get("/metrics")
        assert metrics.status_code == 200
        assert "harken_ready 0.0" in metrics.text
        assert "harken_events_total" in metrics.text
        assert client.get("/healthz").status_code == 200

    def check(self) -> None:
        """The index has the subscriptions that the store has, and the journal what was acknowledged."""
        listed = {each["id"] for each in self.client.get("/subscriptions?limit=1000").json()["subscriptions"]}
        assert listed == {"all", *self.taken, *self.others}
        assert matches(self.client, {"text": PADDING}) == [self.others]
        for number in (0, 15, 39):
            (found,) = matches(self.client, {"n": number})
            assert found == {"all", *(f"s{n}" for n in range(4) if f"s{n}" in self.taken and number >= 10 * n)}
        assert [each["event"]["n"] for each in notifications(self.client, self.all)] == self.published

    def check_recovery(self) -> None:
        """Everything works again, without a restart."""
        wait_until(lambda: self.client.get("/readyz").status_code == 200)
        assert "harken_ready 1.0" in self.client.get("/metrics").text
        for _ in range(3):
            assert self.publish(PADDING).status_code == 202
        self.taken["s9"] = subscribe(self.client, "n >= 90", "s9")
        gone = self.taken.pop("s2")
        assert self.client.delete("/subscriptions/s2", headers=ticket_of(gone)).status_code == 204
        self.check()
        self.server.kill()
        self.server.start()
        self.check()


def check_rejection(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    problem: dict[str, Any] = answer.json()
    assert problem["type"] == "urn:harken:store-unavailable-error"


@contextmanager
def troubled(folder: Path, *, store: str | None = None, snapshots: Path | None = None) -> Iterator[Trouble]:
    server = ServerProcess(folder, store=store)
    server.snapshots = snapshots or server.snapshots
    with ending(server):
        server.start()
        with server.client() as client:
            yield Trouble(server, client)


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_500_000))
    store = str(small_disk / "harken.db")
    with troubled(tmp_path, store=store, snapshots=small_disk / "snapshots") as trouble:
        with Listener(lambda: trouble.server.url, [trouble.all]) as listener:
            trouble.publish_until_rejected()
            assert len(trouble.published) > 5
            trouble.check()
            trouble.subscribe_until_rejected()
            trouble.publish_until_rejected()
            trouble.check()
            trouble.check_unready()
            ballast.unlink()
            assert trouble.publish(PADDING).status_code == 202
            wait_until(lambda: len(listener.told) == len(trouble.published))
        assert [each["event"]["n"] for each in listener.told] == trouble.published
        trouble.check_recovery()


@pytest.mark.slow
def test_files_that_may_not_grow(tmp_path: Path) -> None:
    with troubled(tmp_path) as trouble:
        process = trouble.server.process.pid
        trouble.publish()
        before = resource.prlimit(process, resource.RLIMIT_FSIZE)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (0, before[1]))
        for _ in range(2):
            trouble.check_trouble()
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)
        trouble.check_recovery()


@pytest.mark.slow
def test_a_store_that_is_read_only_at_the_start_is_told(small_disk: Path, tmp_path: Path) -> None:
    """A file system cannot be made read-only while somebody writes to its files, so that it is so from the start."""
    server = ServerProcess(tmp_path, store=str(small_disk / "harken.db"))
    with ending(server):
        server.start()
        with server.client() as client:
            taken = subscribe(client, "n >= 0")
            publish(client, {"n": 1})
        server.stop()
        mount(small_disk, "-o", "remount,ro")
        server.start(until_ready=False)
        assert server.process.wait(60) not in (0, 143)
        assert "harken.db" in server.log()
        assert "Traceback" not in server.log()
        mount(small_disk, "-o", "remount,rw")
        server.start()
        with server.client() as client:
            publish(client, {"n": 2})
            assert [each["event"]["n"] for each in notifications(client, taken)] == [1, 2]


@pytest.mark.slow
def test_a_database_that_is_read_only_for_a_while(tmp_path: Path, postgres: Postgres) -> None:
    with troubled(tmp_path, store=database_url(postgres)) as trouble:
        trouble.publish()
        postgres.query(f"ALTER DATABASE {postgres.database} SET default_transaction_read_only = on")
        try:
            cut_off(postgres)
            for _ in range(2):
                trouble.check_trouble()
        finally:
            reset = f"ALTER DATABASE {postgres.database} RESET default_transaction_read_only"
            postgres.query(f"BEGIN READ WRITE; {reset}; COMMIT")
        trouble.check_recovery()


@pytest.mark.slow
def test_a_database_that_cuts_its_connections(tmp_path: Path, postgres: Postgres) -> None:
    with troubled(tmp_path, store=database_url(postgres)) as trouble:
        with Listener(lambda: trouble.server.url, [trouble.all]) as listener:
            for _ in range(3):
                cut_off(postgres)
                assert trouble.publish().status_code == 202, "nothing had been sent, so it is tried again"
                trouble.check()
            wait_until(lambda: len(listener.told) == len(trouble.published))
        trouble.check_recovery()


def test_a_database_that_is_stopped(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    with ending(server):
        with running_postgres() as postgres:
            server.store = database_url(postgres)
            server.start()
            with server.client() as client:
                publish(client, {"n": 1})
        with server.client() as client:
            check_rejection(client.post("/events", json={"n": 2}))
            for _ in range(3):
                answer = client.get("/readyz")
                assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
            metrics = client.get("/metrics")
            assert metrics.status_code == 200
            assert "harken_ready 0.0" in metrics.text
            assert "harken_events_total 1.0" in metrics.text
            assert "harken_journal_bytes" not in metrics.text, "only the store knows"
            check_rejection(client.get("/stats"))


def test_a_database_that_is_away_for_a_while(tmp_path: Path, postgres: Postgres) -> None:
    with troubled(tmp_path, store=database_url(postgres)) as trouble:
        trouble.publish()
        postgres.query("CREATE DATABASE elsewhere")
        away = replace(postgres, database="elsewhere")
        try:
            away.query(f"ALTER DATABASE {postgres.database} ALLOW_CONNECTIONS false")
            cut_off(away)
            check_rejection(trouble.publish())
            trouble.check_unready()
        finally:
            away.query(f"ALTER DATABASE {postgres.database} ALLOW_CONNECTIONS true")
            postgres.query("DROP DATABASE elsewhere")
        assert trouble.publish().status_code == 202
        trouble.check_recovery()


def cut_off(postgres: Postgres) -> None:
    """End every other connection."""
    own = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
    postgres.query(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {own}")
