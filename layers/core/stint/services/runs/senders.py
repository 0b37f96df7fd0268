"""Names of callers, by which a run takes only messages of its own caller."""

import json
from hashlib import sha256

from stint.caller import find_end_user, find_principal

CHARACTERS = 24


def name_sender() -> str:
    """Return a name of the current caller and the end user for whom it acts. Others have other names."""
    caller = find_principal()
    parts = [caller.key_id, caller.subject] if caller is not None else []
    return sha256(json.dumps([*parts, find_end_user()]).encode()).hexdigest()[:CHARACTERS]
