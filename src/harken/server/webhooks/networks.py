"""The IP addresses that webhooks may be sent to: public ones, and those in networks that the operator allows."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# `is_global` differs between releases of Python: this list makes them agree.
_NOT_PUBLIC: tuple[Network, ...] = (
    IPv4Network("0.0.0.0/8"),  # this host
    IPv4Network("10.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),  # carrier-grade NAT; 100.100.100.200 is a cloud's metadata
    IPv4Network("127.0.0.0/8"),
    IPv4Network("168.63.129.16/32"),  # a cloud's host agent, although its number is a public one
    IPv4Network("169.254.0.0/16"),  # link-local; 169.254.169.254 is a cloud's metadata
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.0.0.0/24"),  # protocol assignments; 192.0.0.192 is a cloud's metadata
    IPv4Network("192.0.2.0/24"),  # documentation
    IPv4Network("192.88.99.0/24"),  # 6to4 relays, which are retired
    IPv4Network("192.168.0.0/16"),
    IPv4Network("198.18.0.0/15"),  # benchmarks
    IPv4Network("198.51.100.0/24"),  # documentation
    IPv4Network("203.0.113.0/24"),  # documentation
    IPv4Network("224.0.0.0/4"),  # multicast
    IPv4Network("240.0.0.0/4"),  # reserved, and broadcast
    IPv6Network("2001::/23"),  # protocol assignments, Teredo among them
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("2002::/16"),  # 6to4 wraps an IPv4 address of any kind, and is retired
    IPv6Network("3fff::/20"),  # documentation
)
_PUBLIC_IPV6 = IPv6Network("2000::/3")  # all global unicast that has been allocated
_NAT64 = IPv6Network("64:ff9b::/96")


def plain(address: Address) -> Address:
    """The IPv4 address in an IPv4-mapped one (::ffff:1.2.3.4), to which connections to it go; others unchanged."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def may_receive(address: Address, allow: Sequence[Network] = ()) -> bool:
    """Whether webhooks may be sent to an address: it is public, or in a network of `allow`."""
    address = plain(address)
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False  # only link-local addresses have a scope
    if any(address in network for network in allow):
        return True
    if address in _NAT64:  # a gateway translates it to the IPv4 address in its last 32 bits
        return may_receive(IPv4Address(int(address) & 0xFFFF_FFFF), allow)
    return _is_public(address)


def _is_public(address: Address) -> bool:
    if any(address in network for network in _NOT_PUBLIC):
        return False
    if isinstance(address, IPv6Address) and (address not in _PUBLIC_IPV6 or _is_isatap(address)):
        return False
    return address.is_global and not address.is_multicast


def _is_isatap(address: IPv6Address) -> bool:
    """Whether an address tunnels to the IPv4 address in its last 32 bits (RFC 5214)."""
    return (int(address) >> 32) & 0xFFFF_FFFF in (0x0000_5EFE, 0x0200_5EFE)
