"""The role of tenants' data in a real account, which writes two items and two objects of tenants of its own.

Deploy a stack with TenantIsolation iam, let your role assume its data role, set STINT_TEST_DATA_ROLE (an ARN),
STINT_TEST_TABLE, STINT_TEST_BUCKET and AWS_REGION, and run
`pytest -m aws --force-enable-socket --allow-hosts "" tests/api/isolation`.
"""

import os
from typing import Any

import pytest

from stint.aws.dynamodb import DynamoDBClient, DynamoDBError
from stint.bootstrap.tenant_isolation import make_data_credentials
from stint.caller import set_tenant
from stint.domain.ids import new_id
from stint.store.clients import make_dynamodb, make_s3

ROLE, TABLE, BUCKET = (os.environ.get(f"STINT_TEST_{name}", "") for name in ("DATA_ROLE", "TABLE", "BUCKET"))
OWN, OTHER = f"test-{new_id()[-12:]}", f"test-{new_id()[-12:]}"

pytestmark = [
    pytest.mark.aws,
    pytest.mark.skipif(not (ROLE and TABLE and BUCKET), reason="needs a real account"),
]


def item(tenant: str) -> dict[str, Any]:
    return {"pk": {"S": f"{tenant}#agent"}, "sk": {"S": "test"}}


def lists(tenant: str) -> dict[str, Any]:
    values = {":pk": item(tenant)["pk"]}
    return {"TableName": TABLE, "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": values}


async def is_refused(client: DynamoDBClient, operation: str, request: dict[str, Any]) -> bool:
    try:
        await client.call(operation, request)
    except DynamoDBError as error:
        return error.code == "AccessDeniedException"
    return False


async def test_records_are_reached_by_their_tenant_alone() -> None:
    set_tenant(OWN)
    client = make_dynamodb(make_data_credentials(ROLE))
    both = {"RequestItems": {TABLE: {"Keys": [item(OWN), item(OTHER)]}}}

    await client.call("PutItem", {"TableName": TABLE, "Item": item(OWN)})
    found = await client.call("Query", lists(OWN))

    assert found["Count"] == 1
    assert await is_refused(client, "Query", lists(OTHER))
    assert await is_refused(client, "BatchGetItem", both)
    assert await is_refused(client, "PutItem", {"TableName": TABLE, "Item": item(OTHER)})
    assert await is_refused(client, "Scan", {"TableName": TABLE})
    await client.call("DeleteItem", {"TableName": TABLE, "Key": item(OWN)})
    await client.close()


def test_objects_are_reached_by_their_tenant_alone() -> None:
    set_tenant(OWN)
    s3: Any = make_s3(make_data_credentials(ROLE))
    own, other = f"kept/{OWN}/test", f"kept/{OTHER}/test"

    s3.put_object(Bucket=BUCKET, Key=own, Body=b"own")

    assert s3.get_object(Bucket=BUCKET, Key=own)["Body"].read() == b"own"
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket=BUCKET, Key=f"{own}-missing")
    for call, parameters in (
        (s3.get_object, {"Key": other}),
        (s3.put_object, {"Key": other, "Body": b""}),
        (s3.list_objects_v2, {}),
        (s3.list_objects_v2, {"Prefix": f"kept/{OTHER}/"}),
    ):
        with pytest.raises(s3.exceptions.ClientError):
            call(Bucket=BUCKET, **parameters)
    s3.delete_object(Bucket=BUCKET, Key=own)
