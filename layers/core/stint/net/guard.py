"""The guard that checks every URL from a caller: documents, images, MCP servers, HTTP tools.

A function can reach what a caller cannot: the network of the operator, and on loopback Lambda's Runtime API, which
returns the events of other requests. So a URL is checked where it cannot change any more, in three steps:

  step       checks                                          when
  form       scheme, host, port, no user or password         before the host of a request or redirect is resolved
  address    every address of the host is public or allowed  in the transport, which connects to these addresses
  response   redirect, content coding, size                  while it is read

The second step is inside the transport (`transport.py`): if a name were checked here and resolved again there, its
owner could answer with another address the second time. `check` is for an early error only.

What is refused wins over what is allowed. Loopback has millions of addresses, and `0.0.0.0` leads there, too, so a
refused port on one of them is refused on all.

docs/decisions.md, entry 91, has the reasons.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from ipaddress import ip_network

import httpx

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, UnresolvableURL
from stint.http1.connector import find_addresses
from stint.net.addresses import Address, Network, kind_of, parse_address
from stint.net.transport import CheckedTransport
from stint.net.urls import not_allowed, parse_url

Resolve = Callable[[str, int], Awaitable[list[str]]]
MAX_BYTES = 10_000_000
"""Default limit of a response, in bytes."""
MAX_REDIRECTS = 5
"""Redirects that a fetch follows. Each one is checked as a request of its own."""


async def resolve_host(host: str, port: int) -> list[str]:
    """Resolve a host in a thread. Literal addresses in any notation are returned in their canonical form."""
    return await find_addresses(host, port)


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A fetched document. `content_type` is as the server sent it, or empty."""

    content_type: str
    body: bytes


class Guard:
    """Allows URLs on the public internet, and elsewhere only those that `allowed` covers (see `AllowList`).

    `refused` has each `host:port` that is refused even if it is allowed. AWS_LAMBDA_RUNTIME_API belongs here: Lambda's
    Runtime API listens on loopback and returns other requests' events. A refused port on loopback is refused on every
    loopback address, and so are `refused_ports`. Proxies, cookies and credentials of the environment are not used.
    No response has more than `most_bytes`.
    """

    def __init__(
        self,
        allowed: Iterable[str] = (),
        *,
        refused: Iterable[str] = (),
        refused_ports: Container[int] = (),
        most_bytes: int = MAX_BYTES,
        resolve: Resolve = resolve_host,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed = AllowList(allowed)
        self._refused = [split_port(place) for place in refused if place.strip()]
        self._refused_ports = refused_ports
        self._most_bytes = most_bytes
        self._resolve = resolve
        self._tls = tls

    def transport(self, max_bytes: int = MAX_BYTES, *, inside: bool = False) -> httpx.AsyncBaseTransport:
        """Make a transport for an httpx client. A response of more than `max_bytes` raises InvalidRequest.

        One for `inside` connects to no public address.
        """
        # Their lines contain URLs (at INFO) and headers (at DEBUG), and so callers' keys.
        for library in ("httpx", "httpcore"):
            logging.getLogger(library).setLevel(logging.WARNING)
        if self._tls is None:
            # Once per guard, because reading the certificates takes longer than most requests.
            self._tls = httpx.create_ssl_context(trust_env=False)
        find = self._find_inside if inside else self._find
        return CheckedTransport(find, self._tls, min(max_bytes, self._most_bytes))

    def client(
        self,
        *,
        timeout: float = 30.0,
        max_bytes: int = MAX_BYTES,
        headers: Mapping[str, str] | None = None,
        redirects: int = 0,
        inside: bool = False,
    ) -> httpx.AsyncClient:
        """Make a client, which the caller closes. `timeout` (seconds) applies to each wait, not to the sum.

        One for `inside` connects to no public address.
        Requests and redirects to a refused target raise InvalidRequest (`url_not_allowed`).
        """
        return httpx.AsyncClient(
            transport=self.transport(max_bytes, inside=inside),
            timeout=timeout,
            # Only what `transport.py` decompresses within limits.
            headers={"Accept-Encoding": "gzip", **(headers or {})},
            follow_redirects=redirects > 0,
            max_redirects=redirects,
            trust_env=False,
        )

    async def check(self, url: str) -> None:
        """Check in advance that a URL may be called. The call itself checks again.

        Raises:
            InvalidRequest: `url_not_allowed`.
            UnresolvableURL: the host has no address.
        """
        parsed = parse_url(url)
        await self._find(parsed.host, parsed.port or _default_port(parsed))

    async def is_internal(self, url: str) -> bool:
        """Return whether a URL reaches only addresses that are not public, but allowed. Raises as `check`."""
        parsed = parse_url(url)
        found = await self._find(parsed.host, parsed.port or _default_port(parsed))
        return all(kind_of(address) for address in found)

    async def check_secret_target(self, url: str) -> None:
        """Check that secrets may be sent to a URL: by HTTPS, or inside, to hosts that the operator allows.

        Raises as `check`.
        """
        await self.check(url)
        parsed = parse_url(url)
        if parsed.scheme != "https" and not await self.is_internal(url):
            raise not_allowed(parsed.host, "its scheme is not https")

    async def fetch(self, url: str, *, timeout: float = 20.0, max_bytes: int = MAX_BYTES) -> FetchedDocument:
        """GET a document, following at most 5 redirects. `timeout` is in seconds, for the whole fetch.

        Raises:
            InvalidRequest: `url_not_allowed`, `url_too_large`, or `url_unavailable` with the server's status.
            UnresolvableURL: the host, or that of a redirect, has no address; or a redirect is not a valid URL.
        """
        parsed = parse_url(url)
        try:
            async with (
                asyncio.timeout(timeout),
                self.client(timeout=timeout, max_bytes=max_bytes, redirects=MAX_REDIRECTS) as client,
            ):
                response = await client.get(parsed)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise _unavailable(parsed, f"it did not respond within {timeout:g} s") from error
        except httpx.TooManyRedirects as error:
            raise _unavailable(parsed, f"it redirects more than {MAX_REDIRECTS} times") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unavailable(parsed, f"the connection failed ({type(error).__name__})") from error
        if response.status_code != httpx.codes.OK:
            raise _unavailable(parsed, f"it answered {response.status_code}, not 200")
        return FetchedDocument(response.headers.get("content-type", ""), response.content)

    async def _find(self, host: str, port: int) -> list[Address]:
        """Resolve a host. Every address must be allowed, because the owner of the name chooses their order."""
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise UnresolvableURL(f"The host {host!r} cannot be found; check its spelling") from error
        addresses = [self._check(host, port, text) for text in found]
        if not addresses:
            raise UnresolvableURL(f"The host {host!r} has no address")
        return addresses

    async def _find_inside(self, host: str, port: int) -> list[Address]:
        addresses = await self._find(host, port)
        if not all(kind_of(address) for address in addresses):
            raise not_allowed(host, "it has a public address, and its scheme is not https")
        return addresses

    def _check(self, host: str, port: int, text: str) -> Address:
        try:
            address = parse_address(text)
        except ValueError as error:
            raise not_allowed(host, f"it resolves to {text}, which is not an IP address, or has a zone") from error
        # Before the allow list, so that no entry of it opens the Runtime API.
        if self._is_refused(address, host, port):
            raise not_allowed(host, f"port {port} is reserved by the platform")
        kind = kind_of(address)
        if kind and not self._allowed.admits(Peer(normalise_host(host), port, address)):
            raise not_allowed(host, f"it resolves to {address}, a {kind} address")
        return address

    def _is_refused(self, address: Address, host: str, port: int) -> bool:
        if port in self._refused_ports and kind_of(address) in ("loopback", "unspecified"):
            return True
        for refused_host, refused_port in self._refused:
            if refused_port not in (None, port):
                continue
            if refused_host in (str(address), normalise_host(host)):
                return True
            if _is_local(refused_host) and kind_of(address) in ("loopback", "unspecified"):
                return True
        return False


def _is_local(host: str) -> bool:
    try:
        return kind_of(parse_address(host)) in ("loopback", "unspecified")
    except ValueError:
        return host == "localhost"


def _default_port(url: httpx.URL) -> int:
    return 443 if url.scheme == "https" else 80


def _unavailable(url: httpx.URL, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{url.host!r} could not be read: {reason}", code="url_unavailable")


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
