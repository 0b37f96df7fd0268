"""Proxies of the environment: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, also in lower case."""

import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from stint.dataclasses import dataclass, field, replace
from stint.http1.urls import basic_authorization


class InvalidProxy(ValueError):
    """A variable is not the URL of an HTTP proxy."""


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy. `authorization` is the value of its header, or empty."""

    host: str
    port: int
    tls: bool = False
    authorization: str = field(default="", repr=False)


@dataclass(frozen=True)
class Proxies:
    """The proxies of the schemes `http` and `https`, and the hosts that are reached without one.

    `all` is the proxy of a scheme without one. The SDKs of AWS do not know it.
    """

    by_scheme: Mapping[str, str] = field(repr=False)
    excluded: str = ""

    @classmethod
    def of(cls, variables: Mapping[str, str], schemes: Sequence[str] = ("http", "https")) -> "Proxies":
        """Return the proxies that variables set. Lower case wins, and an empty one removes the proxy."""
        urls = {}
        for scheme in schemes:
            url = _variable(variables, f"{scheme}_proxy")
            # In CGI, HTTP_PROXY is a header of the request.
            if url and not (scheme == "http" and "REQUEST_METHOD" in variables and "http_proxy" not in variables):
                urls[scheme] = url
        return cls(urls, _variable(variables, "no_proxy"))

    def choose(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy for a server, or None. Raises InvalidProxy."""
        name = scheme if self.by_scheme.get(scheme) else "all"
        url = self.by_scheme.get(name)
        if url is None or self.excludes(host, port):
            return None
        try:
            parts = urlsplit(url if "://" in url else f"http://{url.removeprefix('//')}")
            proxy, proxy_port = parts.hostname, parts.port
        except ValueError:
            proxy = None
        if proxy is None or parts.scheme not in ("http", "https"):
            raise InvalidProxy(f"{name.upper()}_PROXY is not the URL of an HTTP proxy.")
        tls = parts.scheme == "https"
        authorization = basic_authorization(parts.username, parts.password)
        return Proxy(proxy, proxy_port or (443 if tls else 80), tls, authorization)

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


def read_proxies(variables: Mapping[str, str] = os.environ) -> Proxies:
    """Return the proxies that variables set, by default those of the process."""
    proxies = Proxies.of(variables, ("http", "https", "all"))
    # Unlike urllib, httpx and curl take the star of a longer list.
    listed = [entry.strip() for entry in proxies.excluded.split(",")]
    return replace(proxies, excluded="*") if "*" in listed else proxies


def _variable(variables: Mapping[str, str], name: str) -> str:
    return variables[name] if name in variables else variables.get(name.upper(), "")
