"""The operations of Lambda's public API that the product calls: Invoke and InvokeWithResponseStream.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html and API_InvokeWithResponseStream.html
"""

import json
import struct
from base64 import b64decode
from collections.abc import AsyncIterator, Collection
from zlib import crc32

from infra.local.functions import Functions, PayloadTooLarge, Throttled, UnknownFunction
from infra.local.invocation import Invocation
from infra.local.web_pages import App, refuse_web_pages
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

CLIENT_CONTEXT_LIMIT = 3583
_STRING = 7


class AccessDenied(Exception):
    """The caller may not invoke this function (403)."""


_ERRORS = {
    AccessDenied: (403, "AccessDeniedException"),
    UnknownFunction: (404, "ResourceNotFoundException"),
    Throttled: (429, "TooManyRequestsException"),
    PayloadTooLarge: (413, "RequestTooLargeException"),
}


def lambda_api(functions: Functions, allowed: Collection[str]) -> App:
    """Return the ASGI app. boto3's Lambda client finds it through AWS_ENDPOINT_URL_LAMBDA; web pages are refused.

    Only functions named in `allowed` can be invoked, as with the roles of the deployed functions.
    """

    def function_of(request: Request) -> str:
        name = _name(request)
        functions.require(name)
        if name not in allowed:
            raise AccessDenied(f"Not authorized to perform lambda:InvokeFunction on function:{name}: it is not a tool.")
        return name

    async def invoke(request: Request) -> Response:
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        name, event = function_of(request), await request.body() or b"{}"
        if kind == "DryRun":
            return Response(status_code=204)
        if kind == "Event":
            request_id = await functions.invoke_async(name, event)
            return Response(status_code=202, headers={"x-amzn-RequestId": request_id})
        return await _answer(await functions.invoke(name, event, stream=False, client_context=_client_context(request)))

    async def invoke_with_response_stream(request: Request) -> Response:
        invocation = await functions.invoke(function_of(request), await request.body() or b"{}", stream=True)
        headers = _headers(invocation) | {"X-Amzn-Remapped-Content-Type": invocation.content_type}
        return StreamingResponse(_events(invocation), 200, headers, "application/vnd.amazon.eventstream")

    app = Starlette(
        routes=[
            Route("/2015-03-31/functions/{name}/invocations", invoke, methods=["POST"]),
            Route(
                "/2021-11-15/functions/{name}/response-streaming-invocations",
                invoke_with_response_stream,
                methods=["POST"],
            ),
        ],
        exception_handlers={HTTPException: _refuse_request, **dict.fromkeys(_ERRORS, _refuse)},
    )
    return refuse_web_pages(app)


def _name(request: Request) -> str:
    """Return the function's name, from a name or an ARN, with or without a qualifier."""
    name: str = request.path_params["name"]
    return name.split(":function:")[-1].split(":")[0]


def _client_context(request: Request) -> str | None:
    """Return the JSON of the header; only a synchronous invocation uses it."""
    header = request.headers.get("x-amz-client-context")
    if header is None:
        return None
    try:
        context = json.loads(b64decode(header, validate=True))
    except ValueError:
        context = None
    if not isinstance(context, dict) or len(header) > CLIENT_CONTEXT_LIMIT:
        raise HTTPException(
            400, f"Client context must be a JSON object, at most {CLIENT_CONTEXT_LIMIT} bytes in Base64."
        )
    return json.dumps(context)


def _headers(invocation: Invocation) -> dict[str, str]:
    return {"x-amzn-RequestId": invocation.request_id, "X-Amz-Executed-Version": "$LATEST"}


async def _answer(invocation: Invocation) -> Response:
    body = await invocation.read()
    headers = _headers(invocation)
    if invocation.error:
        headers["X-Amz-Function-Error"] = "Unhandled"
        return Response(invocation.error.payload, 200, headers, "application/json")
    return Response(body, 200, headers, invocation.content_type)


async def _events(invocation: Invocation) -> AsyncIterator[bytes]:
    async for chunk in invocation.body():
        yield encode_event("PayloadChunk", "application/octet-stream", chunk)
    end: dict[str, str] = {}
    if error := invocation.error:
        end = {"ErrorCode": error.type, "ErrorDetails": error.payload.decode("utf-8", "replace")}
    yield encode_event("InvokeComplete", "application/json", json.dumps(end).encode())


def encode_event(event_type: str, content_type: str, payload: bytes) -> bytes:
    """Encode an event message of `application/vnd.amazon.eventstream`, which botocore can only decode.

    https://smithy.io/2.0/aws/amazon-eventstream.html
    """
    headers = _event_header(":message-type", "event") + _event_header(":event-type", event_type)
    headers += _event_header(":content-type", content_type)
    lengths = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
    message = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def _event_header(name: str, value: str) -> bytes:
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING, len(value)) + value.encode()


async def _refuse(_request: Request, error: Exception) -> Response:
    status, error_type = _ERRORS[type(error)]
    return _error(status, error_type, str(error))


async def _refuse_request(_request: Request, error: Exception) -> Response:
    status, detail = getattr(error, "status_code", 404), getattr(error, "detail", str(error))
    return _error(status, "InvalidRequestContentException" if status == 400 else "UnknownOperationException", detail)


def _error(status: int, error_type: str, message: str) -> Response:
    body = json.dumps({"Type": "User", "Message": message, "message": message})
    return Response(body, status, {"x-amzn-ErrorType": error_type}, "application/json")
