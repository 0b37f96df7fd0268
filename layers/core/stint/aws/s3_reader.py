"""Reads of the objects of one bucket, without botocore.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
"""

from urllib.parse import quote

from stint.aws.credentials import Credentials, CredentialsSource
from stint.aws.endpoints import service_endpoint
from stint.aws.environment import AwsEnvironment
from stint.aws.errors import ServiceError
from stint.aws.service_client import USER_AGENT, Call, ClientOptions, ServiceClient
from stint.aws.signature import EMPTY_SHA256, Target, amz_date, authorize
from stint.aws.stored_objects import code_of
from stint.dataclasses import dataclass
from stint.http1.parser import HttpResponse
from stint.http1.urls import Origin

NO_SUCH_KEY = "NoSuchKey"
"""The code of an object that is missing."""


@dataclass(frozen=True, slots=True)
class S3Object:
    """The body of an object, or the part that was asked for, and its version."""

    body: bytes
    etag: str


class S3Reader(ServiceClient[S3Object | None]):
    """Client that gets objects, for any number of event loops and threads.

    Given credentials are those of one tenant at a time, which may not list the bucket. S3 answers 403 to them for a
    missing object, because 404 would reveal which keys exist.
    """

    max_body = None  # the objects are the stack's own

    def __init__(
        self,
        environment: AwsEnvironment,
        bucket: str,
        credentials: CredentialsSource | None = None,
        options: ClientOptions | None = None,
    ) -> None:
        origin, self._folder = service_endpoint(environment, "s3"), ""
        # A certificate of AWS has one label in front of the endpoint, and other servers have no names for buckets.
        if environment.endpoint_variable("S3") or "." in bucket:
            self._folder = f"/{bucket}"
        else:
            origin = Origin(origin.scheme, f"{bucket}.{origin.host}", origin.port)
        self._hides_missing = credentials is not None
        super().__init__(environment, origin, credentials, options or ClientOptions(read_timeout=20))

    async def get(self, key: str, *, part: str = "", known: str = "") -> S3Object | None:
        """Return an object, or None if its ETag is the known one. `part` is a range such as `bytes=0-9`.

        Raises ServiceError and NoResponse.
        """
        fields = f"range: {part}\r\n" if part else ""
        fields += f"if-none-match: {known}\r\n" if known else ""
        return await self._call(Call(f"{self._folder}/{quote(key, safe='/-_.~')}", b"", fields=fields))

    def _encode_head(self, call: Call, credentials: Credentials) -> bytes:
        call.signed_at = self._signature_clock()
        headers = {
            "host": self._host,
            "x-amz-content-sha256": EMPTY_SHA256,
            "x-amz-date": amz_date(call.signed_at),
        }
        if credentials.token:
            headers["x-amz-security-token"] = credentials.token
        target = Target("GET", call.operation)
        authorization = authorize(credentials, headers, b"", region=self._region, service="s3", target=target)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        return (
            f"GET {self._connector.target[:-1]}{call.operation} HTTP/1.1\r\n{self._connector.headers}{lines}"
            f"user-agent: {USER_AGENT}\r\nauthorization: {authorization}\r\n{call.fields}\r\n"
        ).encode("latin-1")

    def _decode(self, response: HttpResponse) -> S3Object | None:
        if response.status == 304:
            return None
        if response.status not in (200, 206):
            code = code_of(response)
            if response.status == 403 and code == "AccessDenied" and self._hides_missing:
                code = NO_SUCH_KEY
            raise ServiceError(code, response.status, headers=response.headers)
        return S3Object(response.body, response.headers.get("etag", ""))
