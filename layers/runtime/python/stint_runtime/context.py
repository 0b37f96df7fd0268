"""The Lambda context, with the attributes of the managed Python runtime.

https://docs.aws.amazon.com/lambda/latest/dg/python-context.html
"""

import json
import time
from collections.abc import Mapping
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

from stint_runtime.client import Invocation

_CLIENT = ("installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name")


class LambdaContext:
    """Metadata of an invocation.

    `route_timeout_ms` is the integration's timeout (API Gateway's TimeoutInMillis). After it, the client is
    disconnected even if the function itself has time left. `xray_trace_id` is the value of X-Amzn-Trace-Id, which the
    environment variable _X_AMZN_TRACE_ID has only in a process that takes one event at a time.
    """

    def __init__(self, invocation: Invocation, environment: Mapping[str, str], route_timeout_ms: int | None) -> None:
        headers = invocation.headers
        self.aws_request_id = invocation.request_id
        self.invoked_function_arn = headers.get("lambda-runtime-invoked-function-arn", "")
        self.xray_trace_id = headers.get("lambda-runtime-trace-id", "")
        self.tenant_id = headers.get("lambda-runtime-aws-tenant-id")
        self.function_name = environment.get("AWS_LAMBDA_FUNCTION_NAME", "")
        self.function_version = environment.get("AWS_LAMBDA_FUNCTION_VERSION", "")
        self.memory_limit_in_mb = environment.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
        self.log_group_name = environment.get("AWS_LAMBDA_LOG_GROUP_NAME", "")
        self.log_stream_name = environment.get("AWS_LAMBDA_LOG_STREAM_NAME", "")
        self.client_context = _client_context(headers.get("lambda-runtime-client-context"))
        self.identity = _identity(headers.get("lambda-runtime-cognito-identity"))
        route_deadline = invocation.received_ms + route_timeout_ms if route_timeout_ms else invocation.deadline_ms
        self._deadline_ms = min(invocation.deadline_ms, route_deadline)

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the function or its route times out, whichever is first, but at least 0."""
        return max(0, self._deadline_ms - time.time_ns() // 1_000_000)


current_context: ContextVar[LambdaContext | None] = ContextVar("current_context", default=None)
"""The context of the invocation in whose tasks and threads the code runs."""


def _client_context(text: str | None) -> SimpleNamespace | None:
    """Return the client context: `custom` and `env` as dicts, `client` with attributes."""
    if not text:
        return None
    fields: dict[str, Any] = json.loads(text)
    client = fields.get("client")
    return SimpleNamespace(
        custom=fields.get("custom"),
        env=fields.get("env"),
        client=client and SimpleNamespace(**{name: client.get(name) for name in _CLIENT}),
    )


def _identity(text: str | None) -> SimpleNamespace:
    fields = json.loads(text) if text else {}
    return SimpleNamespace(
        cognito_identity_id=fields.get("cognitoIdentityId"),
        cognito_identity_pool_id=fields.get("cognitoIdentityPoolId"),
    )
