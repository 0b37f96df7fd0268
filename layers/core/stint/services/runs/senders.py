"""Names of callers and end users: a run takes only messages of its own caller, a session has one end user."""

import json
from hashlib import sha256

from stint.caller import find_end_user, find_principal
from stint.store.owners import hash_user

CHARACTERS = 24


def name_sender() -> str:
    """Return a name of the current caller and the end user for whom it acts. Others have other names."""
    caller = find_principal()
    parts = [caller.key_id, caller.subject] if caller is not None else []
    return sha256(json.dumps([*parts, find_end_user()]).encode()).hexdigest()[:CHARACTERS]


def find_owner() -> str:
    """Return the hash of the end user for whom the caller acts, or an empty string."""
    user = find_end_user()
    return hash_user(user) if user else ""
