"""Errors of the client and of its calls."""

from collections.abc import Mapping, Sequence
from typing import Any


class AwsConfigurationError(Exception):
    """The environment does not configure the client, or in a way that it does not support."""


class ServiceError(Exception):
    """An error response. `unsure` means that this attempt or an earlier one may have taken effect."""

    def __init__(self, code: str, status: int, message: str = "", *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{code} ({status}): {message}")
        self.code, self.status, self.message = code, status, message
        self.headers = headers or {}
        # A server error can follow the write. Below 500, the request was refused.
        self.unsure = status >= 500


class DynamoDBError(ServiceError):
    """An error response of DynamoDB.

    `item` is the existing record if a condition failed, and `reasons` has the reasons why a transaction was cancelled.
    """

    def __init__(
        self,
        code: str,
        status: int,
        message: str = "",
        *,
        item: dict[str, Any] | None = None,
        reasons: Sequence[dict[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, status, message, headers=headers)
        self.item, self.reasons = item, list(reasons)


class NoResponse(Exception):
    """There is no response: no connection, no valid certificate, no response in time, or a damaged one.

    `unsure` means that an attempt may have taken effect.
    """

    def __init__(self, message: str, *, unsure: bool) -> None:
        super().__init__(message)
        self.unsure = unsure
