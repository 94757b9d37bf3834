"""Idle connections: how long the server keeps one, and what a client of ours does once one is closed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import httpx
import pytest

from harken.client import Client
from harken.server.settings import Settings
from unit.server.serving import Server, new_name, running_server, settings

pytestmark = pytest.mark.together
KEPT_SECONDS = 1


@pytest.fixture(scope="module")
def hasty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that closes idle connections sooner than its clients do."""
    with running_server(tmp_path_factory.mktemp("hasty"), *settings(keep_alive=KEPT_SECONDS)) as found:
        yield found


def test_clients_close_idle_connections_before_the_server_does() -> None:
    others = 60.0  # what proxies and pools of connections keep them for, at most
    httpx_own = httpx.Limits().keepalive_expiry
    assert httpx_own is not None
    assert Settings().keep_alive > max(others, httpx_own)


def test_an_idle_connection_is_kept_for_as_long_as_is_set(hasty_server: Server) -> None:
    with closing(HTTPConnection(urlsplit(hasty_server.url).netloc, timeout=20)) as connection:
        connection.connect()
        first = connection.sock
        for pause in (0.0, KEPT_SECONDS / 2, KEPT_SECONDS / 2):  # each request begins the time anew
            time.sleep(pause)
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b'{"status":"alive"}'
        began = time.monotonic()
        assert connection.sock is first
        assert first.recv(1) == b""
        assert time.monotonic() - began > KEPT_SECONDS * 0.9


def test_our_client_goes_on_after_the_server_closed_its_connection(hasty_server: Server) -> None:
    with Client(hasty_server.url) as client:
        id, topic = new_name(), new_name()
        client.subscribe(f"topic = '{topic}'", id=id)
        time.sleep(KEPT_SECONDS * 1.5)
        client.publish({"topic": topic})
        time.sleep(KEPT_SECONDS * 1.5)
        client.subscribe("topic = 'another'")  # without an id, so that it is never sent twice
        time.sleep(KEPT_SECONDS * 1.5)
        assert [each.event for each in client.notifications(id).notifications] == [{"topic": topic}]
