"""The answers that API Gateway gives by itself.

https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from infra.local.proxy_event import HttpRequest
from infra.local.proxy_response import Head
from infra.local.system import GatewayResponse


@dataclass(frozen=True)
class Refusal:
    """A case in which API Gateway answers: its type, its status and message unless the template has others."""

    type: str
    status: int
    message: str


NO_ROUTE = Refusal("MISSING_AUTHENTICATION_TOKEN", 403, "Missing Authentication Token")
FORBIDDEN = Refusal("ACCESS_DENIED", 403, "Forbidden")
TOO_LARGE = Refusal("REQUEST_TOO_LARGE", 413, "Request Too Long")
THROTTLED = Refusal("THROTTLED", 429, "Too Many Requests")
MALFORMED = Refusal("DEFAULT_5XX", 502, "Internal server error")
TIMED_OUT = Refusal("INTEGRATION_TIMEOUT", 504, "Endpoint request timed out")

_VARIABLE = re.compile(r"\$context\.([A-Za-z.]+[A-Za-z])")


def render(refusal: Refusal, request: HttpRequest, responses: Mapping[str, GatewayResponse]) -> tuple[Head, bytes]:
    """Status, headers and body of a refusal as the template has them, of its type or of DEFAULT_4XX or DEFAULT_5XX."""
    default = GatewayResponse(None, {}, '{"message": $context.error.messageString}')
    group = "DEFAULT_4XX" if refusal.status < 500 else "DEFAULT_5XX"
    response = responses.get(refusal.type) or responses.get(group) or default
    context = {
        "error.message": refusal.message,
        "error.messageString": json.dumps(refusal.message),
        "error.responseType": refusal.type,
        "httpMethod": request.method,
        "path": request.base_path + request.path,
        "requestId": request.request_id,
    }
    body = _VARIABLE.sub(lambda match: context.get(match[1], ""), response.template or default.template)
    headers = [*response.headers.items(), ("content-type", "application/json")]
    return Head(response.status or refusal.status, headers), body.encode()
