"""What the registry shows of a registration that holds credentials."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

CONCEALED = "********"

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'<>]+")
"""Without the limit on the scheme, the search takes a time quadratic in a run of letters."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORDS = frozenset({"auth", "bearer", "cookie", "jwt", "key", "pin", "pwd", "sig"})
_PARTS = ["apikey", "appid", "authorization", "credential", "passphrase", "passwd", "password"]
_PARTS += ["secret", "signature", "token"]
_COUNTS = frozenset({"count", "limit", "max", "maximum", "min", "minimum", "number", "total"})


def conceal(value: Any) -> Any:
    """Give a registration's args without credentials.

    Concealed are the values of headers, of what is named like a credential (`api_key`, `accessToken`, `password`), and
    those parts of URLs. JSON schemas (`parameters`) stay: what they say, models are told.
    """
    if isinstance(value, dict):
        return {name: conceal_named(str(name), part) for name, part in value.items()}
    if isinstance(value, list):
        return [conceal(part) for part in value]
    return _URL.sub(lambda found: conceal_url(found[0]), value) if isinstance(value, str) else value


def conceal_named(name: str, value: Any) -> Any:
    """Give what stands under a name, concealed when the name is that of a credential."""
    if value is None or isinstance(value, bool):
        return value
    if name == "parameters" and isinstance(value, dict) and value.get("type") == "object":
        return value
    if name.lower() == "headers":
        return dict.fromkeys(value, CONCEALED) if isinstance(value, dict) else CONCEALED
    return CONCEALED if is_secret(name) else conceal(value)


def is_secret(name: str) -> bool:
    """Tell whether a name is that of a credential; `max_tokens` is not."""
    words = [word.lower() for word in _WORD.findall(name)]
    if _COUNTS & set(words):
        return False
    joined = "".join(words)
    return any(part in joined for part in _PARTS) or any({word, word.removesuffix("s")} & _WORDS for word in words)


def conceal_url(url: str) -> str:
    """Give a URL without its user and password, and without the values of credentials in its query."""
    try:
        parts = urlsplit(url)
        fields = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return CONCEALED
    netloc = f"{CONCEALED}@{parts.netloc.rpartition('@')[2]}" if "@" in parts.netloc else parts.netloc
    query = parts.query
    if any(is_secret(name) for name, _ in fields):
        query = urlencode([(name, CONCEALED if is_secret(name) else value) for name, value in fields], safe="*{}/:")
    return urlunsplit(parts._replace(netloc=netloc, query=query))
