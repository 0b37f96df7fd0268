"""Senders of messages: their names, and the runs that act for them in other processes.

A run takes only messages of its own caller, and a session has one end user.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256

from stint.caller import acting_as, find_end_user, find_principal, set_end_user
from stint.domain.principals import Principal
from stint.store.owners import hash_user

CHARACTERS = 24


def name_sender() -> str:
    """Return a name of the current caller and the end user for whom it acts. Others have other names.

    So has the same caller at another call depth: a run would take a deeper message without its depth.
    """
    caller = find_principal()
    parts: list[str | int] = [caller.key_id, caller.subject] if caller is not None else []
    if caller is not None and caller.call_depth:
        parts.append(caller.call_depth)
    return sha256(json.dumps([*parts, find_end_user()]).encode()).hexdigest()[:CHARACTERS]


def find_owner() -> str:
    """Return the hash of the end user for whom the caller acts, or an empty string."""
    user = find_end_user()
    return hash_user(user) if user else ""


def belongs_to_another(owners: str) -> bool:
    """Return whether an object belongs to other end users alone. `owners` has the hashes of its own."""
    owner = find_owner()
    return bool(owner and owners) and owner not in owners.split()


@contextmanager
def acting_for(creator: Mapping[str, str] | None, end_user: str | None) -> Iterator[None]:
    """Run the body for the caller who sent a message, as the context of its request names it, and its end user."""
    user = find_end_user()
    with acting_as(Principal.from_context(dict(creator)) if creator is not None else None):
        set_end_user(end_user)
        try:
            yield
        finally:
            set_end_user(user)
