"""Calls with an idempotency key: each runs once, whatever ids its client gives the JSON-RPC requests.

A client that repeats a call counts on, so the bodies of the two requests differ in the id and the token of progress.
The key's record gets neither: the body that is compared has what the call means, and the stored answer has marks in
place of both, which are replaced on the way to each client. A mark cannot be forged by a text in an answer, because a
quote inside a JSON string is escaped.
"""

import json
from collections.abc import Awaitable, Callable

from fastapi import Response
from starlette.types import Message, Receive, Scope, Send

from stint.caller import EarlierRunUnavailable
from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.http.attempts import receive_body
from stint.http.idempotency import handle_once
from stint.http.json_rpc import MessageId
from stint.http.scopes import Repetition, RouteRule
from stint.mcp_server.schemas import CallParams, Token

RULE = RouteRule("use", Repetition(keeps_id=True, is_followed=True), has_secret=False)
"""The key's record keeps the id of what the call creates, and a repetition follows the call that still runs."""

ID_MARK, TOKEN_MARK = "stint-message-id", "stint-progress-token"
ID_MEMBER, TOKEN_MEMBER = f'"id":"{ID_MARK}"'.encode(), f'"progressToken":"{TOKEN_MARK}"'.encode()
END = b"\n\n"
"""The end of an event of a stream."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The id and the token of a request, in place of the marks of a stored answer."""

    message_id: MessageId
    token: Token | None

    def replace(self, body: bytes) -> bytes:
        """Return a part of an answer for this request. Progress is left out if the request has no token."""
        if ID_MEMBER not in body and TOKEN_MEMBER not in body:
            return body
        events = body.split(END)
        if self.token is None:
            events = [event for event in events if TOKEN_MEMBER not in event]
        return END.join(map(self.replace_in_one, events))

    def replace_in_one(self, event: bytes) -> bytes:
        event = event.replace(ID_MEMBER, b'"id":%b' % json.dumps(self.message_id).encode(), 1)
        return event.replace(TOKEN_MEMBER, b'"progressToken":%b' % json.dumps(self.token).encode(), 1)


class KeyedCall(Response):
    """The response of a call with a key. `run` returns that of the call, with marks; `refuse` that of an error."""

    def __init__(
        self,
        params: CallParams,
        marks: Marks,
        run: Callable[[], Awaitable[Response]],
        refuse: Callable[[StintError], Response],
        *,
        form: str,
    ) -> None:
        super().__init__()
        self.compared = body_of(params, form)
        self.marks, self.run, self.refuse = marks, run, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            response = await self.run()
            await response(scope, receive, send)

        async def send_replaced(message: Message) -> None:
            if message["type"] == "http.response.start":  # what is put for the marks may have another length
                kept = [header for header in message["headers"] if header[0] != b"content-length"]
                message = {**message, "headers": kept}
            elif message["type"] == "http.response.body":
                message = {**message, "body": self.marks.replace(message.get("body", b""))}
            await send(message)

        try:
            await handle_once(handle, RULE, scope, receive_body(self.compared, receive), send_replaced)
        except EarlierRunUnavailable:
            raise
        except StintError as error:
            await self.refuse(error)(scope, receive, send)


def with_mark(params: CallParams) -> CallParams:
    """Return the parameters of a call with the mark in place of its token of progress, if it has one."""
    token = None if params.meta.progress_token is None else TOKEN_MARK
    return params.model_copy(update={"meta": params.meta.model_copy(update={"progress_token": token})})


def body_of(params: CallParams, form: str) -> bytes:
    """Return what a call means. `form` is the revision and the form of the answer, in which a repetition gets it."""
    meaning = params.model_dump(mode="json", exclude={"meta": {"progress_token"}}, exclude_none=True)
    return json.dumps([form, meaning], sort_keys=True).encode()
