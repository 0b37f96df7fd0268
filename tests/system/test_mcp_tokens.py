"""`make run AUTH=on` with an issuer of tokens: how a client of MCP finds it, and which tokens the endpoint takes."""

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.servers.issuer import Issuer, jwk_of, rsa_key, sign
from tests.servers.ports import free_port
from tests.system.run_process import Run

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


class TokenRun:
    """A running cloud whose tokens are for the URL of its MCP endpoint."""

    def __init__(self, run: Run, issuer: Issuer) -> None:
        self.issuer = issuer
        self.base = f"http://127.0.0.1:{run.port}"
        self.endpoint = f"{self.base}/v1/mcp"

    def token(self, audience: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer.url, "aud": audience, "sub": "ann", "scope": "use", "iat": now, "exp": now + 600}
        return sign({"alg": "RS256", "kid": "one"}, claims, rsa_key("one"), "RS256")

    def list_tools(self, token: str | None) -> httpx.Response:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return httpx.post(self.endpoint, json=CALL, headers=headers, trust_env=False, timeout=60)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenRun]:
    port = free_port()
    with Issuer() as issuer:
        issuer.publish(jwk_of(rsa_key("one"), "one"))
        shell = {
            "STINT_OIDC_ISSUER": issuer.url,
            "STINT_OIDC_AUDIENCE": f"http://127.0.0.1:{port}/v1/mcp",
            "STINT_OIDC_TENANT": "people",
            "PYTHONPATH": "layers/core:.",
        }
        run = Run(tmp_path_factory.mktemp("tokens"), port, "--auth", "on", shell=shell)
        run.read_until("Ctrl-C stops")
        yield TokenRun(run, issuer)
        run.stop()


def test_a_refusal_leads_to_the_issuer(cloud: TokenRun) -> None:
    refused = cloud.list_tools(None)

    assert refused.status_code == 401
    (place,) = re.findall('resource_metadata="([^"]+)"', refused.headers["www-authenticate"])
    document: dict[str, Any] = httpx.get(place, trust_env=False, timeout=60).json()
    assert document["resource"] == cloud.endpoint
    assert document["authorization_servers"] == [cloud.issuer.url]


@pytest.mark.parametrize(("audience", "status"), [("/v1/mcp", 200), ("/v1/other", 401)])
def test_a_token_is_taken_only_for_this_endpoint(cloud: TokenRun, audience: str, status: int) -> None:
    answer = cloud.list_tools(cloud.token(cloud.base + audience))

    assert answer.status_code == status, answer.text
    assert ("tools" in answer.json().get("result", {})) == (status == 200)
