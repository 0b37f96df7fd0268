from collections.abc import AsyncIterator

import pytest
from tests.unit.aws.dynamodb_server import DynamoDBServer, Pauses, make_client

from stint.aws.dynamodb import DynamoDBClient


@pytest.fixture
async def server() -> AsyncIterator[DynamoDBServer]:
    async with DynamoDBServer() as server:
        yield server


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def client(server: DynamoDBServer, pauses: Pauses) -> AsyncIterator[DynamoDBClient]:
    client = make_client(server, sleep=pauses)
    yield client
    await client.close()
