"""Signatures are those of botocore's own signer."""

from datetime import UTC, datetime
from unittest import mock

import botocore.auth
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given
from hypothesis import strategies as st

from stint.aws.credentials import Credentials
from stint.aws.signature import amz_date, authorize

VISIBLE = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
KEYS = st.text(VISIBLE, min_size=1, max_size=40)
LABELS = st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z0-9]", fullmatch=True)
PORTS = st.one_of(st.just(""), st.integers(1024, 65535).map(lambda port: f":{port}"))
MOMENTS = st.integers(0, 4_000_000_000)


@given(
    access_key=st.from_regex(r"[A-Z0-9]{16,20}", fullmatch=True),
    secret_key=KEYS,
    token=st.one_of(st.just(""), KEYS),
    region=LABELS,
    host=st.tuples(LABELS, PORTS).map("".join),
    operation=st.from_regex(r"[A-Z][A-Za-z]{0,20}", fullmatch=True),
    body=st.binary(max_size=200),
    moment=MOMENTS,
)
def test_a_signature_is_that_of_botocore(
    access_key: str, secret_key: str, token: str, region: str, host: str, operation: str, body: bytes, moment: int
) -> None:
    sent = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"DynamoDB_20120810.{operation}"}
    request = AWSRequest("POST", f"https://{host}/", headers=sent, data=body)
    with mock.patch.object(botocore.auth, "get_current_datetime", return_value=datetime.fromtimestamp(moment, UTC)):
        SigV4Auth(BotocoreCredentials(access_key, secret_key, token or None), "dynamodb", region).add_auth(request)
    headers = {
        "content-type": sent["content-type"],
        "host": host,
        "x-amz-date": amz_date(moment),
        **({"x-amz-security-token": token} if token else {}),
        "x-amz-target": sent["x-amz-target"],
    }

    authorization = authorize(Credentials(access_key, secret_key, token), headers, body, region=region)

    assert headers["x-amz-date"] == request.headers["X-Amz-Date"]
    assert authorization == request.headers["Authorization"]
