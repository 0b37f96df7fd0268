"""Checks of a caller's URL before its host is resolved."""

import httpx

from stint.domain.errors import InvalidRequest, UnresolvableURL

LONGEST_HOST = 253
"""Maximum characters of a name (RFC 1035, section 2.3.4), without the trailing dot."""


def parse_url(text: str) -> httpx.URL:
    """Parse a URL, and check its form; see `check_form`.

    Raises:
        InvalidRequest: `url_not_allowed`. The message contains at most the host: the rest may have credentials.
    """
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):  # their messages contain parts of the URL
        raise _malformed() from None
    check_form(url)
    return url


def check_form(url: httpx.URL) -> None:
    """Refuse a URL that is not allowed for any host.

    Raises:
        InvalidRequest: `url_not_allowed`.
    """
    try:
        host = url.host  # decodes a name in Punycode, which httpx.URL does not check
    except ValueError:
        raise _malformed("its host is not a valid domain name") from None
    if url.scheme not in ("http", "https"):
        raise not_allowed(host, f"its scheme is {url.scheme[:40]!r}, not http or https")
    if not host:
        raise not_allowed(host, "it has no host")
    if len(host.rstrip(".")) > LONGEST_HOST:
        raise not_allowed(f"{host[:40]}...", f"its host is longer than {LONGEST_HOST} characters")
    if url.port is not None and not 0 < url.port < 65536:
        raise not_allowed(host, f"its port {url.port} is not between 1 and 65535")
    # It would be stored and shown with the URL, and `http://allowed@other/` misleads readers.
    if url.userinfo:
        raise not_allowed(host, "it has a user name or password: send credentials in a header")


def same_target(one: str, other: str) -> bool:
    """Return whether two valid URLs name the same resource: scheme, host, port, path and query are equal.

    A port that is the default of the scheme, an empty path, `.` and `..` in it, and the case of the host make no
    difference. A slash at the end does.
    """
    return target_of(one) == target_of(other)


def target_of(text: str) -> tuple[str, bytes, int | None, bytes]:
    """Return the parts of a URL that a request is sent to. Raises InvalidRequest."""
    url = parse_url(text)
    return url.scheme, url.raw_host, url.port, url.raw_path


def check_redirect(response: httpx.Response) -> None:
    """Refuse a redirect to an invalid URL. httpx would parse it even if redirects are not followed.

    Raises:
        UnresolvableURL: the `Location` is not a valid URL.
    """
    if not response.has_redirect_location:
        return
    try:
        _ = httpx.URL(response.headers["location"]).host
    except (httpx.InvalidURL, ValueError):
        raise UnresolvableURL(f"{response.request.url.host!r} redirects to an invalid URL") from None


def not_allowed(host: str, reason: str) -> InvalidRequest:
    where = f"The URL of {host!r}" if host else "The URL"
    return InvalidRequest(f"{where} may not be called: {reason}", code="url_not_allowed")


def _malformed(reason: str = "check its host, its port and its characters") -> InvalidRequest:
    return InvalidRequest(f"It is not a valid URL: {reason}", code="url_not_allowed")
