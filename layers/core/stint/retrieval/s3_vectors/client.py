"""The client of S3 Vectors, and its errors as errors of the domain.

botocore retries throttling and server errors itself. What is left is told apart by what the caller can do:

  answer                                            error
  no answer, 5xx, throttling, a quota is exhausted  StoreUnavailable, `unsure` if a write may have taken effect
  no such index                                     NotFound
  index exists                                      Conflict
  invalid parameters                                InvalidRequest
  no permission, and everything else                StintError: the operator's fault, not the caller's
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from stint.aws.credentials import CredentialsSource
from stint.domain.errors import Conflict, InvalidRequest, NotFound, StintError, StoreUnavailable

TRY_AGAIN = frozenset(
    {
        "InternalServerException",
        "RequestTimeoutException",
        "ServiceQuotaExceededException",
        "ServiceUnavailableException",
        "TooManyRequestsException",
    }
)
ATTEMPTS = 3
"""Calls of S3 Vectors for one operation, with the first."""


class VectorsClient(Protocol):
    """The part of botocore's client that is used here. Its methods have the names of the operations."""

    def create_index(self, **parameters: Any) -> Mapping[str, Any]: ...
    def get_index(self, **parameters: Any) -> Mapping[str, Any]: ...
    def delete_index(self, **parameters: Any) -> Mapping[str, Any]: ...
    def put_vectors(self, **parameters: Any) -> Mapping[str, Any]: ...
    def get_vectors(self, **parameters: Any) -> Mapping[str, Any]: ...
    def delete_vectors(self, **parameters: Any) -> Mapping[str, Any]: ...
    def query_vectors(self, **parameters: Any) -> Mapping[str, Any]: ...


def connect(credentials: CredentialsSource | None = None) -> VectorsClient:
    """Make a client, with other credentials than those of the environment if they are given.

    Another endpoint is in AWS_ENDPOINT_URL_S3VECTORS.
    """
    from botocore.config import Config  # noqa: PLC0415 - loaded by the first call
    from botocore.session import get_session  # noqa: PLC0415 - loaded by the first call

    retries = {"mode": "standard", "total_max_attempts": ATTEMPTS}
    config = Config(connect_timeout=2, read_timeout=30, max_pool_connections=16, retries=retries)  # type: ignore[arg-type]  # the stubs want their own class
    client = get_session().create_client("s3vectors", config=config)
    if credentials is not None:
        from stint.aws.botocore_credentials import sign_with  # noqa: PLC0415 - for TenantIsolation iam only

        sign_with(client, credentials)
    return cast("VectorsClient", client)


class VectorBucket:
    """The indexes of a vector bucket. The client is made when first used, and each call waits in a thread."""

    def __init__(self, name: str, connect: Callable[[], VectorsClient] = connect) -> None:
        self._name = name
        self._connect = connect
        self._lock = threading.Lock()
        self._made: VectorsClient | None = None

    async def call(self, operation: str, index: str, **parameters: Any) -> Mapping[str, Any]:
        """Call an operation of an index.

        Raises:
            NotFound: the index does not exist.
            Conflict: it exists already.
            InvalidRequest: S3 Vectors refuses the parameters.
            StoreUnavailable: S3 Vectors is overloaded, a quota is exhausted, or there is no answer.
        """
        return await asyncio.to_thread(self._call, operation, index, parameters)

    def _call(self, operation: str, index: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - loaded with the client

        try:
            method: Callable[..., Mapping[str, Any]] = getattr(self._client(), operation)
            return method(vectorBucketName=self._name, indexName=index, **parameters)
        except ClientError as error:
            details = error.response["Error"]
            status = error.response["ResponseMetadata"].get("HTTPStatusCode", 500)
            raise refusal(index, details.get("Code", ""), details.get("Message", ""), status) from error
        except BotoCoreError as error:
            raise StoreUnavailable("S3 Vectors does not respond. Try again.", unsure=True) from error

    def _client(self) -> VectorsClient:
        # Making a client takes long, and several threads may need the first one at once.
        with self._lock:
            if self._made is None:
                self._made = self._connect()
            return self._made


def refusal(index: str, code: str, message: str, status: int) -> StintError:
    """Return the error for an answer with an error code."""
    if code == "ServiceQuotaExceededException":
        return StoreUnavailable(f"A quota of S3 Vectors is exhausted: {message}")
    if code in TRY_AGAIN or status >= 500:
        return StoreUnavailable("S3 Vectors is overloaded or down. Try again.", unsure=status >= 500)
    if code == "NotFoundException":
        return NotFound("Vector index", index)
    if code == "ConflictException":
        return Conflict(f"Vector index {index!r} exists already.")
    if code == "ValidationException":
        return InvalidRequest(f"S3 Vectors refused the request: {message}")
    return StintError(f"S3 Vectors refused the request ({code}). Check the permissions of the function.")
