"""Which names are those of credentials, and which texts look like one."""

import re

from stint.domain.redaction import SHORTEST
from stint.tools.templates import PLACEHOLDER

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORDS = frozenset({"auth", "bearer", "cookie", "dsn", "jwt", "key", "pass", "pin", "pwd", "sig"})
_PARTS = ["apikey", "appid", "authorization", "credential", "passphrase", "passwd", "password"]
_PARTS += ["secret", "signature", "token"]
_COUNTS = frozenset({"count", "limit", "max", "maximum", "min", "minimum", "number", "total"})
_TOKEN = re.compile(r"(?:[srp]k|gh[opsur]|github_pat|glpat|xox[abeprs]|hf|tvly|npm|AIza|eyJ)[-_A-Za-z0-9.]{12,}")
"""Keys that can be told from their beginnings: of OpenAI, Stripe, GitHub, GitLab, Slack and others, and JWTs."""
_RANDOM = re.compile(r"[A-Za-z0-9]{20,}")
_PLAIN = frozenset({"description", "function", "id", "ids", "model", "name", "names", "type", "version"})
"""Last words of names whose values look random and are no keys."""


def is_secret(name: str) -> bool:
    """Return whether a name is that of a credential; `max_tokens` is not."""
    words = [word.lower() for word in _WORD.findall(name)]
    if _COUNTS & set(words):
        return False
    joined = "".join(words)
    return any(part in joined for part in _PARTS) or any({word, word.removesuffix("s")} & _WORDS for word in words)


def is_plain(name: str) -> bool:
    """Return whether values of a name are no keys, whatever they look like: ids, names."""
    words = _WORD.findall(name)
    return bool(words) and words[-1].lower() in _PLAIN


def is_key(text: str) -> bool:
    """Return whether a text looks like a key wherever it stands."""
    return _TOKEN.fullmatch(text) is not None or (_RANDOM.fullmatch(text) is not None and is_mixed(text))


def is_mixed(text: str) -> bool:
    """Return whether a text has both letters and digits."""
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def is_key_of_path(segment: str, before: str, *, endpoint: bool) -> bool:
    """Return whether a segment of a path may be a key: by its looks, its name, or the segment before it."""
    if len(segment) < SHORTEST or PLACEHOLDER.search(segment):
        return False
    return is_key(segment) or (endpoint and is_mixed(segment)) or is_secret(segment) or is_secret(before)
