"""The operator's exceptions to the URL guard."""

from collections.abc import Iterable
from ipaddress import ip_network

from stint.dataclasses import dataclass
from stint.net.addresses import Address, Network, parse_address


@dataclass(frozen=True, slots=True)
class Peer:
    """The target of a connection: the requested name, the port, and one address of the name."""

    host: str
    port: int
    address: Address


class AllowList:
    """Hosts and networks that URLs may reach although they are not public.

    An entry is a host name or address (`tools.internal`, `10.0.0.7`, `[::1]`), the same with a port
    (`127.0.0.1:9000`), or a network (`10.1.0.0/16`). A name covers all its addresses.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._networks: list[Network] = []
        self._hosts: set[tuple[str, int | None]] = set()
        for entry in filter(None, map(str.strip, entries)):
            if "/" in entry:
                self._networks.append(ip_network(entry))
            else:
                self._hosts.add(split_port(entry))

    def admits(self, peer: Peer) -> bool:
        """Return whether an entry covers the peer."""
        # The name as it was requested and the address it has: an entry may be either.
        named = ((host, port) for host in (peer.host, str(peer.address)) for port in (peer.port, None))
        return any(entry in self._hosts for entry in named) or any(
            peer.address.version == network.version and peer.address in network for network in self._networks
        )


def split_port(entry: str) -> tuple[str, int | None]:
    """Split `host`, `host:port`, `[address]` or `[address]:port`. Raises ValueError if the port is not a number."""
    if entry.count(":") > 1 and not entry.startswith("["):
        return normalise_host(entry), None
    host, colon, port = entry.rpartition(":")
    if not colon or entry.endswith("]"):
        return normalise_host(entry), None
    return normalise_host(host), int(port)


def normalise_host(host: str) -> str:
    """Return a host in canonical form: lower case, no brackets, no trailing dot, addresses in their shortest form."""
    bare = host.strip("[]").rstrip(".").lower()
    try:
        return str(parse_address(bare))
    except ValueError:
        return bare
