"""The keys of budgets and of sums of usage, beside those in `stint.store.keys`."""

import re
from hashlib import sha256

from stint.domain.errors import InvalidRequest
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
    """The counters of a caller without an API key in a month. A subject may have any characters."""
    return Key(f"{checked_tenant(tenant)}#budget:subject:{sha256(subject.encode()).hexdigest()[:32]}", month)


def usage_shards(tenant: str, day: str) -> list[str]:
    """The partitions of a tenant's sums of a day (YYYY-MM-DD)."""
    return [f"{checked_tenant(tenant)}#usage:{day}.{shard}" for shard in range(SHARDS)]


def usage(tenant: str, day: str, shard: int, agent_id: str, session_id: str, key_id: str) -> Key:
    """The sum of a day, an agent, a session and an API key. Each of these ids may be empty."""
    return Key(usage_shards(tenant, day)[shard], f"{agent_id}:{session_id}:{key_id}")
