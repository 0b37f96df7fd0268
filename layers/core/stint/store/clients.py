"""Clients of AWS services. They read region, credentials and endpoints from the environment."""

from functools import partial
from typing import TYPE_CHECKING, cast

from stint.aws.credentials import CredentialsSource
from stint.aws.dynamodb import DynamoDBClient
from stint.aws.environment import read_environment

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

    from stint.aws.s3_reader import S3Reader
    from stint.store.bucket import Bucket
    from stint.store.messaging import EventsClient

ATTEMPTS = 3
"""Calls of an AWS service for one operation, with the first."""

POOL = 16


def make_dynamodb(credentials: CredentialsSource | None = None) -> DynamoDBClient:
    """Make a client, with other credentials than those of the environment if they are given."""
    return DynamoDBClient(read_environment(), credentials=credentials)


def make_s3(credentials: CredentialsSource | None = None) -> "S3Client":
    """Make botocore's client of S3, with other credentials than those of the environment if they are given."""
    client = _make("s3", read_timeout=20)
    if credentials is not None:
        from stint.aws.botocore_credentials import sign_with  # noqa: PLC0415 - for TenantIsolation iam only

        sign_with(client, credentials)
    return cast("S3Client", client)


def make_bucket(name: str, credentials: CredentialsSource | None = None) -> "Bucket":
    """Return a bucket. Its clients are made when they are first used, with the credentials if they are given."""
    from stint.store.bucket import Bucket  # noqa: PLC0415 - the authorizer has no bucket

    return Bucket(name, partial(make_s3, credentials), partial(make_s3_reader, name, credentials))


def make_s3_reader(bucket: str, credentials: CredentialsSource | None = None) -> "S3Reader":
    """Make a client that reads the objects of a bucket, with the credentials if they are given."""
    from stint.aws.s3_reader import S3Reader  # noqa: PLC0415 - most processes read no object

    return S3Reader(read_environment(), bucket, credentials)


def make_sqs() -> "SQSClient":
    return cast("SQSClient", _make("sqs", read_timeout=5))


def make_events() -> "EventsClient":
    return cast("EventsClient", _make("events", read_timeout=5))


def _make(service: str, read_timeout: float) -> object:
    # botocore takes a third of a second to load, and most processes need none of these clients.
    from botocore.config import Config  # noqa: PLC0415
    from botocore.session import get_session  # noqa: PLC0415

    config = Config(
        connect_timeout=2,
        read_timeout=read_timeout,
        max_pool_connections=POOL,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    )
    # Not boto3, which would load unused modules (resources, transfer manager) at every cold start.
    return get_session().create_client(service, config=config)
