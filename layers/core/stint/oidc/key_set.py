"""The public keys of an issuer: discovered, cached, and fetched again when the issuer has new ones.

  age of the keys   known key                                    unknown key
  up to 1 hour      used                                         a fetch if the pause is over, then used or refused
  1 to 24 hours     a fetch if the pause is over, then used      likewise
  above, or none    a fetch if the pause is over, then StoreUnavailable unless it succeeded

A fetch that fails leaves the keys as they are, so an issuer that is down for a day stops no caller. Anybody can send a
token with an unknown key id, so there is a pause between two fetches: a minute, or 5 s after a failure while there are
no keys at all. A new key of the issuer is therefore known after a minute at most. The age also limits how long a key is
used that the issuer has withdrawn.

docs/decisions.md, entry 98, has the reasons.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from stint.domain.errors import StoreUnavailable
from stint.oidc.fetch import FetchError, is_secure
from stint.oidc.strict_json import read_object

logger = logging.getLogger(__name__)

DISCOVERY = "/.well-known/openid-configuration"
FRESH_SECONDS = 3_600
"""Time after which the keys are fetched again, so that the issuer can withdraw one."""

STALE_SECONDS = 86_400
"""Time for which keys are used while the issuer does not answer."""

PAUSE_SECONDS = 60
"""Shortest time between two fetches. Callers can cause one by an unknown key."""

RETRY_SECONDS = 5
"""Shortest time between two fetches while there are no keys."""

MOST_KEYS = 100
"""Maximum keys of an issuer, whether they can be used or not."""
PUBLIC = frozenset({"RSA", "EC", "OKP"})
"""Types of keys that can be published. `oct` is a secret."""

Jwk = dict[str, Any]


class KeySet:
    """The keys of one issuer by their ids. `fetch` returns a document, or raises FetchError."""

    def __init__(self, issuer: str, fetch: Callable[[str], bytes], clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._keys: dict[str, Jwk] = {}
        self._fetched = float("-inf")
        self._next_fetch = float("-inf")

    def find(self, key_id: str) -> Jwk | None:
        """Return a key, or None if the issuer has none with this id. Raises StoreUnavailable."""
        age = self._clock() - self._fetched
        if (age >= FRESH_SECONDS or key_id not in self._keys) and self._clock() >= self._next_fetch:
            self._refresh()
            age = self._clock() - self._fetched
        if age >= STALE_SECONDS:
            raise StoreUnavailable("The keys of the OpenID Connect issuer cannot be fetched. Try again.")
        return self._keys.get(key_id)

    def _refresh(self) -> None:
        """Fetch the keys. Those from before stay in use if that fails."""
        try:
            self._keys = self._load()
        except (FetchError, ValueError) as error:
            self._next_fetch = self._clock() + (PAUSE_SECONDS if self._keys else RETRY_SECONDS)
            logger.error("The keys of the OpenID Connect issuer cannot be fetched", extra={"error": str(error)})
            return
        self._fetched = self._clock()
        self._next_fetch = self._fetched + PAUSE_SECONDS

    def _load(self) -> dict[str, Jwk]:
        configuration = read_object(self._fetch(self._issuer.rstrip("/") + DISCOVERY))
        url = configuration.get("jwks_uri")
        # Required by OpenID Connect Discovery, section 4.3: another issuer's keys would verify its tokens here.
        if configuration.get("issuer") != self._issuer:
            raise ValueError(f"The discovery document is of another issuer than {self._issuer}.")
        if not isinstance(url, str) or not self._may_fetch(url):
            raise ValueError("The discovery document has no jwks_uri with https.")
        keys = read_object(self._fetch(url)).get("keys")
        if not isinstance(keys, list) or len(keys) > MOST_KEYS:
            raise ValueError(f"{url} is not a set of up to {MOST_KEYS} keys.")
        return {key["kid"]: key for key in keys if is_usable(key)}

    def _may_fetch(self, url: str) -> bool:
        """Return whether a document may name a URL: one of https, or of this machine if the issuer is on it, too."""
        return is_secure(url) and (is_https(url) or not is_https(self._issuer))


def is_https(url: str) -> bool:
    return url.lower().startswith("https://")


def is_usable(key: Any) -> bool:
    """Return whether an entry is a public key for signatures, with an id. A secret key verifies nothing here."""
    return (
        isinstance(key, dict)
        and isinstance(key.get("kid"), str)
        and key.get("kty") in PUBLIC
        and key.get("use", "sig") == "sig"
        and "d" not in key
    )
