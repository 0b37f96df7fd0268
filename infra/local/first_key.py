"""The first API key of a local cloud whose callers are authorized."""

from infra.local.engine import RunningEngine

from stint.aws.dynamodb import DynamoDBClient
from stint.aws.environment import AwsEnvironment
from stint.domain.api_keys import CreateApiKeyRequest
from stint.domain.ids import TENANT
from stint.domain.principals import SCOPES
from stint.services.access.api_keys import ApiKeys
from stint.store.api_keys import ApiKeyStore
from stint.store.table import Table


async def create_first_key(engine: RunningEngine) -> str | None:
    """Return a new key with all rights, or None if the tenant has a key already: a secret is shown once."""
    client = DynamoDBClient(AwsEnvironment(engine.environment()))
    try:
        keys = ApiKeys(ApiKeyStore(Table(client, engine.outputs["KeysTableName"])))
        if (await keys.list_page(TENANT, None, 1)).data:
            return None
        request = CreateApiKeyRequest(tenant=TENANT, name="first key of make run", scopes=list(SCOPES))
        return (await keys.create(request)).key
    finally:
        await client.close()
