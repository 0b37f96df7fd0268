"""The credentials of the current request, so that they can be redacted wherever text leaves.

A credential can return in any text that leaves: a server quotes the header that it refuses, a tool prints its
environment, a model repeats what it read. Nobody who writes a text can know them all, so each one is remembered when it
comes in or is used, and every text is redacted where it leaves: errors, log lines, tool results, streams.

The context variable holds one mutable object per request: tasks and threads copy the context, and with it the
reference, so that a secret which a task meets is redacted in the others, too.

A matcher of many secrets takes much memory, so both are bounded: the characters of the request's secrets
(`MOST_KNOWN`), and those of further redactors (`MOST_BUILT`) for calls whose own secrets are not all known. Beyond the
second, a call is not made, since its result could not be redacted.
"""

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from stint.domain.redaction import MOST_KNOWN, SHORTEST, Redactor

MOST_BUILT = 262_144
"""Maximum characters of secrets for further redactors, besides that of the request's known secrets."""


class KnownSecrets:
    """The credentials that a request has brought or used so far."""

    def __init__(self) -> None:
        self.in_models_text: set[str] = set()
        self.elsewhere: set[str] = set()
        self.own: set[str] = set()
        self.characters = 0
        self.room = MOST_BUILT
        self.extra: tuple[frozenset[str], Redactor | None] = (frozenset(), None)
        self._redactor: Redactor | None = None

    @property
    def all(self) -> frozenset[str]:
        return frozenset(self.in_models_text | self.elsewhere)

    def add_secrets(self, secrets: Iterable[str], *, in_models_text: bool) -> None:
        """Add secrets while there is room. A call's own secrets are redacted from its results in any case."""
        for secret in secrets:
            is_known = secret in self.in_models_text or secret in self.elsewhere
            if len(secret) >= SHORTEST and not is_known and self.characters + len(secret) <= MOST_KNOWN:
                (self.in_models_text if in_models_text else self.elsewhere).add(secret)
                self.characters += len(secret)
                self._redactor = None

    @property
    def redactor(self) -> Redactor:
        if self._redactor is None:
            self._redactor = Redactor(self.all, own=self.own)
        return self._redactor


_known: ContextVar[KnownSecrets | None] = ContextVar("known_secrets", default=None)


def begin_request() -> None:
    """Forget all secrets, at the start of a request. Its tasks and threads share the secrets that follow."""
    _known.set(KnownSecrets())


def remember(secrets: Iterable[str], *, in_models_text: bool = True) -> None:
    """Redact secrets from the errors, log lines and tool results of this request from here on.

    With `in_models_text`, redact them from models' text, too. The server's own keys cannot be in there.
    """
    _current().add_secrets(secrets, in_models_text=in_models_text)


def remember_own(key: str) -> None:
    """Redact a key of the server, as `remember` does, but not from models' text."""
    known = _current()
    known.add_secrets({key}, in_models_text=False)
    known.own |= known.elsewhere & {key}


def _current() -> KnownSecrets:
    known = _known.get()
    if known is None:
        known = KnownSecrets()
        _known.set(known)
    return known


def known_secrets() -> frozenset[str]:
    """Return the secrets of the current request."""
    known = _known.get()
    return known.all if known is not None else frozenset()


def has_room_for(secrets: frozenset[str]) -> bool:
    """Count a call's secrets unless all are known, and return whether the request has room to redact them."""
    known = _known.get()
    if known is None or secrets <= known.all or known.extra[0] == secrets | known.all:
        return True
    known.room -= sum(map(len, secrets | known.all))
    return known.room >= 0


def redactor_with(secrets: frozenset[str]) -> Redactor:
    """Return a redactor of the current request's secrets and some more, most of which are known already."""
    known = _known.get()
    if known is None:
        return Redactor(secrets)
    wanted = secrets | known.all
    if len(wanted) == len(known.all):
        return known.redactor
    redactor = known.extra[1] if known.extra[0] == wanted else None
    if redactor is None:
        redactor = Redactor(wanted)
        known.extra = (wanted, redactor)
    return redactor


def redact(text: str) -> str:
    """Return a text without the secrets of the current request."""
    known = _known.get()
    return known.redactor.text(text) if known is not None and known.all else text


def redact_json(value: Any) -> Any:
    """Return a JSON value without the secrets of the current request in its texts and names."""
    known = _known.get()
    return known.redactor.json(value) if known is not None and known.all else value


def redactor_of_models_text() -> Redactor | None:
    """Return the redactor of a model's text; None if the request has no secrets to redact."""
    known = _known.get()
    return Redactor(known.in_models_text) if known is not None and known.in_models_text else None
