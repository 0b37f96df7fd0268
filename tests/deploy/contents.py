"""Reading and writing of the tables and the bucket of a stack."""

import asyncio
from dataclasses import dataclass
from typing import Any

from infra.local.samples import store_samples
from tests.deploy.account import Account, Resource

STORES = ("Data/Table", "Data/KeysTable", "Data/Bucket")


@dataclass(frozen=True)
class Contents:
    """All that a stack stores, and where."""

    stores: dict[str, Resource]
    items: list[dict[str, Any]]
    keys: list[dict[str, Any]]
    objects: dict[str, str]

    @classmethod
    def of(cls, account: Account, stack: str) -> "Contents":
        resources = account.resources(stack)
        return cls.at(account, {name: resources[name] for name in STORES})

    @classmethod
    def at(cls, account: Account, stores: dict[str, Resource]) -> "Contents":
        """Return the contents of these stores, whose stack may be deleted."""
        table, keys_table, bucket = (resource.physical_id for resource in stores.values())
        return cls(stores, account.items(table), account.items(keys_table), dict(account.objects(bucket)))


def sample_environment(account: Account, stack: str) -> dict[str, str]:
    """Return the variables with which samples are stored in the table and the bucket of a stack."""
    outputs = account.outputs(stack)
    names = {"STINT_TABLE": "TableName", "STINT_KEYS_TABLE": "KeysTableName", "STINT_BUCKET": "BucketName"}
    return account.engine.environment() | {name: outputs[output] for name, output in names.items()}


def store_data(account: Account, stack: str) -> Contents:
    """Store agents, sessions, responses, files and more in a stack."""
    asyncio.run(store_samples(sample_environment(account, stack)))
    return Contents.of(account, stack)
