"""Proxies of the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY, also in lower case), as botocore reads them."""

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from stint.aws.errors import AwsConfigurationError
from stint.dataclasses import dataclass, field


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy. `authorization` is the value of its header, or empty."""

    host: str
    port: int
    tls: bool = False
    authorization: str = field(default="", repr=False)


@dataclass(frozen=True)
class Proxies:
    """The proxies of the schemes `http` and `https`, and the hosts that are reached without one."""

    by_scheme: Mapping[str, str] = field(repr=False)
    excluded: str = ""

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> "Proxies":
        """Return the proxies that variables set. Lower case wins, and an empty one removes the proxy."""
        urls = {}
        for scheme in ("http", "https"):
            url = _variable(variables, f"{scheme}_proxy")
            # In CGI, HTTP_PROXY is a header of the request.
            if url and not (scheme == "http" and "REQUEST_METHOD" in variables and "http_proxy" not in variables):
                urls[scheme] = url
        return cls(urls, _variable(variables, "no_proxy"))

    def choose(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy for a server, or None."""
        url = self.by_scheme.get(scheme)
        if url is None or self.excludes(host, port):
            return None
        parts = urlsplit(url if "://" in url else f"http://{url.removeprefix('//')}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise AwsConfigurationError(f"{scheme.upper()}_PROXY is not the URL of an HTTP proxy.")
        tls = parts.scheme == "https"
        user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(user.encode()).decode()}" if parts.username else ""
        return Proxy(parts.hostname, parts.port or (443 if tls else 80), tls, authorization)

    def excludes(self, host: str, port: int) -> bool:
        """Return whether NO_PROXY names the server: `*`, a host with or without its port, or a suffix of it."""
        if self.excluded == "*":
            return True
        names = {host.lower(), f"{host.lower()}:{port}"}
        for entry in self.excluded.lower().split(","):
            suffix = entry.strip().lstrip(".")
            if suffix and any(name == suffix or name.endswith(f".{suffix}") for name in names):
                return True
        return False


def _variable(variables: Mapping[str, str], name: str) -> str:
    return variables[name] if name in variables else variables.get(name.upper(), "")
