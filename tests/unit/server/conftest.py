"""What the tests of the server share: one server without limits or keys, on which every test has its own names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unit.server.serving import Server, new_name, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def topic() -> str:
    """What the events of one test have as `topic`, so that others' subscriptions do not match them."""
    return new_name()
