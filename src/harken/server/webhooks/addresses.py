"""The receiver of a webhook: its URL, parsed strictly, and the IP addresses of its host, each of which is checked.

A subscriber chooses the URL, and the server may reach machines that the subscriber must not (server-side request
forgery). So the name is resolved once, every address is checked, and the connection goes to a checked address.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address

import httpx

from harken.errors import HarkenError
from harken.server.webhooks.networks import Address, Network, may_receive, plain

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host's name and port to addresses. Raises OSError if there are none."""

_LONGEST_URL = 2_048
_LONGEST_NAME = 253
_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_EXAMPLE = "write it like https://example.com/hooks"
_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
# Ports where a request over HTTP could be taken for another protocol: the "bad ports" of the Fetch standard.
_BAD_PORTS = frozenset(
    int(port)
    for port in """
    0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123
    135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995
    1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080
    """.split()
)


class WebhookRejectedError(HarkenError):
    """A webhook's URL is not one that Harken sends to."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """The receiver of a webhook. `path` includes the query; `addresses` are empty if the name is not resolved yet."""

    scheme: str
    host: str
    port: int
    path: str
    addresses: tuple[Address, ...] = ()

    @property
    def authority(self) -> str:
        """The host, with the port unless it is the scheme's own: the value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def url_at(self, address: Address) -> httpx.URL:
        """The URL with an address in place of the name."""
        return httpx.URL(scheme=self.scheme, host=str(address), port=self.port, raw_path=self.path.encode("ascii"))


def check_url(url: str, allow: Sequence[Network] = ()) -> None:
    """Raise WebhookRejectedError for a URL that can never be sent to, without resolving its name.

    A name that resolves to a private address is rejected only when a message is sent.
    """
    receiver = _parsed(url)
    is_local = receiver.host == "localhost" or receiver.host.endswith(".localhost")
    if is_local and not any(may_receive(address, allow) for address in _LOOPBACK):
        raise _not_public(f"`{receiver.host}` is this machine itself")
    _check_literal(receiver, allow)


async def system_addresses(host: str, port: int, pool: Executor | None = None) -> Sequence[str]:
    """Resolve a name with the system's name service, in a thread of the pool or of the event loop's own."""
    return await asyncio.get_running_loop().run_in_executor(pool, _looked_up, host, port)


async def checked_addresses(url: str, allow: Sequence[Network] = (), resolve: Resolve = system_addresses) -> Receiver:
    """The receiver of a URL with its addresses, all of which are allowed. A name is resolved once.

    Raises WebhookRejectedError if the URL is wrong or a single address is neither public nor in a network of `allow`,
    and OSError if the name does not resolve.
    """
    receiver = _parsed(url)
    if receiver.addresses:
        _check_literal(receiver, allow)
        return receiver
    texts = await resolve(receiver.host, receiver.port)
    addresses = tuple(dict.fromkeys(plain(ip_address(text)) for text in texts))
    if not addresses:
        raise socket.gaierror(socket.EAI_NONAME, "no address")
    if not all(may_receive(address, allow) for address in addresses):
        # The message does not reveal the address: the subscriber may be exploring an internal network.
        raise _not_public(f"`{receiver.host}` resolves to an address that is not public")
    return replace(receiver, addresses=addresses)


def _looked_up(host: str, port: int) -> list[str]:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(address[0]) for *_, address in rows]


def _parsed(url: str) -> Receiver:
    """The receiver of a URL. It has an address only if the host of the URL is one."""
    if len(url) > _LONGEST_URL:
        raise WebhookRejectedError(f"a webhook's URL has at most {_LONGEST_URL:,} characters")
    if "\\" in url or not url.isprintable() or any(character.isspace() for character in url):
        raise WebhookRejectedError(
            "a webhook's URL has no spaces, backslashes or invisible characters", hint="percent-encode them"
        )
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise WebhookRejectedError(f"this is not a URL: {error}", hint=_EXAMPLE) from error
    if parsed.scheme not in _PORTS:
        raise WebhookRejectedError("a webhook's URL begins with https:// or http://", hint=_EXAMPLE)
    if "@" in re.split("[/?#]", url.partition("//")[2], maxsplit=1)[0]:
        raise WebhookRejectedError(
            "a webhook's URL has no user name or password", hint="check the signature of the messages instead"
        )
    # `raw_host` is what is sent: lower case, and international names in ASCII.
    host, address = _host(parsed.raw_host.decode("ascii"))
    port = _port(parsed)
    path = parsed.raw_path.decode("ascii")
    return Receiver(parsed.scheme, host, port, path, () if address is None else (plain(address),))


def _host(text: str) -> tuple[str, Address | None]:
    """A host as the header `Host` has it, and its address; None if it is a name."""
    name = text.removesuffix(".")
    labels = name.split(".")
    if ":" in name or _NUMBER.fullmatch(labels[-1]):
        # Some programs read 127.1, 0177.0.0.1 and 2130706433 as addresses, others as names: accept one spelling only.
        try:
            address = ip_address(name)
        except ValueError as error:
            message = f"`{text}` is not a host: an IPv4 address is four decimal numbers"
            raise WebhookRejectedError(message, hint=_EXAMPLE) from error
        return str(address), address
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        message = f"`{text}` is not the name of a host" if text else "a webhook's URL names a host"
        raise WebhookRejectedError(message, hint=_EXAMPLE)
    return name, None


def _port(url: httpx.URL) -> int:
    port = _PORTS[url.scheme] if url.port is None else url.port
    if not 0 < port < 65_536:
        raise WebhookRejectedError(f"{port} is not a port", hint="leave it out, or use one from 1 to 65535")
    if port in _BAD_PORTS:
        raise WebhookRejectedError(f"port {port} belongs to another protocol than HTTP", hint="use another port")
    return port


def _check_literal(receiver: Receiver, allow: Sequence[Network]) -> None:
    if not all(may_receive(address, allow) for address in receiver.addresses):
        raise _not_public(f"`{receiver.host}` is not a public address")


def _not_public(message: str) -> WebhookRejectedError:
    hint = "webhooks go to public addresses; the server's operator can allow further networks"
    return WebhookRejectedError(message, hint=hint)
