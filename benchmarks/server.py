"""The match server over HTTP: publishing, streaming, subscribing and starting, with a million subscriptions.

A server process and this script, which makes the load, share the machine's cores. Two servers run, each with a SQLite
store of its own: one has the subscriptions of the workload stock, the other none. They take turns:

- single events, 64 connections: `POST /events` beside `POST /bench/journal` of the same server, which passes through
  the same threads and stores the body, but neither decodes nor matches it;
- batches of 1,000 events as JSON lines, 4 connections: the server with subscriptions beside the one without;
- from `POST /events` to the frame of `GET /stream`, at a quarter of the rate of single events;
- a subscription: from the request to the answer, after which it is on disk and matches;
- a restart: from the start of the process to 200 of `/readyz`.

Answers are checked: every request has to be 2xx, and the store has to have as many events as were published and as many
notifications as an engine without a server finds. With --save the result goes to benchmarks/results/server.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

from harken import Engine
from harken_lab.bench.http_load import Load, request_bytes, run_load
from harken_lab.harness.environment import environment
from harken_lab.harness.result_files import to_json
from harken_lab.workloads import generate

RESULTS = Path(__file__).parent / "results" / "server.json"
CONNECTIONS = 64
BATCH = 1_000
BATCH_CONNECTIONS = 4
NDJSON = "application/x-ndjson"
PORTS = 18_431, 18_432
START_SECONDS = 120


class Served:
    """A server process on a store."""

    def __init__(self, port: int, store: Path) -> None:
        self.port = port
        self.store = store
        self.url = f"http://127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start the server. Returns the seconds until it is ready."""
        began = time.perf_counter()
        command = [sys.executable, "-m", "harken_lab.bench.journal_server", str(self.port), str(self.store)]
        self._process = subprocess.Popen(command)
        while time.perf_counter() < began + START_SECONDS:
            try:
                if httpx.get(f"{self.url}/readyz").status_code == 200:
                    return time.perf_counter() - began
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise RuntimeError("the server does not start")

    def stop(self, *, kill: bool = False) -> None:
        assert self._process is not None
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(60)

    def stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = httpx.get(f"{self.url}/stats", timeout=60).json()
        return stats

    def load(
        self, path: str, bodies: list[bytes], kind: str, seconds: float, connections: int, pace: float | None = None
    ) -> Load:
        requests = [request_bytes(path, body, kind, self.port) for body in bodies]
        load = run_load(self.port, requests, seconds, connections, pace)
        assert not load.failures, load.failures[:3]
        assert load.latencies
        return load


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Served, Served]]:
    full, empty = (Served(port, folder / f"{name}.db") for port, name in zip(PORTS, ("full", "empty"), strict=True))
    full.start()
    empty.start()
    try:
        yield full, empty
    finally:
        full.stop()
        empty.stop()


def subscribe_all(server: Served, subscriptions: list[tuple[str, str]]) -> float:
    """Subscribe in bulk. Returns subscriptions a second."""
    began = time.perf_counter()
    for first in range(0, len(subscriptions), 50_000):
        some = subscriptions[first : first + 50_000]
        lines = "\n".join(json.dumps({"id": id, "where": where, "valid_for": 864_000}) for id, where in some)
        answer = httpx.post(f"{server.url}/subscriptions", content=lines, headers={"content-type": NDJSON}, timeout=600)
        reports = answer.text.splitlines()
        assert len(reports) == len(some), answer.text[:500]
        assert all('"ticket"' in report for report in reports)
    return len(subscriptions) / (time.perf_counter() - began)


def subscribe_latencies(server: Served, count: int) -> list[float]:
    """The times of single subscriptions, one after the other, in seconds."""
    times = []
    with httpx.Client(base_url=server.url) as client:
        for number in range(count):
            where = f"symbol = 'NEW{number}' AND price < {number}"
            began = time.perf_counter()
            answer = client.post("/subscriptions", json={"id": f"new{number}", "where": where})
            times.append(time.perf_counter() - began)
            assert answer.status_code == 201, answer.text
        tried = client.post("/events?dry_run=true", json={"symbol": "NEW7", "price": 1}).json()
        assert tried["matches"] == [["new7"]], tried
    return times


def stream_latencies(server: Served, bodies: list[bytes], rate: float, seconds: float) -> list[float]:
    """The times from publishing an event to its frame on a stream, in seconds, while others publish at a rate."""
    client = httpx.Client(base_url=server.url)
    made = client.post("/subscriptions", json={"where": "watched > 0", "valid_for": 600}).json()
    sent: dict[int, float] = {}
    times: list[float] = []
    last: list[int] = []
    ready, over = threading.Event(), threading.Event()

    def listen() -> None:
        headers = {"Harken-Ticket": made["ticket"]}
        parameters = {"subscription": made["id"]}
        with httpx.stream("GET", f"{server.url}/stream", params=parameters, headers=headers, timeout=60) as answer:
            for line in answer.iter_lines():
                if line.startswith(": welcome"):
                    ready.set()
                elif line.startswith("data: "):
                    number = json.loads(line[6:])["event"]["watched"]
                    times.append(time.perf_counter() - sent[number])
                    if last == [number]:
                        return

    def publish() -> None:
        number = 0
        while not over.is_set():
            number += 1
            sent[number] = time.perf_counter()
            assert client.post("/events", json={"watched": number}).status_code == 202
            time.sleep(0.01)
        last.append(number + 1)  # the listener stops at this event
        sent[number + 1] = time.perf_counter()
        client.post("/events", json={"watched": number + 1})

    threads = [threading.Thread(target=listen)]
    threads[0].start()
    assert ready.wait(30)
    threads.append(threading.Thread(target=publish))
    threads[1].start()
    server.load("/events", bodies, "application/json", seconds, CONNECTIONS, pace=rate)
    over.set()
    for thread in threads:
        thread.join(60)
    assert len(times) == len(sent), (len(times), len(sent))
    return times


def expected_matches(subscriptions: list[tuple[str, str]], events: list[dict[str, Any]]) -> list[int]:
    engine = Engine()
    assert engine.subscribe_many(subscriptions).accepted == len(subscriptions)
    return list(engine.match_batch(events).counts)


def spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "least": min(values), "most": max(values)}


def milliseconds(values: list[float]) -> dict[str, float]:
    cuts = quantiles(values, n=100)
    return {"median": median(values) * 1e3, "p99": cuts[98] * 1e3, "count": len(values)}


def measure(size: int, rounds: int, seconds: float) -> dict[str, Any]:
    workload = generate("stock", subscriptions=size, events=20_000, seed=1)
    subscriptions = [(f"s{number}", text) for number, text in enumerate(workload.texts().to_pylist())]
    events = workload.events.to_pylist()
    singles = [json.dumps(each).encode() for each in events]
    batches = [b"\n".join(singles[first : first + BATCH]) for first in range(0, len(singles), BATCH)]
    counts = expected_matches(subscriptions, events)
    result: dict[str, Any] = {"workload": "stock", "subscriptions": size, "rounds": rounds, "seconds": seconds}
    with tempfile.TemporaryDirectory(prefix="harken-server-") as name, serving(Path(name)) as (full, empty):
        result["subscribed_per_second"] = subscribe_all(full, subscriptions)
        print(f"{result['subscribed_per_second']:,.0f} subscriptions a second", flush=True)
        for server in (full, empty):  # kernels, caches, column types
            server.load("/events", singles, "application/json", 1.0, CONNECTIONS)
            server.load("/events", batches, NDJSON, 1.0, BATCH_CONNECTIONS)
        _check_counts(full, batches, counts)
        rates: dict[str, list[float]] = {name: [] for name in ("single", "journal", "batch", "batch_empty")}
        for _ in range(rounds):
            rates["single"].append(full.load("/events", singles, "application/json", seconds, CONNECTIONS).per_second)
            rates["journal"].append(
                full.load("/bench/journal", singles, "application/json", seconds, CONNECTIONS).per_second
            )
            for key, server in (("batch", full), ("batch_empty", empty)):
                load = server.load("/events", batches, NDJSON, seconds, BATCH_CONNECTIONS)
                rates[key].append(load.per_second * BATCH)
            print({key: round(values[-1]) for key, values in rates.items()}, flush=True)
        result["per_second"] = {key: spread(values) for key, values in rates.items()}
        result["matches_per_event"] = sum(counts) / len(counts)
        result["single_of_journal"] = spread([a / b for a, b in zip(rates["single"], rates["journal"], strict=True)])
        result["batch_of_empty"] = spread([a / b for a, b in zip(rates["batch"], rates["batch_empty"], strict=True)])
        pace = median(rates["single"]) / 4
        result["stream_ms"] = {"pace": pace, **milliseconds(stream_latencies(full, singles, pace, max(5.0, seconds)))}
        result["subscribe_ms"] = milliseconds(subscribe_latencies(full, 300))
        result["two_notifications"] = _two_notifications(full, events, sum(counts) / len(counts), seconds)
        full.stop()
        result["restart_seconds"] = full.start()
        full.stop(kill=True)
        result["restart_after_kill_seconds"] = full.start()
        assert full.stats()["subscriptions"] >= size
    return result


def _check_counts(server: Served, batches: list[bytes], counts: list[int]) -> None:
    """Publish every batch once, and check that the store has the expected numbers of events and matches."""
    before = server.stats()
    for body in batches:
        answer = httpx.post(f"{server.url}/events", content=body, headers={"content-type": NDJSON}, timeout=60)
        assert answer.json() == {"accepted": BATCH, "rejected": []}, answer.text[:500]
    after = server.stats()
    assert after["events"] - before["events"] == len(counts)
    assert after["matches"] - before["matches"] == sum(counts), (after["matches"] - before["matches"], sum(counts))


def _two_notifications(
    server: Served, events: list[dict[str, Any]], per_event: float, seconds: float
) -> dict[str, float]:
    """Events a second with at least two notifications an event, which further subscriptions of whole symbols cause."""
    symbols = sorted({each["symbol"] for each in events})
    each_symbol = max(0, ceil(2 - per_event))
    extra = [
        (f"all-{symbol}-{number}", f"symbol = '{symbol}' AND price >= {number - 1}")
        for symbol in symbols
        for number in range(each_symbol)
    ]
    subscribe_all(server, extra)
    lines = [json.dumps(each).encode() for each in events]
    batches = [b"\n".join(lines[first : first + BATCH]) for first in range(0, len(lines), BATCH)]
    before = server.stats()
    load = server.load("/events", batches, NDJSON, max(5.0, seconds), BATCH_CONNECTIONS)
    after = server.stats()
    published = after["events"] - before["events"]
    notified = after["matches"] - before["matches"]
    return {"events_per_second": load.per_second * BATCH, "per_event": notified / published}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each load")
    parser.add_argument("--save", action="store_true", help="replace the committed result")
    arguments = parser.parse_args()
    result = {
        "environment": environment("fastapi", "uvicorn", "uvloop", "httptools"),
        **measure(arguments.subscriptions, arguments.rounds, arguments.seconds),
    }
    text = to_json(result)
    print(text)
    if arguments.save:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
