"""The host names that a server answers to, against DNS rebinding.

An attacker's page can make its own name resolve to this machine, and its scripts may then read the server's answers.
Such requests have the attacker's name in the header `Host`, and are rejected.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from harken.errors import ConfigError

ANY = "*"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_PORT = re.compile(r":[0-9]{1,5}")


class HostNames:
    """The names that requests may have in `Host`, with any port: the configured ones, `localhost` and its addresses."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Raises ConfigError for an invalid name."""
        self._takes_any = False
        self._names = set(_LOOPBACK)
        for each in names:
            if each == ANY:
                self._takes_any = True
                continue
            name = host_name(each)
            if name is None:
                hint = "write the name or address that clients' URLs have, as rules.example.org, or '*' for any"
                raise ConfigError(f"{each!r:.80} is not the name of a host", hint=hint)
            self._names.add(name)

    def take(self, hosts: Iterable[str]) -> bool:
        """Whether a request with these `Host` headers is for this server. It must have exactly one."""
        if self._takes_any:
            return True
        names = [host_name(each) for each in hosts]
        return len(names) == 1 and names[0] in self._names


def host_name(text: str) -> str | None:
    """The name or address in a text such as `name:8080` or `[::1]`, in lower case; None if it is invalid."""
    text = text.lower()
    address = _address(text)
    if address is not None:
        return address
    if text.startswith("["):
        inner, _, port = text[1:].partition("]")
        address = _address(inner)
        is_sound = text.count("]") == 1 and (not port or _PORT.fullmatch(port))
        return address if is_sound and address is not None and ":" in address else None
    name, colon, port = text.partition(":")
    if colon and not _PORT.fullmatch(colon + port):
        return None
    name = name.removesuffix(".")
    return _address(name) or (name if _NAME.fullmatch(name) else None)


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this host can be reached from this machine only."""
    address = _address(host.strip("[]"))
    return host.lower() == "localhost" if address is None else ipaddress.ip_address(address).is_loopback


def _address(text: str) -> str | None:
    """An IP address in its usual form; None if the text is not one."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
