"""The names by which a server may be asked.

A page of a stranger can have its own name point at this machine, and its scripts may then read what the server answers
(DNS rebinding). Such a request has that name in its `Host` header, so that it is known and refused.
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
    """The names that are taken: those given, and those that every machine has for itself. Ports do not matter."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Raises ConfigError for what cannot be a name."""
        self._takes_any = False
        self._names = set(_LOOPBACK)
        for each in names:
            if each == ANY:
                self._takes_any = True
                continue
            name = host_name(each)
            if name is None:
                hint = "write the name or address that is in the clients' URLs, as rules.example.org, or '*' for any"
                raise ConfigError(f"{each!r:.80} is not the name of a host", hint=hint)
            self._names.add(name)

    def take(self, hosts: Iterable[str]) -> bool:
        """Whether a request with these `Host` headers is for this server. It has to have one."""
        if self._takes_any:
            return True
        given = [host_name(each) for each in hosts]
        return len(given) == 1 and given[0] in self._names


def host_name(text: str) -> str | None:
    """The name or address in a text such as `name:8080` or `[::1]`, in small letters; None if there is none."""
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
    """Whether only this machine can reach a server that listens there."""
    address = _address(host.strip("[]"))
    return host.lower() == "localhost" if address is None else ipaddress.ip_address(address).is_loopback


def _address(text: str) -> str | None:
    """An address as it is usually written."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
