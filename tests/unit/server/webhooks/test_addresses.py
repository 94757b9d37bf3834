"""Where a webhook goes: which URLs are rejected at once, which by what their host resolves to, and what is resolved."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

import pytest

from harken.errors import HarkenError
from harken.server.webhooks.addresses import (
    Receiver,
    WebhookRejectedError,
    check_url,
    checked_addresses,
    system_addresses,
)
from harken.server.webhooks.networks import Network

PUBLIC = "93.184.215.14"
LOOPBACK: tuple[Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
EVERYTHING: tuple[Network, ...] = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))


class Names:
    """A name service that gives its answers one after the other, the last one for ever, and keeps the questions."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def checked(url: str, names: Names, allow: Sequence[Network] = ()) -> Receiver:
    return asyncio.run(checked_addresses(url, allow, names))


# Spellings of addresses that are not public. No name service is asked: some would take them for addresses.
HIDDEN_ADDRESSES = """
    http://127.0.0.1/ http://127.0.0.1./ https://127.0.0.1:8443/ http://127.1/ http://127.0.1/ http://2130706433/
    http://2130706433./ http://0177.0.0.1/ http://0177.1/ http://017700000001/ http://0x7f.1/ http://0x7f.0.0.1/
    http://0x7f000001/ http://0X7F.0.0.1/ http://127.0.0.0x1/ http://0x/ http://1.2.3.4.5/ http://127.0.0.01/
    http://256.0.0.1/ http://127。0。0。1/ http://127．0．0．1/ http://１２７.0.0.1/ http://%31%32%37.0.0.1/
    http://0/ http://0.0.0.0/ http://10.0.0.8/ http://172.16.5.5/ http://192.168.1.1/ http://100.64.1.1/
    http://169.254.169.254/latest/meta-data/ http://168.63.129.16/ http://224.0.0.1/ http://255.255.255.255/
    http://[::1]/ http://[::]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[0:0:0:0:0:ffff:7f00:1]/
    http://[::127.0.0.1]/ http://[64:ff9b::7f00:1]/ http://[64:ff9b::169.254.169.254]/ http://[2002:7f00:1::]/
    http://[2001:0:7f00:1::]/ http://[fd00:ec2::254]/ http://[fe80::1]/ http://[fe80::1%25eth0]/ http://[fe80::1%eth0]/
    http://[ff02::1]/ http://[fec0::1]/
""".split()


@pytest.mark.parametrize("url", HIDDEN_ADDRESSES)
def test_address_that_is_not_public_is_rejected_in_every_spelling(url: str) -> None:
    names = Names([PUBLIC])
    with pytest.raises(WebhookRejectedError):
        check_url(url)
    with pytest.raises(WebhookRejectedError):
        checked(url, names)
    assert names.asked == []


@pytest.mark.parametrize(
    "url",
    """
    http://127.1/ http://127.0.1/ http://2130706433/ http://0177.0.0.1/ http://0x7f.1/ http://0x7f000001/
    http://127.0.0.01/ http://[::1%25lo]/ http://0/
    """.split(),
)
def test_other_spelling_of_an_address_is_rejected_even_where_the_address_is_allowed(url: str) -> None:
    with pytest.raises(WebhookRejectedError):
        check_url(url, EVERYTHING)


@pytest.mark.parametrize("url", ["http://localhost/", "http://LOCALHOST./", "http://a.localhost:8080/x"])
def test_localhost_is_rejected_when_it_is_registered(url: str) -> None:
    with pytest.raises(WebhookRejectedError, match="this machine"):
        check_url(url)
    check_url(url, LOOPBACK)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com/hook",
        "//example.com/hook",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "unix:///var/run/docker.sock",
        "http:example.com",
        "http:/example.com",
        "http:///hook",
        "http://:80/",
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://@example.com/",
        "http://example.com@127.0.0.1/",
        "http://example.com\\@127.0.0.1/",
        "http://exam ple.com/",
        "http://example.com/a b",
        " http://example.com/",
        "http://example.com/\r\nHost: x",
        "http://exa\tmple.com/",
        "http://example.com/\u200b",
        "http://exa\u00admple.com/",
        "http://example..com/",
        "http://example.com../",
        "http://.example.com/",
        "http://./",
        "http://-a.example/",
        "http://a-.example/",
        "http://exa%6dple.com/",
        "http://exa!mple.com/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 127}example/",
        "http://☃.example/",
        "http://example.com:0/",
        "http://example.com:-1/",
        "http://example.com:65536/",
        "http://example.com:99999999999/",
        "http://example.com:http/",
        "http://example.com:25/",
        "http://example.com:22/",
        "http://[127.0.0.1]/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[v1.x]/",
        "http://example.com/" + "a" * 2_048,
    ],
)
def test_wrong_url_is_rejected(url: str) -> None:
    names = Names([PUBLIC])
    with pytest.raises(WebhookRejectedError) as rejected:
        check_url(url, EVERYTHING)
    assert isinstance(rejected.value, HarkenError)
    with pytest.raises(WebhookRejectedError):
        checked(url, names, EVERYTHING)
    assert names.asked == []


def test_rejection_says_what_to_do() -> None:
    with pytest.raises(WebhookRejectedError) as rejected:
        check_url("http://10.0.0.8/hook?key=hush")
    assert rejected.value.message == "`10.0.0.8` is not a public address"
    assert rejected.value.hint is not None
    assert "hush" not in str(rejected.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com", ("https", "example.com", 443, "/")),
        ("HTTP://Example.COM./a?b=c#d", ("http", "example.com", 80, "/a?b=c")),
        ("http://example.com:8080/a/../b?", ("http", "example.com", 8080, "/b?")),
        ("https://münchen.example/größe", ("https", "xn--mnchen-3ya.example", 443, "/gr%C3%B6%C3%9Fe")),
        ("https://xn--a.example/", ("https", "xn--a.example", 443, "/")),
        ("http://a_b.example/%2F@", ("http", "a_b.example", 80, "/%2F@")),
        ("http://1and1.example/", ("http", "1and1.example", 80, "/")),
        ("http://db/", ("http", "db", 80, "/")),
    ],
)
def test_url_is_parsed(url: str, expected: tuple[str, str, int, str]) -> None:
    check_url(url)
    names = Names([PUBLIC])
    receiver = checked(url, names)
    assert (receiver.scheme, receiver.host, receiver.port, receiver.path) == expected
    assert receiver.addresses == (ip_address(PUBLIC),)
    assert names.asked == [(receiver.host, receiver.port)]


@pytest.mark.parametrize(
    ("url", "host", "address", "authority"),
    [
        ("http://8.8.8.8/", "8.8.8.8", "8.8.8.8", "8.8.8.8"),
        ("http://8.8.8.8.:81/", "8.8.8.8", "8.8.8.8", "8.8.8.8:81"),
        ("http://[2606:4700:0::1]/", "2606:4700::1", "2606:4700::1", "[2606:4700::1]"),
        ("https://[2606:4700::1]:80/", "2606:4700::1", "2606:4700::1", "[2606:4700::1]:80"),
        ("http://[::ffff:8.8.8.8]/", "::ffff:808:808", "8.8.8.8", "[::ffff:808:808]"),
    ],
)
def test_public_address_in_the_url_is_not_resolved(url: str, host: str, address: str, authority: str) -> None:
    check_url(url)
    names = Names(["127.0.0.1"])
    receiver = checked(url, names)
    assert (receiver.host, receiver.addresses) == (host, (ip_address(address),))
    assert receiver.authority == authority
    assert names.asked == []


def test_url_at_an_address_keeps_everything_but_the_name() -> None:
    receiver = checked("https://example.com:8443/a%20b?c=%2F", Names([PUBLIC]))
    assert str(receiver.url_at(ip_address("2606:4700::1"))) == "https://[2606:4700::1]:8443/a%20b?c=%2F"
    assert receiver.authority == "example.com:8443"


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["10.0.0.1"],
        [PUBLIC, "10.0.0.1"],
        ["10.0.0.1", PUBLIC],
        [PUBLIC, "2606:4700::1", "::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::a00:1"],
        ["fe80::1%eth0"],
        ["0.0.0.0"],
    ],
)
def test_name_is_rejected_if_any_of_its_addresses_is_not_public(addresses: list[str]) -> None:
    with pytest.raises(WebhookRejectedError) as rejected:
        checked("https://hooks.example/", Names(addresses))
    assert not any(address in str(rejected.value) for address in addresses)  # nobody explores an inner network by it


def test_name_in_an_allowed_network_is_taken() -> None:
    names = Names(["10.0.0.1", PUBLIC, "10.0.0.1", "::ffff:10.0.0.1"])
    receiver = checked("https://hooks.example/", names, [IPv4Network("10.0.0.0/24")])
    assert receiver.addresses == (ip_address("10.0.0.1"), ip_address(PUBLIC))


def test_name_without_addresses_does_not_resolve() -> None:
    with pytest.raises(socket.gaierror):
        checked("https://hooks.example/", Names([]))


def test_system_resolves_localhost_to_what_is_rejected() -> None:
    assert "127.0.0.1" in asyncio.run(system_addresses("localhost", 80))
    with pytest.raises(WebhookRejectedError, match="not public"):
        asyncio.run(checked_addresses("http://localhost:8080/"))
    receiver = asyncio.run(checked_addresses("http://localhost:8080/", LOOPBACK))
    assert ip_address("127.0.0.1") in receiver.addresses
