"""By which names a server may be asked: a page whose name was made to point at this machine gets nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from harken.errors import ConfigError
from harken.server.host_names import HostNames, is_loopback
from unit.server.serving import Server, problem, running_server

pytestmark = pytest.mark.together


@pytest.fixture(scope="module")
def named_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    names = "--allowed-host", "Rules.Example", "--allowed-host", "[2001:db8::1]:8080"
    with running_server(tmp_path_factory.mktemp("named"), *names) as server:
        yield server


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("open"), "--allowed-host", "*") as server:
        yield server


def asked(server: Server, host: str, method: str = "GET", path: str = "/stats") -> httpx.Response:
    return server.http.request(method, path, headers={"Host": host})


def test_a_name_that_points_here_by_chance_gets_nothing(server: Server, topic: str) -> None:
    taken = server.subscribe(f"topic = '{topic}'")
    for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0"):
        for method, path in (("GET", "/"), ("GET", "/stats"), ("GET", "/stream"), ("DELETE", taken.path)):
            found = problem(asked(server, host, method, path), 421)
            assert "--allowed-host" in found["hint"]
        same_origin = {"Host": host, "Origin": f"http://{host}"}
        problem(server.http.post("/events", json={"topic": topic}, headers=same_origin), 421)
    assert server.notified(taken) == []


def test_names_of_this_machine_are_taken(server: Server) -> None:
    for host in ("localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080"):
        assert asked(server, host).status_code == 200, host


@pytest.mark.parametrize("host", ["", ":8080", "[::1", "[::1]x", "[localhost]", "a b", "localhost:http", "é"])
def test_what_is_no_name(server: Server, host: str) -> None:
    problem(server.http.get("/stats", headers=[(b"Host", host.encode())]), 421)


def test_a_request_has_one_name() -> None:
    names = HostNames()
    assert names.take(["localhost"])
    assert not names.take(["localhost", "evil.example"])
    assert not names.take([])
    assert HostNames(["*"]).take([])


def test_probes_are_asked_by_address(server: Server) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert asked(server, "10.0.0.7:8080", path=path).status_code == 200


def test_names_that_are_given(named_server: Server, open_server: Server) -> None:
    for host in ("rules.example", "RULES.example:443", "[2001:DB8:0::1]:1", "localhost", "127.0.0.1"):
        assert asked(named_server, host).status_code == 200, host
    problem(asked(named_server, "www.rules.example"), 421)
    assert asked(open_server, "anything.example").status_code == 200


@pytest.mark.parametrize("name", ["", "http://here", "here/there", "a b", "*.here", "[::1"])
def test_names_that_cannot_be_given(name: str) -> None:
    with pytest.raises(ConfigError):
        HostNames([name])


def test_addresses_that_only_this_machine_reaches() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.9.1", "::1", "LocalHost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))


def test_a_server_that_others_reach_needs_a_name(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from harken.cli import app

    words = ["serve", "--host", "0.0.0.0", "--port", "0", "--store", str(tmp_path / "harken.db")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    assert "--allowed-host" in result.output
    assert not (tmp_path / "harken.db").exists()


def test_names_come_from_the_environment_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARKEN_ALLOWED_HOSTS", "one.example two.example")
    with running_server(tmp_path) as server:
        for host, status in (("one.example", 200), ("two.example:80", 200), ("three.example", 421)):
            assert asked(server, host).status_code == status


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "docs/operations.md"])
def test_servers_in_containers_are_told_their_names(name: str) -> None:
    """They listen on all addresses, and would not start otherwise."""
    text = (Path(__file__).parents[3] / name).read_text("utf-8")
    assert "0.0.0.0" in text
    assert "HARKEN_ALLOWED_HOSTS" in text
