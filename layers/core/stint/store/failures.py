"""Errors of AWS services as errors of the domain."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

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
def translated(service: str = "database") -> Iterator[None]:
    """Convert botocore's errors to ConditionFailed (item undecoded), BlobMissing, StoreUnavailable and StintError.

    `service` is the service's name in the messages.
    """
    try:
        yield
    except ClientError as error:
        raise _translate(error, service) from error
    except BotoCoreError as error:
        raise StoreUnavailable(f"The {service} does not respond. Try again.", unsure=True) from error


def _translate(error: ClientError, service: str) -> Exception:
    code = error.response["Error"].get("Code", "")
    if code == "ConditionalCheckFailedException":
        response: Any = error.response
        return ConditionFailed(response.get("Item"))
    if code == "NoSuchKey":
        return BlobMissing()
    status = error.response["ResponseMetadata"].get("HTTPStatusCode", 500)
    if code in TRY_AGAIN or status >= 500:
        return StoreUnavailable(f"The {service} is overloaded or down. Try again.", unsure=status >= 500)
    return StintError(f"The {service} refused the request ({code}).")
