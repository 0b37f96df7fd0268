"""The parts of a credential that are secrets by themselves. Servers repeat a cookie or token without its header."""

import base64
import binascii
import re
from contextlib import suppress

from stint.domain.redaction import SHORTEST
from stint.tools.credential_names import is_key, is_mixed
from stint.tools.masking import secrets_in_url

_SCHEMES = frozenset({"apikey", "basic", "bearer", "bot", "digest", "key", "token"})
_SEPARATORS = re.compile(r"[;,\"']")
_PUBLIC = frozenset(
    {"algorithm", "charset", "consent", "domain", "expires", "keyid", "lang", "language", "locale", "max-age", "nc"}
) | {"path", "qop", "realm", "samesite", "signedheaders", "theme", "timezone", "title", "tz", "uri", "version"}
"""Header parameters whose values are not credentials, and may be ordinary words."""


def parts_of(secret: str) -> set[str]:
    """Return a credential without its scheme (`Bearer`), and the parts of it that are secrets.

    These are its last word, the secrets in a Basic login or a URL, and all values of at least 8 characters in it
    (`session=...; theme=dark`, `user:...`), but not their names.
    """
    scheme, _, rest = secret.partition(" ")
    # The scheme is not a part: `Bearer` alone would be redacted in every text about authentication.
    parts = {rest.strip()} if scheme.lower() in _SCHEMES and rest.strip() else {secret, secret.rpartition(" ")[2]}
    if scheme.lower() == "basic":
        with suppress(binascii.Error, UnicodeDecodeError):
            login = base64.b64decode(secret[6:], validate=True).decode()
            parts |= {login, login.partition(":")[2]}
    if "://" in secret:
        return parts | secrets_in_url(secret)
    return parts | _values_in(secret)


def _values_in(secret: str) -> set[str]:
    values: set[str] = set()
    before = ""
    for piece in map(str.strip, _SEPARATORS.split(secret)):
        name, sign, value = (before + piece).rpartition(" ")[2].partition("=")
        before = piece if piece.endswith("=") else ""  # a quoted value follows: `token="..."`
        if sign and name.lower() not in _PUBLIC:
            values |= {value, value.partition(":")[2]}
        elif not sign:
            values.add(name.partition(":")[2])
            values |= {name} if is_key(name) or is_mixed(name) else set()
    return {value for value in values if len(value) >= SHORTEST}
