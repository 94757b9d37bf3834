"""Settings as the command line has them."""

from __future__ import annotations

import pytest

from harken.errors import ConfigError
from harken.server.configuring import describe_settings, settings_of
from harken.server.settings import Settings


def test_numbers_and_rows_of_numbers_are_set() -> None:
    given = ["max_streams=1,000", "max_page = 1_0", "stream_timeout=2.5", "webhook_delays=0.1,0.2,4"]
    found = settings_of(given, store="a.db", webhook_networks=["10.0.0.0/8"])
    assert (found.max_streams, found.max_page, found.stream_timeout) == (1_000, 10, 2.5)
    assert found.webhook_delays == (0.1, 0.2, 4.0)
    assert (found.store, [str(each) for each in found.webhook_networks]) == ("a.db", ["10.0.0.0/8"])
    assert settings_of([]) == Settings()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("max_streams", "sets nothing"),
        ("max_stream=1", "no setting `max_stream`"),
        ("store=1", "no setting `store`"),
        ("max_streams=many", "is a number, not 'many'"),
        ("max_streams=1.5", "is a number, not '1.5'"),
        ("ping_period=-1", "not negative"),
        ("ping_period=nan", "not negative"),
        ("webhook_delays=", "is a number, not ''"),
        ("webhook_delays=1,,2", "is a number, not ''"),
        ("webhook_delays=1,inf", "not infinite"),
    ],
)
def test_what_cannot_be_set_is_told(given: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_of([given])


def test_a_network_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match="no network"):
        settings_of([], webhook_networks=["10.0.0.1/8"])


def test_the_description_can_be_set_as_it_is() -> None:
    given = [f"{name}={value}" for name, value in (line.split() for line in describe_settings().splitlines())]
    assert "webhook_delays=5,30,120,600,1800,3600,7200,18000,36000,50400,72000,86400" in given
    assert settings_of(given) == Settings()
