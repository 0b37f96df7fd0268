"""URLs of servers: where to connect, and what to ask for."""

import re
from base64 import b64encode
from urllib.parse import quote, unquote, urlsplit

from stint.dataclasses import dataclass, field

PATH_CHARACTERS = "/%:@!$&'()*+,;=~"
"""Characters that stay in a path, besides letters, digits and `_.-` (RFC 3986, section 3.3)."""

HOST = re.compile(r"(?=.{1,253}\.?$)[0-9A-Za-z_](?:[0-9A-Za-z_-]{0,62})(?:\.[0-9A-Za-z_-]{1,63})*\.?")
"""A name of labels of 1 to 63 characters (RFC 1035). Names of private networks may have underscores."""
ADDRESS = re.compile(r"(?=[^:]*:)[0-9A-Fa-f:.]+(?:%[0-9A-Za-z_.-]+)?")
"""An IPv6 address, perhaps with a zone."""


class InvalidURL(ValueError):
    """A URL that cannot be requested. The message has nothing of the URL, which may hold a password."""


@dataclass(frozen=True)
class Origin:
    """The scheme, host and port of a server (RFC 9110, section 4.3.1)."""

    scheme: str
    """`http` or `https`."""
    host: str
    port: int

    @property
    def tls(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Return the value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


@dataclass(frozen=True)
class RequestURL:
    """A URL, split for a request. `authorization` is the header for its user and password, or empty."""

    origin: Origin
    target: str
    authorization: str = field(default="", repr=False)


def parse_url(url: str) -> RequestURL:
    """Split a URL. Characters that are not allowed in its path and query are encoded. Raises InvalidURL."""
    try:
        parts = urlsplit(url)
        host, port = encode_host(parts.hostname or ""), parts.port
    except ValueError:  # UnicodeError is one
        raise InvalidURL("its host or port is invalid") from None
    if parts.scheme not in ("http", "https"):
        raise InvalidURL("it has no scheme http or https")
    if port == 0 or not (HOST.fullmatch(host) or ADDRESS.fullmatch(host)):
        raise InvalidURL("its host or port is invalid")
    target = quote(parts.path or "/", safe=PATH_CHARACTERS)
    if parts.query:
        target += "?" + quote(parts.query, safe=PATH_CHARACTERS + "?")
    origin = Origin(parts.scheme, host, port or (443 if parts.scheme == "https" else 80))
    return RequestURL(origin, target, basic_authorization(parts.username, parts.password))


def encode_host(host: str) -> str:
    """Return a host in ASCII. Raises UnicodeError for one that no name can be."""
    if host.isascii():
        return host
    import idna  # noqa: PLC0415 - few URLs have such a host

    return idna.encode(host, uts46=True).decode()


def basic_authorization(user: str | None, password: str | None) -> str:
    """Return the header for a user and a password of a URL (RFC 7617), or an empty text without both."""
    if not user and not password:
        return ""
    credentials = f"{unquote(user or '')}:{unquote(password or '')}"
    return f"Basic {b64encode(credentials.encode()).decode()}"
