"""The headers of requests to a receiver of traces, in the form of OpenTelemetry's variable.

https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables
"""

import re
from urllib.parse import unquote

NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header (RFC 9110, section 5.6.2)."""
VALUE = re.compile(r"[\t\x20-\x7e]*")

OWN_HEADERS = frozenset({"content-length", "content-type", "host", "transfer-encoding"})
"""Headers that describe the request itself."""


def parse_headers(text: str) -> dict[str, str]:
    """Return the headers in a text like `name=value,other=value`, whose values are percent-encoded.

    Raises ValueError, which has nothing of the values, since these may be keys.
    """
    headers: dict[str, str] = {}
    for number, entry in enumerate(filter(None, map(str.strip, text.split(","))), 1):
        name, separator, value = entry.partition("=")
        name, value = name.strip().lower(), unquote(value.strip())
        if not (separator and NAME.fullmatch(name) and VALUE.fullmatch(value)):
            raise ValueError(f"entry {number} is not name=value. Separate entries by commas, and encode commas as %2C")
        if name in OWN_HEADERS:
            raise ValueError(f"entry {number} sets {name}, which the request has of its own. Remove it")
        headers[name] = value
    return headers
