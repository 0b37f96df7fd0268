"""Credentials of one tenant each for the requests of a botocore client, which all tenants of a process share."""

import asyncio
from typing import Any

from stint.aws.credentials import CredentialsSource

MISSING = {"HeadObject": "404"}
"""Operations whose refusal means a missing object, with the code of that; see `stint.aws.s3_reader`."""


def sign_with(client: Any, credentials: CredentialsSource) -> None:
    """Sign each request of a client with credentials that are valid when it is sent.

    The client's methods run in threads without an event loop, which have the context of the request.
    """
    service = client.meta.service_model.service_id.hyphenize()

    def set_credentials(params: dict[str, Any], **_: Any) -> None:
        from botocore.credentials import Credentials  # noqa: PLC0415 - loaded with the client

        found = asyncio.run(credentials.get())
        signing = params["context"].setdefault("signing", {})
        signing["request_credentials"] = Credentials(found.access_key, found.secret_key, found.token or None)

    client.meta.events.register(f"before-call.{service}", set_credentials)
    for operation in MISSING if service == "s3" else ():
        client.meta.events.register(f"after-call.s3.{operation}", report_missing)


def report_missing(parsed: dict[str, Any], model: Any, **_: Any) -> None:
    """Change the answer for a refused read to that for a missing object."""
    if parsed["ResponseMetadata"]["HTTPStatusCode"] == 403 and parsed["Error"]["Code"] in ("AccessDenied", "403"):
        parsed["Error"]["Code"] = MISSING[model.name]
        parsed["ResponseMetadata"]["HTTPStatusCode"] = 404
