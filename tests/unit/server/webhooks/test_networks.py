"""Which addresses are public: special networks of IPv4 and IPv6, addresses inside addresses, and what is allowed."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from harken.server.webhooks.networks import Network, may_receive, plain

PUBLIC = """
    1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 172.15.255.255 172.32.0.0 192.0.1.1
    168.63.129.15 198.17.255.255 198.20.0.0 223.255.255.255
    2606:4700:4700::1111 2a00:1450:4001:80b::200e 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::8.8.8.8
""".split()

NOT_PUBLIC = """
    0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.255
    168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.9 192.0.0.192 192.0.2.1
    192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.250 240.0.0.1
    255.255.255.255
    :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
    64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::8.8.8.8 100::1
    2001::1 2001:0:7f00:1::1 2001:10::1 2001:db8::1 2002:7f00:1:: 2002:a00:1::1 2002:808:808::1 3fff::1 4000::1 5f00::1
    2606:4700::5efe:127.0.0.1 2606:4700::200:5efe:10.0.0.1
    fc00::1 fd00:ec2::254 fd12:3456::1 fe80::1 fe80::1%eth0 2606:4700::1%eth0 fec0::1 ff02::1 ff0e::1
""".split()


@pytest.mark.parametrize("text", PUBLIC)
def test_public_address_may_receive(text: str) -> None:
    assert may_receive(ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_other_address_may_not_receive(text: str) -> None:
    assert not may_receive(ip_address(text))


@pytest.mark.parametrize(
    ("text", "network", "expected"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", True),  # public anyway
        ("192.168.1.1", "10.0.0.0/8", False),
        ("::ffff:10.1.2.3", "10.0.0.0/8", True),
        ("64:ff9b::10.1.2.3", "10.0.0.0/8", True),
        ("2002:a01:203::1", "10.0.0.0/8", False),
        ("::1", "::1/128", True),
        ("::1", "127.0.0.0/8", False),
        ("127.0.0.1", "::/0", False),
        ("fd00::1", "fd00::/8", True),
        ("fe80::1%eth0", "fe80::/10", False),
    ],
)
def test_allowed_network_adds_its_own_addresses_only(text: str, network: str, expected: bool) -> None:
    allow: list[Network] = [ip_network(network)]
    assert may_receive(ip_address(text), allow) is expected


def test_plain_address_is_the_one_that_is_connected_to() -> None:
    assert plain(ip_address("::ffff:8.8.4.4")) == ip_address("8.8.4.4")
    assert plain(ip_address("2606:4700::1")) == ip_address("2606:4700::1")
