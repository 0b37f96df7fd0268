"""Origins of web pages that may send messages of MCP, and the metadata of the protected resource."""

from typing import Any

import pytest

from stint.domain.errors import NotFound
from stint.mcp_server.origins import is_allowed
from stint.mcp_server.protected_resource import describe_resource
from stint.settings import Settings

DOMAIN = "abc.execute-api.us-east-1.amazonaws.com"
LOCAL = ["127.0.0.1:8321"]


@pytest.mark.parametrize(
    ("origin", "allowed", "domain", "hosts", "expected"),
    [
        (f"https://{DOMAIN}", "", DOMAIN, [DOMAIN], True),
        (f"https://{DOMAIN.upper()}", "", DOMAIN, [DOMAIN], True),
        (f"http://{DOMAIN}", "", DOMAIN, [DOMAIN], False),
        (f"https://{DOMAIN}:8443", "", DOMAIN, [DOMAIN], False),
        ("https://evil.example", "", DOMAIN, ["evil.example"], False),
        ("http://localhost:3000", "", DOMAIN, [DOMAIN], False),
        ("https://app.example", "https://app.example", DOMAIN, [DOMAIN], True),
        ("https://app.example.evil", "https://app.example", DOMAIN, [DOMAIN], False),
        ("https://any.example", "*", DOMAIN, [DOMAIN], True),
        ("null", "", DOMAIN, [DOMAIN], False),
        ("", "", "", LOCAL, False),
        ("http://localhost:3000", "", "", LOCAL, True),
        ("http://[::1]:3000", "", "127.0.0.1:8321", LOCAL, True),
        ("http://evil.example", "", "", ["evil.example"], False),
        ("http://localhost", "", "", ["evil.example"], False),
        ("http://localhost.evil.example", "", "", LOCAL, False),
    ],
)
def test_only_known_origins_are_allowed(origin: Any, allowed: Any, domain: Any, hosts: Any, expected: Any) -> None:
    assert is_allowed(origin, allowed, domain, hosts) is expected


@pytest.mark.parametrize("audience", ["https://a.example/v1/mcp", "https://a.example/prod/v1/mcp"])
def test_the_resource_is_the_audience_of_tokens(audience: Any) -> None:
    found = describe_resource(Settings(oidc_issuer="https://issuer.example", oidc_audience=audience))
    assert (found.resource, found.authorization_servers) == (audience, ["https://issuer.example"])
    assert (found.scopes_supported, found.bearer_methods_supported) == (["use", "users:act"], ["header"])


@pytest.mark.parametrize(
    ("issuer", "audience"),
    [
        ("", "https://a.example/v1/mcp"),
        ("https://issuer.example", ""),
        ("https://issuer.example", "stint"),
        ("https://issuer.example", "https://a.example/v1/mcp/"),
        ("https://issuer.example", "https://a.example/"),
        ("https://issuer.example", "urn:a/v1/mcp"),
    ],
)
def test_there_is_no_resource_that_clients_would_refuse(issuer: Any, audience: Any) -> None:
    with pytest.raises(NotFound):
        describe_resource(Settings(oidc_issuer=issuer, oidc_audience=audience))
