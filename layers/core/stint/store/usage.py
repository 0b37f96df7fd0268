"""Sums of usage in the table: one record per day, caller, agent and session.

Each run adds to one record with ADD, which needs no read and no lock. A report reads the days that it sums up. Records
of a session are in one shard, by its id. A run without a session adds to any shard, so that a caller with many of them
does not write one record all the time. A lost answer may count a run twice, as for all counters (`BudgetStore`).
"""

import secrets
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from stint.domain.usage import UsageSource
from stint.store import budget_keys
from stint.store.budgets import BudgetStore
from stint.store.items import Item
from stint.store.parallel import map_concurrently
from stint.store.table import Table

KEPT_DAYS = 400
"""Days for which the sums of a day are stored, longer than a year."""
QUERIES = 16
"""Maximum concurrent Queries of a request."""


class UsageStore:
    """The sums of usage. Those of a day are in several shards, so that no tenant writes to one partition only."""

    def __init__(self, table: Table, counters: BudgetStore) -> None:
        self._table = table
        self._counters = counters

    async def add(self, tenant: str, day: str, source: UsageSource, amounts: Mapping[str, int]) -> None:
        """Add to the sum of a day and a source: one unit. An amount of 0 is not written."""
        # crc32, not hash(): all processes must find the same shard.
        shard = zlib.crc32(source.session_id.encode()) if source.session_id else secrets.randbelow(budget_keys.SHARDS)
        key = budget_keys.usage(tenant, day, shard % budget_keys.SHARDS, source)
        expires_at = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=KEPT_DAYS)
        added = {name: amount for name, amount in amounts.items() if amount}
        await self._counters.add(key, added, int(expires_at.timestamp()), source.subject)

    async def read(self, tenant: str, days: Sequence[str]) -> list[tuple[str, UsageSource, dict[str, int]]]:
        """Read the sums of some days, with one Query for each shard of a day, several concurrently."""
        shards = [(day, pk) for day in days for pk in budget_keys.usage_shards(tenant, day)]

        async def read_shard(shard: tuple[str, str]) -> list[tuple[str, UsageSource, dict[str, int]]]:
            day, pk = shard
            return [(day, source_of(item), amounts_of(item)) async for item in self._table.query(pk)]

        found = await map_concurrently(read_shard, shards, calls=QUERIES)
        return [each for part in found for each in part]


def source_of(item: Item) -> UsageSource:
    agent_id, session_id, key_id = item["sk"].split(":")[:3]
    return UsageSource(key_id, agent_id, session_id, item.get("subject", ""))


def amounts_of(item: Item) -> dict[str, int]:
    return {name: value for name, value in item.items() if isinstance(value, int) and name != "expires_at"}
