"""The credentials of the request that runs: what they are is known wherever text leaves."""

from collections.abc import Iterable
from contextvars import ContextVar

from stint.domain.redaction import MOST_KNOWN, SHORTEST, Redactor


class KnownSecrets:
    """The credentials that a request has brought along or made use of so far."""

    def __init__(self) -> None:
        self.of_caller: set[str] = set()
        self.of_server: set[str] = set()
        self._redactor: Redactor | None = None

    @property
    def all(self) -> frozenset[str]:
        return frozenset(self.of_caller | self.of_server)

    def add(self, secrets: Iterable[str], *, of_server: bool = False) -> None:
        """Add secrets, as long as there is room for them: a call's own are looked for in its results in any case."""
        for secret in secrets:
            fits = sum(map(len, self.all)) + len(secret) <= MOST_KNOWN
            if len(secret) >= SHORTEST and secret not in self.all and fits:
                (self.of_server if of_server else self.of_caller).add(secret)
                self._redactor = None

    @property
    def redactor(self) -> Redactor:
        if self._redactor is None:
            self._redactor = Redactor(self.all)
        return self._redactor


_known: ContextVar[KnownSecrets | None] = ContextVar("known_secrets", default=None)


def begin_request() -> None:
    """Forget what was known: a request begins. What it starts (tasks, threads) shares what it gets to know."""
    _known.set(KnownSecrets())


def remember(secrets: Iterable[str], *, of_server: bool = False) -> None:
    """Look for secrets in the errors and log lines of this request from here on; for the caller's in models' text, too.

    Those `of_server` are its own keys, which only their service is told: no model can repeat them.
    """
    known = _known.get()
    if known is None:
        known = KnownSecrets()
        _known.set(known)
    known.add(secrets, of_server=of_server)


def known_secrets() -> frozenset[str]:
    """Return the secrets of the request that runs."""
    known = _known.get()
    return known.all if known is not None else frozenset()


def redact(text: str) -> str:
    """Return a text without the secrets of the request that runs."""
    known = _known.get()
    return known.redactor.text(text) if known is not None and known.all else text


def redactor_of_caller() -> Redactor | None:
    """Return what redacts the caller's secrets; None if the request has none."""
    known = _known.get()
    return Redactor(known.of_caller) if known is not None and known.of_caller else None
