"""URLs of servers: where to connect, and what to ask for."""

from base64 import b64encode
from urllib.parse import quote, unquote, urlsplit

from stint.dataclasses import dataclass, field

PATH_CHARACTERS = "/%:@!$&'()*+,;=~"
"""Characters that stay in a path, besides letters, digits and `_.-` (RFC 3986, section 3.3)."""


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
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode()
    except ValueError:  # UnicodeError is one
        raise InvalidURL("its host or port is invalid") from None
    if parts.scheme not in ("http", "https"):
        raise InvalidURL("it has no scheme http or https")
    if not host or any(character.isspace() or character in '<>"{}|\\^`' for character in host):
        raise InvalidURL("its host or port is invalid")
    target = quote(parts.path or "/", safe=PATH_CHARACTERS)
    if parts.query:
        target += "?" + quote(parts.query, safe=PATH_CHARACTERS + "?")
    origin = Origin(parts.scheme, host, port or (443 if parts.scheme == "https" else 80))
    return RequestURL(origin, target, basic_authorization(parts.username, parts.password))


def basic_authorization(user: str | None, password: str | None) -> str:
    """Return the header for a user and a password of a URL (RFC 7617), or an empty text without a user."""
    if not user:
        return ""
    credentials = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {b64encode(credentials.encode()).decode()}"
