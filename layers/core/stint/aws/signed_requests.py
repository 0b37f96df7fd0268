"""Single requests to a service, each on a connection of its own, for what a process rarely asks for."""

from collections.abc import Mapping

from stint.aws.credentials import Credentials
from stint.aws.endpoints import service_endpoint
from stint.aws.environment import AwsEnvironment
from stint.aws.signature import ROOT, Target, amz_date, authorize
from stint.http1.connector import Connector
from stint.http1.parser import HttpResponse

TIMEOUT_SECONDS = 3.0


class SignedRequests:
    """Sends requests to a service, such as `sts`, in the region of the environment."""

    def __init__(self, environment: AwsEnvironment, service: str) -> None:
        self._service, self._region = service, environment.region
        self._endpoint = endpoint = service_endpoint(environment, service)
        proxy = environment.proxy(endpoint.scheme, endpoint.host, endpoint.port)
        bundle = environment.get("AWS_CA_BUNDLE")
        self._connector = Connector(endpoint, proxy, ca_bundle=bundle, timeout=TIMEOUT_SECONDS)

    async def send(
        self,
        credentials: Credentials,
        signed_at: float,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        target: Target = ROOT,
        unsigned: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send a request with signed and unsigned headers, whose names are in lower case.

        Raises OSError or MalformedResponse if there is no valid response.
        """
        own = {"host": self._endpoint.authority, "x-amz-date": amz_date(signed_at)}
        if credentials.token:
            own["x-amz-security-token"] = credentials.token
        signed = dict(sorted({**headers, **own}.items()))
        authorization = authorize(credentials, signed, body, region=self._region, service=self._service, target=target)
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**signed, **(unsigned or {})}.items())
        head = (
            f"{target.method} {self._connector.target[:-1]}{target.text} HTTP/1.1\r\n{self._connector.headers}{lines}"
            f"authorization: {authorization}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        # Never reused, because a process sends such requests rarely.
        connection = await self._connector.connect()
        try:
            return await connection.send(head.encode("latin-1") + body, TIMEOUT_SECONDS)
        finally:
            connection.abort()
