"""Detection of credentials by their names and by the look of a text."""

import re
from functools import lru_cache

from stint.domain.redaction import SHORTEST
from stint.tools.templates import PLACEHOLDER

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORDS = frozenset(
    {"auth", "bearer", "cookie", "creds", "dsn", "hmac", "jwt", "key", "otp", "pass", "pat", "pin", "psk", "pw", "pwd"}
) | {"sas", "sig"}
_PARTS = ["apikey", "appid", "authheader", "authorization", "credential", "passcode", "passphrase", "passwd"]
_PARTS += ["password", "secret", "signature", "token"]
_ENDINGS = ("auth", "creds", "key", "pass")
"""Parts of words that are written as one: `authkey`, `userpass`."""
_ORDINARY = frozenset(
    {"bandpass", "bypass", "compass", "donkey", "encompass", "highpass", "hockey", "hotkey", "jockey", "lackey"}
) | {"lowpass", "monkey", "overpass", "surpass", "trespass", "turkey", "underpass", "whiskey"}
_WHOLE = frozenset({"phpsessid", "session", "sid"})
_LAST: tuple[str, ...] = (
    "connectionstring",
    "connectionuri",
    "connstr",
    "connstring",
    "databaseuri",
    "databaseurl",
    "dburl",
)
_LAST += ("webhook", "webhookuri", "webhookurl")
"""Suffixes of names whose values are addresses with a password or a key."""
_LONGEST_NAME = 200
"""Maximum characters of a name whose result is cached; 4,096 results are."""
_COUNTS = frozenset({"count", "limit", "max", "maximum", "min", "minimum", "number", "total"})
_TOKEN = re.compile(r"(?:[srp]k|gh[opsur]|github_pat|glpat|xox[abeprs]|hf|tvly|npm|AIza|eyJ)[-_A-Za-z0-9.]{12,}")
"""Keys with known prefixes: of OpenAI, Stripe, GitHub, GitLab, Slack and others, and JWTs."""
_RANDOM = re.compile(r"[A-Za-z0-9]{20,}")
LONGEST_WORD = 20
"""Minimum characters of a run of letters that is probably not a word."""
_PLAIN = frozenset({"description", "function", "id", "ids", "model", "name", "names", "type", "version"})
"""Last words of names whose values look random but are not keys."""


def is_secret(name: str) -> bool:
    """Return whether a name is that of a credential. `max_tokens` is not."""
    return _is_known_secret(name) if len(name) <= _LONGEST_NAME else _is_secret(name)


def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    # `max_tokens` and `token_count` are numbers of a model's tokens.
    if not _COUNTS.isdisjoint(words):
        return False
    joined = "".join(words)
    if joined in _WHOLE or joined.endswith(_LAST) or any(part in joined for part in _PARTS):
        return True
    return any(_is_secret_word(word) or _is_secret_word(word.removesuffix("s")) for word in words)


def _is_secret_word(word: str) -> bool:
    return word in _WORDS or (word.endswith(_ENDINGS) and word not in _ORDINARY)


_is_known_secret = lru_cache(maxsize=4096)(_is_secret)


def is_plain(name: str) -> bool:
    """Return whether a name's values are never keys, whatever they look like: ids, names."""
    words = _WORD.findall(name)
    return bool(words) and words[-1].lower() in _PLAIN


def is_key(text: str) -> bool:
    """Return whether a text looks like a key in any place."""
    return _TOKEN.fullmatch(text) is not None or (_RANDOM.fullmatch(text) is not None and is_mixed(text))


def is_mixed(text: str) -> bool:
    """Return whether a text has both letters and digits."""
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def is_key_of_query(value: str) -> bool:
    """Return whether a value of an MCP endpoint's query may be a key, whatever its name."""
    return len(value) >= SHORTEST and (is_mixed(value) or (len(value) >= LONGEST_WORD and value.isalnum()))


def is_key_of_path(segment: str, before: str, *, endpoint: bool) -> bool:
    """Return whether a segment of a path may be a key: by its text, its name, or the segment before it."""
    if len(segment) < SHORTEST or PLACEHOLDER.search(segment):
        return False
    return is_key(segment) or (endpoint and is_mixed(segment)) or is_secret(segment) or is_secret(before)
