"""Settings as the command line has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harken.errors import ConfigError, SourceError
from harken.server.configuring import describe_settings, secrets_keys, settings_of
from harken.server.settings import ServerSettings


def test_numbers_and_rows_of_numbers_are_set() -> None:
    given = ["max_streams=1,000", "max_page = 1_0", "stream_timeout=2.5", "webhook_delays=0.1,0.2,4"]
    found = settings_of(given, store="a.db", webhook_networks=["10.0.0.0/8"])
    assert (found.max_streams, found.max_page, found.stream_timeout) == (1_000, 10, 2.5)
    assert found.webhook_delays == (0.1, 0.2, 4.0)
    assert (found.store, [str(each) for each in found.webhook_networks]) == ("a.db", ["10.0.0.0/8"])
    assert settings_of([]) == ServerSettings()


def test_keys_for_secrets_come_from_a_file_or_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("one\n two,three\n")
    environment = {"HARKEN_SECRETS_KEY": "four, five"}
    assert secrets_keys(str(path), environment) == ("one", "two", "three")
    assert secrets_keys(None, environment) == ("four", "five")
    assert secrets_keys(None, {}) == secrets_keys(None, {"HARKEN_SECRETS_KEY": ""}) == ()
    assert "hush" not in repr(settings_of([], secrets_keys=("hush",)))
    path.write_text(" \n")
    with pytest.raises(ConfigError, match="no key in"):
        secrets_keys(str(path), environment)
    path.write_bytes(b"\xff")
    with pytest.raises(SourceError, match="it is not text"):
        secrets_keys(str(path), environment)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("max_streams", "sets nothing"),
        ("max_stream=1", "no setting `max_stream`"),
        ("store=1", "no setting `store`"),
        ("max_streams=many", "must be a number, not 'many'"),
        ("max_streams=1.5", "must be a number, not '1.5'"),
        ("ping_period=-1", "not negative"),
        ("ping_period=nan", "not negative"),
        ("webhook_delays=", "must be a number, not ''"),
        ("webhook_delays=1,,2", "must be a number, not ''"),
        ("webhook_delays=1,inf", "must be finite"),
    ],
)
def test_what_cannot_be_set_is_told(given: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_of([given])


def test_a_network_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match="not a network"):
        settings_of([], webhook_networks=["10.0.0.1/8"])


def test_the_description_can_be_set_as_it_is() -> None:
    given = [f"{name}={value}" for name, value in (line.split() for line in describe_settings().splitlines())]
    assert "webhook_delays=5,30,120,600,1800,3600,7200,18000,36000,50400,72000,86400" in given
    assert settings_of(given) == ServerSettings()
