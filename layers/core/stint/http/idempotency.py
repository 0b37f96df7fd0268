"""Requests with the header Idempotency-Key: they run once, and repetitions get the first one's answer.

This module reads the key, records the answer on its way to the client, and sends it again. The lease, under which one
of several equal requests runs, is in `stint.services.idempotency.requests`. Its `acquire` decides what becomes of a
request:

    `acquire` returns              the request
    an OpenRequest                 runs, with the object id of the record
    one that was taken over        runs as `repeated`: the service looks for the object of the first request before it
                                   creates one
    a StoredAnswer                 gets it, with `idempotent-replayed: true`
    None                           was answered by `follow`, with the run of the request that holds the lease

How a request that ran has ended decides what its repetition finds:

    the request                                           the record                  a repetition
    succeeds                                              has the answer              gets it
    succeeds, and the answer has a secret                 has a 409 in its place      gets the 409
    fails with 4xx, before it starts a run                is removed                  runs
    fails otherwise, and the route keeps the object id    is free, with the id        finds what was created
    fails otherwise, and the route keeps no id            is removed                  runs
    fails after it was taken over, or after it sent a     is free, with the id        finds what was created
    call that must not be sent twice
    resumes a turn, and streams its failure               has the answer              gets it
    is a call by JSON-RPC, however it ends                is free, with the id        finds what was created
    is cancelled, or its process dies                     is held until it lapses     waits, then takes over

The status is sent before a stream fails, so failures are also read from the last event. The answer
is stored before its last part is sent, so no client has it before the record does.

docs/decisions.md, entry 55, has the reasons.
"""

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stint.caller import NO_ATTEMPT, EarlierRunUnavailable, RequestAttempt, end_users_of, require_principal, set_attempt
from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.idempotency import StoredAnswer
from stint.http.attempts import hash_body, hash_call, place_of_request, read_body, receive_body
from stint.http.deadline import deadline_of
from stint.http.errors import document_of, headers_of, status_of
from stint.http.scopes import RouteRule
from stint.http.sse import COMMENT, COMMENT_LINE, DONE
from stint.services.idempotency.requests import Follow, IdempotentRequests, OpenRequest

IDEMPOTENCY_KEY = "idempotency-key"
REPLAYED = (b"idempotent-replayed", b"true")
KEY = re.compile(r"[\x20-\x7e]{1,256}")
RUN_IDS = (b'"turn_id":', b'"response_id":')
"""Fields of the body of an error after the start of a run."""

USER_FIELDS = ("user", "safety_identifier")
MAY_NAME_USERS = (b'"user"', b'"safety_identifier"', b"\\u00")
"""Parts of each body that names an end user, whose fields may be written with escapes."""

KEPT_HEADERS = ("content-type", "x-accel-buffering", "stint-session-id")

RETURNED_ONCE = (
    "A request with this Idempotency-Key created an API key, whose secret was returned once and is not stored. "
    "POST /v1/admin/keys/{key_id}/rotate returns a new secret of a key; GET /v1/admin/keys lists the keys."
)

ENDINGS = frozenset({"turn_complete", "turn_awaiting_input"})
RUN_FINISHED = "RUN_FINISHED"
FAILURES = frozenset({"response.failed", "error", "RUN_ERROR"})
"""The types of the last events of turns and runs that ended, and of responses and runs that failed."""


async def handle_once(handle: ASGIApp, rule: RouteRule, scope: Scope, receive: Receive, send: Send) -> None:
    """Run a request unless it was run before; otherwise send the answer of the first one. `rule` is its route's.

    A turn or response that another request runs is followed. A request that only reads runs each time.

    Raises:
        InvalidRequest: the key is not valid.
        IdempotencyKeyReused: the key was sent with another body.
        RequestRunning: the first request runs longer than this one may.
    """
    key = key_of(Headers(scope=scope))
    if not rule.repeated.is_remembered:
        await handle(scope, receive, send)
        return
    body, receive_again = await read_body(receive)
    requests: IdempotentRequests = scope["app"].state.make_services(require_principal().tenant).idempotent_requests
    body_hash = hash_call(body) if rule.repeated.is_call else hash_body(Headers(scope=scope), body)
    if body_hash is None:
        await handle(scope, receive_again, send)
        return
    deadline = deadline_of(Request(scope))
    follow = make_follow(handle, scope, body, receive, send=send) if rule.repeated.is_followed else None
    request = await requests.acquire(digest_of(scope, key), body_hash, deadline, follow)
    if request is None:
        return
    if isinstance(request, StoredAnswer):
        await replay(request, send)
        return
    attempt = attempt_of(request)
    set_attempt(attempt)
    # Answers to administrators are not in the table of end users, whom they may name.
    users = () if rule.scope == "admin" else end_users_of(*users_in(body))
    recorder = AnswerRecorder(send, request, attempt, rule, users=users)
    del body, follow  # a large body would take memory until the end of the request
    try:
        await handle(scope, receive_again, recorder.send)
    except Exception:
        await recorder.note_failure(may_have_begun=True)
        raise
    finally:
        set_attempt(NO_ATTEMPT)
        request.stop_renewal()


def attempt_of(request: OpenRequest) -> RequestAttempt:
    """Return the attempt of a request that this process runs."""
    record = request.keeper.lease
    return RequestAttempt(
        object_id=record.object_id,
        repeated=record.taken_over,
        rename=record.put_object_id,
        mark_sent=record.mark_sent,
        sent=record.sent,
    )


def make_follow(handle: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send) -> Follow:
    """Return the function that answers a request with the run of the first one, which another request runs."""

    async def follow(object_id: str) -> bool:
        set_attempt(RequestAttempt(object_id=object_id, repeated=True, follows=True))
        try:
            await handle(scope, receive_body(body, receive), mark_replayed(send))
        except EarlierRunUnavailable:
            return False
        finally:
            set_attempt(NO_ATTEMPT)
        return True

    return follow


def key_of(headers: Headers) -> str:
    """Return the key of a request. Raises InvalidRequest."""
    keys = headers.getlist(IDEMPOTENCY_KEY)
    if len(keys) != 1 or KEY.fullmatch(keys[0]) is None:
        message = "Idempotency-Key must be sent once, with 1 to 256 printable ASCII characters, such as a UUID."
        raise InvalidRequest(message, param=IDEMPOTENCY_KEY)
    return keys[0]


def digest_of(scope: Scope, key: str) -> str:
    """Return the SHA-256 of a key with its caller, its end user and its route."""
    return sha256(json.dumps([*place_of_request(scope), key]).encode()).hexdigest()


def users_in(body: bytes) -> list[str]:
    """Return the end users that a body in JSON names."""
    if not any(each in body for each in MAY_NAME_USERS):
        return []
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        return []
    named = [sent.get(name) for name in USER_FIELDS] if isinstance(sent, dict) else []
    return [each for each in named if isinstance(each, str)]


def mark_replayed(send: Send) -> Send:
    """Return a function that sends an answer as that of an earlier request."""

    async def send_marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], REPLAYED]}
        await send(message)

    return send_marked


async def replay(answer: StoredAnswer, send: Send) -> None:
    """Send a stored answer. The end marker of a stream is a write of its own, as in the first answer."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
    body = answer.body.encode()
    await send({"type": "http.response.start", "status": answer.status, "headers": [*headers, REPLAYED]})
    if body.endswith(DONE):
        await send({"type": "http.response.body", "body": body.removesuffix(DONE), "more_body": True})
        body = DONE
    await send({"type": "http.response.body", "body": body})


class AnswerRecorder:
    """Stores the answer of a request before its last part is sent.

    An answer in JSON is sent as a whole at its end, except for the blanks that keep a connection open. Nothing is kept
    of a request that failed.
    """

    def __init__(
        self, send: Send, request: OpenRequest, attempt: RequestAttempt, rule: RouteRule, users: Sequence[str]
    ) -> None:
        self._send = send
        self._request = request
        self._rule = rule
        self._users = users
        self._owners, self._ends = attempt.owners, attempt.ends
        self._status = 0
        self._headers = Headers()
        self._parts: list[bytes] = []

    async def send(self, message: Message) -> None:
        """Send a message of the answer."""
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], Headers(raw=message["headers"])
            await self._send(message)
        elif message["type"] != "http.response.body":
            await self._send(message)
        else:
            await self._send_part(message)

    async def _send_part(self, message: Message) -> None:
        part = message.get("body", b"")
        self._parts += [part] if part.strip() and part not in (COMMENT, COMMENT_LINE) else []
        if not message.get("more_body", False):
            await self._finish()
            part = b"".join(self._parts) if self._is_json else part
        elif self._is_json and part.strip():
            return
        await self._send({**message, "body": part})

    async def note_failure(self, *, may_have_begun: bool) -> None:
        """Remember nothing of a request that failed, except for the id of the object that it may have created.

        An earlier process may have created it even if this one did nothing. A call that was sent is remembered, too.
        """
        record = self._request.keeper.lease
        if record.taken_over or record.sent or (may_have_begun and self._rule.repeated.keeps_id):
            await self._request.release()
        else:
            await self._request.forget()

    @property
    def _is_json(self) -> bool:
        return self._headers.get("content-type", "").startswith("application/json")

    def _has_failed(self, body: bytes) -> bool:
        """Return whether the answer is not to be remembered. A failed run that is stored is found by its id."""
        if self._status >= 400 or (self._is_json and body.startswith(b'{"error":')):
            return True
        if not self._headers.get("content-type", "").startswith("text/event-stream"):
            return self._rule.repeated.is_followed and is_failed_run(body)
        last = read_last_event(body)
        if is_failure(last):
            return self._rule.repeated.keeps_id or "turn_id" not in (last.get("error") or ())
        return self._rule.repeated.is_followed and not (body.endswith(DONE) or is_ending(last))

    async def _finish(self) -> None:
        body = b"".join(self._parts)
        if self._rule.repeated.is_call or self._has_failed(body):
            begun = any(name in body for name in RUN_IDS)
            await self.note_failure(may_have_begun=begun or not 400 <= self._status < 500)
            return
        headers = {name: self._headers[name] for name in KEPT_HEADERS if name in self._headers}
        answer = StoredAnswer(status=self._status, headers=headers, body=body.decode())
        kept = refusal_of_secret() if self._rule.has_secret else answer
        await self._request.finish(kept, self._users, self._owners, self._ends)


def refusal_of_secret() -> StoredAnswer:
    """Return the answer of a repetition whose first answer had a secret."""
    error = Conflict(RETURNED_ONCE, code="secret_returned")
    headers = {"content-type": "application/json"} | headers_of(error)
    return StoredAnswer(status=status_of(error), headers=headers, body=json.dumps(document_of(error)))


def read_last_event(body: bytes) -> dict[str, Any]:
    """Return the data of the last event of a stream, without its end marker; empty if it is not an object."""
    frame = body.removesuffix(DONE).strip().rpartition(b"\n\n")[2]
    data = b"".join(line[5:] for line in frame.splitlines() if line.startswith(b"data:"))
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_failure(event: dict[str, Any]) -> bool:
    """Return whether an event of any API ends a run that failed."""
    return isinstance(event.get("error"), dict) or event.get("type") in FAILURES


def is_ending(event: dict[str, Any]) -> bool:
    """Return whether an event ends the stream of a turn: that of Llama Stack or of AG-UI."""
    if event.get("type") == RUN_FINISHED:
        return True
    inner = event.get("event")
    payload = inner.get("payload") if isinstance(inner, dict) else None
    return isinstance(payload, dict) and payload.get("event_type") in ENDINGS


def is_failed_run(body: bytes) -> bool:
    """Return whether the document of a turn or response has failed."""
    if b'"failed"' not in body:
        return False
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("status") == "failed"
