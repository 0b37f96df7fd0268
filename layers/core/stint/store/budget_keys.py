"""The keys of budgets and of sums of usage, beside those in `stint.store.keys`."""

import re
from hashlib import sha256

from stint.domain.errors import InvalidRequest
from stint.domain.usage import UsageSource
from stint.store.keys import Key, checked_tenant

KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

SHARDS = 8
"""Number of shards of a tenant's sums of a day, so that not all of them are written to one partition."""


def tenant_budget(tenant: str, month: str) -> Key:
    """The counters of a tenant in a month."""
    return Key(f"{checked_tenant(tenant)}#budget:tenant", month)


def key_budget(tenant: str, key_id: str, month: str) -> Key:
    """The counters of an API key in a month."""
    if not KEY_ID.fullmatch(key_id):
        raise InvalidRequest("The id of the API key is invalid.")
    return Key(f"{checked_tenant(tenant)}#budget:key:{key_id}", month)


def subject_budget(tenant: str, subject: str, month: str) -> Key:
    """The counters of a caller without an API key in a month."""
    return Key(f"{checked_tenant(tenant)}#budget:subject:{hash_subject(subject)}", month)


def usage_shards(tenant: str, day: str) -> list[str]:
    """The partitions of a tenant's sums of a day (YYYY-MM-DD)."""
    return [f"{checked_tenant(tenant)}#usage:{day}.{shard}" for shard in range(SHARDS)]


def usage(tenant: str, day: str, shard: int, source: UsageSource) -> Key:
    """The sum of a day and a source: an agent, a session and an API key, or a caller without a key."""
    caller = source.key_id if source.key_id or not source.subject else f":{hash_subject(source.subject)}"
    return Key(usage_shards(tenant, day)[shard], f"{source.agent_id}:{source.session_id}:{caller}")


def hash_subject(subject: str) -> str:
    """Return a text of a fixed length for a subject, which may have any characters."""
    return sha256(subject.encode()).hexdigest()[:32]
