"""Errors of AWS services as errors of the domain."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stint.aws.errors import DynamoDBError, NoResponse, ServiceError
from stint.domain.errors import StintError, StoreUnavailable

TRY_AGAIN = frozenset(
    {
        "InternalError",
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)


class ConditionFailed(Exception):
    """The condition of a write did not hold. `item` is the existing record, None if there is none."""

    def __init__(self, item: dict[str, Any] | None) -> None:
        super().__init__("the condition of a write failed")
        self.item = item

    @property
    def found(self) -> dict[str, Any]:
        """Return the existing record."""
        return self.item or {}


class BlobMissing(Exception):
    """There is no object with this key."""


@contextmanager
def translated(service: str) -> Iterator[None]:
    """Convert botocore's errors to BlobMissing, StoreUnavailable and StintError.

    `service` is the service's name in the messages.
    """
    # Loaded with the client that raises them.
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        yield
    except ClientError as error:
        code = error.response["Error"].get("Code", "")
        if code == "NoSuchKey":
            raise BlobMissing from error
        raise refusal(service, code, error.response["ResponseMetadata"].get("HTTPStatusCode", 500)) from error
    except BotoCoreError as error:
        raise no_response(service, unsure=True) from error


@contextmanager
def object_errors(service: str) -> Iterator[None]:
    """Convert errors of the client of S3 to the same ones."""
    try:
        yield
    except ServiceError as error:
        if error.code == "NoSuchKey":
            raise BlobMissing from error
        raise refusal(service, error.code, error.status) from error
    except NoResponse as error:
        raise no_response(service, unsure=False) from error


def table_error(error: DynamoDBError | NoResponse) -> Exception:
    """Return ConditionFailed (item undecoded), StoreUnavailable or StintError for an error of the DynamoDB client."""
    if isinstance(error, NoResponse):
        return no_response("database", unsure=error.unsure)
    if error.code == "ConditionalCheckFailedException":
        return ConditionFailed(error.item)
    return refusal("database", error.code, error.status, unsure=error.unsure)


def refusal(service: str, code: str, status: int, *, unsure: bool = False) -> StintError:
    """Return the error for an answer with an error code. `unsure`: an earlier attempt may have taken effect."""
    if code in TRY_AGAIN or status >= 500:
        return StoreUnavailable(f"The {service} is overloaded or down. Try again.", unsure=unsure or status >= 500)
    return StintError(f"The {service} refused the request ({code}).")


def no_response(service: str, *, unsure: bool) -> StoreUnavailable:
    return StoreUnavailable(f"The {service} does not respond. Try again.", unsure=unsure)
