"""Server settings from the command line: NAME=VALUE for every limit and period."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from harken.errors import ConfigError, SourceError, did_you_mean
from harken.server.host_names import HostNames
from harken.server.settings import ServerSettings

SECRETS_KEY = "HARKEN_SECRETS_KEY"
"""The environment variable with the keys that encrypt secrets."""
Default = int | float | tuple[float, ...]
_DEFAULTS: dict[str, Default] = {
    name: default
    for name, default in ((each.name, each.default) for each in fields(ServerSettings))
    if (isinstance(default, (int, float)) and not isinstance(default, bool)) or (isinstance(default, tuple) and default)
}
"""The settings that can be set by name: numbers, and lists of numbers."""


def settings_of(texts: Sequence[str], **named: Any) -> ServerSettings:
    """Settings from keyword arguments, and from texts such as `max_streams=100`. Raises ConfigError."""
    numbers: dict[str, Any] = {}
    for each in texts:
        name, separator, text = each.partition("=")
        name = name.strip()
        if not separator:
            raise ConfigError(f"{each!r:.60} sets nothing", hint="write NAME=VALUE")
        if name not in _DEFAULTS:
            raise ConfigError(f"there is no setting `{name:.60}`", hint=did_you_mean(name, _DEFAULTS))
        default = _DEFAULTS[name]
        if isinstance(default, tuple):
            numbers[name] = tuple(_number(name, part, float) for part in text.split(","))
        else:
            numbers[name] = _number(name, text.replace(",", ""), float if isinstance(default, float) else int)
    try:
        networks = tuple(ipaddress.ip_network(each) for each in named.pop("webhook_networks", ()))
    except ValueError as error:
        raise ConfigError(f"not a network: {error}", hint="write it as 10.0.0.0/8") from None
    HostNames(named.get("allowed_hosts", ()))
    return ServerSettings(**named, **numbers, webhook_networks=networks)


def secrets_keys(path: str | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that encrypt secrets, from the file at `path` or, without one, from the environment.

    Spaces, ends of lines and commas separate them. Raises SourceError if the file cannot be read, and ConfigError if it
    has no key.
    """
    if path is None:
        return _words(environment.get(SECRETS_KEY, ""))
    try:
        keys = _words(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SourceError(f"{path} cannot be read: {reason}") from None
    if not keys:
        raise ConfigError(f"there is no key in {path}", hint="make one with `openssl rand -base64 32`")
    return keys


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def describe_settings() -> str:
    """The settings and their defaults, one a line."""
    width = max(map(len, _DEFAULTS))
    return "\n".join(f"{name:{width}}  {_shown(default)}" for name, default in _DEFAULTS.items())


def _number(name: str, text: str, kind: type[int] | type[float]) -> int | float:
    try:
        value = kind(text.replace("_", ""))
    except ValueError:
        raise ConfigError(f"`{name}` must be a number, not {text!r:.40}") from None
    if not 0 <= value < float("inf"):
        raise ConfigError(f"`{name}` must be finite and not negative")
    return value


def _shown(default: Default) -> str:
    return ",".join(f"{each:g}" for each in default) if isinstance(default, tuple) else f"{default:,}"
