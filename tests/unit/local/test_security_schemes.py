from typing import Any

import pytest
from infra.local.errors import LocalCloudError
from infra.local.intrinsics import Resolver
from infra.local.security_schemes import Authorizer, SecuritySchemes

URI = (
    "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/arn:aws:lambda:us-east-1:0:function:auth/invocations"
)


def read(scheme: dict[str, Any], security: list[dict[str, list[str]]] | None = None) -> Authorizer | None:
    schemes = SecuritySchemes({"components": {"securitySchemes": {"Keys": scheme}}}, Resolver({"Ttl": 5}, {}, {}))
    return schemes.authorizer_of({"security": [{"Keys": []}] if security is None else security}, "GET /v1/agents")


def request_scheme(**changes: Any) -> dict[str, Any]:
    settings = {"type": "request", "authorizerUri": URI, "identitySource": "method.request.header.Authorization"}
    return {"type": "apiKey", "x-amazon-apigateway-authorizer": settings | changes}


def test_a_request_authorizer_has_its_function_its_headers_and_its_ttl() -> None:
    sources = "method.request.header.Authorization, method.request.header.X-Tenant"

    authorizer = read(request_scheme(authorizerResultTtlInSeconds={"Ref": "Ttl"}, identitySource=sources))

    assert authorizer == Authorizer("Keys", "auth", ("authorization", "x-tenant"), 5.0)


def test_results_are_cached_for_five_minutes_unless_the_template_sets_a_time() -> None:
    authorizer = read(request_scheme())

    assert authorizer is not None
    assert authorizer.ttl == 300


@pytest.mark.parametrize("security", [[], [{"NONE": []}]])
def test_a_route_without_a_scheme_is_open(security: list[dict[str, list[str]]]) -> None:
    assert read(request_scheme(), security) is None


@pytest.mark.parametrize(
    ("scheme", "problem"),
    [
        ({"type": "apiKey", "x-amazon-apigateway-authtype": "awsSigv4"}, "type REQUEST only, not awsSigv4"),
        (request_scheme(type="token"), "type REQUEST only"),
        (request_scheme(identitySource="method.request.querystring.key"), "headers as identity source"),
        (
            request_scheme(authorizerUri="arn:aws:apigateway:us-east-1:sns:path/x"),
            "is not the invocation of a function",
        ),
    ],
)
def test_an_authorizer_that_the_local_cloud_lacks_is_an_error(scheme: dict[str, Any], problem: str) -> None:
    with pytest.raises(LocalCloudError, match=problem):
        read(scheme)


def test_a_scheme_that_the_template_does_not_define_is_an_error() -> None:
    with pytest.raises(LocalCloudError, match="there is no security scheme Other"):
        read(request_scheme(), [{"Other": []}])


def test_two_schemes_of_a_method_are_an_error() -> None:
    with pytest.raises(LocalCloudError, match="one authorizer of a method"):
        read(request_scheme(), [{"Keys": []}, {"Other": []}])
