"""Classification of IP addresses as public or special."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# The IANA special-purpose address registries (RFC 6890 and its updates) and the multicast blocks. The lists are our own
# because those of the ipaddress module differ between Python's versions.
_SPECIAL = {
    "unspecified": ("0.0.0.0/8", "::/128"),
    "loopback": ("127.0.0.0/8", "::1/128"),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "shared (carrier-grade NAT)": ("100.64.0.0/10",),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
    "documentation or benchmarking": (
        "192.0.2.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "2001:db8::/32",
        "3fff::/20",
    ),
    "reserved": ("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4", "2001::/23"),
    "IPv4 in IPv6": ("::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16"),
}
_NETWORKS: list[tuple[Network, str]] = sorted(
    ((ip_network(network), kind) for kind, networks in _SPECIAL.items() for network in networks),
    key=lambda entry: -entry[0].prefixlen,
)
# The IPv6 addresses that are allocated so far (RFC 4291, section 2.4). All others are not public.
_GLOBAL = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")


def parse_address(text: str) -> Address:
    """Parse an address. An IPv4-mapped or NAT64 address becomes its IPv4 address (RFC 4291, RFC 6052).

    Raises:
        ValueError: it is not an address, or has a zone.
    """
    if "%" in text:
        raise ValueError(f"{text!r} has a zone")
    address = ip_address(text)
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def kind_of(address: Address) -> str | None:
    """Return the kind of a special address ("loopback", "private", ...); None if it is public."""
    for network, kind in _NETWORKS:
        if address.version == network.version and address in network:
            return kind
    return "reserved" if isinstance(address, IPv6Address) and address not in _GLOBAL else None
