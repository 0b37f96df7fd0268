"""The labels of a model call: for whom it is made. A provider's log can be split by them.

An end user is in them by a hash only, because the log is kept elsewhere, and for longer than the user's data. All calls
of a response have the same labels, also those of another process that resumes it. Those of a turn name the end user of
the request that runs it: one that resumes the turn without the header names none.
"""

from stint.caller import end_users_of, find_end_user, find_principal, find_tenant, hash_end_user
from stint.metering import find_meter


def name_end_user(*named: str | None, known_hash: str | None = None) -> None:
    """Set the end user of the current run: one that its request names, or its header. Do nothing outside of a run."""
    meter, users = find_meter(), end_users_of(*named)
    if meter is not None:
        meter.user_hash = hash_end_user(users[0]) if users else known_hash or ""


def find_labels() -> tuple[tuple[str, str], ...]:
    """Return the labels of a model call by the current code: its tenant, and the key, agent and end user if known."""
    tenant = find_tenant()
    if not tenant:
        return ()
    principal, meter, user = find_principal(), find_meter(), find_end_user()
    user_hash = meter.user_hash if meter is not None else ""
    labels = (
        ("tenant", tenant),
        ("key_id", principal.key_id if principal is not None else ""),
        ("agent_id", meter.agent_id if meter is not None else ""),
        ("user_hash", user_hash or (hash_end_user(user) if user else "")),
    )
    return tuple((name, value) for name, value in labels if value)
