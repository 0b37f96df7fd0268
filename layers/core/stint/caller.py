"""The caller of the current request, the end user for whom it acts, and the attempt that it is of its client.

Outside of a request, the tenant of the worker's task.

All tasks of a request share them.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import TypeVar

from stint.dataclasses import dataclass, field, replace
from stint.domain.errors import Forbidden, NotFound, Unauthenticated
from stint.domain.ids import derive_ids, new_id
from stint.domain.principals import Principal, Scope, matches_model
from stint.log_keys import add_log_keys


@dataclass(frozen=True, slots=True)
class RequestAttempt:
    """An attempt of a client to send a request that creates something.

    All attempts of a request have the same `fingerprint`, which is empty if retries are not to be found. `retry_count`
    is the number of attempts before this one. `retry_of` is the id of the failed run that this attempt repeats.

    A request with an idempotency key has the `object_id` of what it creates, which `rename` replaces. `repeated`: an
    earlier attempt may have created it. `follows`: the earlier one runs, so that this one only follows its run.
    `owners` are the hashes of the end users to whom its answer belongs. `ends` are the times at which the objects
    expire that its answer shows, in seconds since 1970. `mark_sent` notes in the key's record that it has sent a call
    that must not be sent again. `sent`: an earlier attempt has noted that.

    `expires_at` is the end of what a request that has waited creates, 0 if there is none or it has not waited. `claim`
    is called with the id of the run before anything of the run is stored.
    """

    fingerprint: str = ""
    retry_count: int = 0
    retry_of: str = ""
    object_id: str = ""
    repeated: bool = False
    rename: Callable[[str], Awaitable[None]] | None = None
    owners: set[str] = field(default_factory=set, compare=False)
    ends: set[int] = field(default_factory=set, compare=False)
    follows: bool = False
    expires_at: int = 0
    mark_sent: Callable[[], Awaitable[None]] | None = None
    sent: bool = False
    claim: Callable[[str], Awaitable[None]] | None = None

    @property
    def is_retry(self) -> bool:
        """Whether an earlier attempt may have created what this one is to create."""
        return self.repeated or bool(self.fingerprint and self.retry_count)

    async def record_run(self, run_id: str) -> None:
        """Record the id of the run that this attempt starts, before the run is stored. Raises StintError."""
        if self.claim is not None:
            await self.claim(run_id)
        if self.rename is not None and run_id != self.object_id:
            await self.rename(run_id)

    async def renewed(self) -> "RequestAttempt":
        """Return this attempt with a new id of what it creates. A record with the old one may exist in part.

        Raises Interrupted if another process runs the request by now.
        """
        object_id = new_id()
        if self.rename is not None:
            await self.rename(object_id)
        return replace(self, object_id=object_id, repeated=False)


class EarlierRunUnavailable(Exception):
    """The attempt that a request is to follow has stored nothing yet, or has failed."""


NO_ATTEMPT = RequestAttempt()
USER_HASH_DIGITS = 32

T = TypeVar("T")

_principal: ContextVar[Principal | None] = ContextVar("principal", default=None)
_end_user: ContextVar[str | None] = ContextVar("end_user", default=None)
_attempt: ContextVar[RequestAttempt] = ContextVar("attempt", default=NO_ATTEMPT)
_tenant: ContextVar[str] = ContextVar("tenant", default="")


def set_principal(principal: Principal | None) -> None:
    """Set the principal of the following code in this context, and of the tasks that it starts."""
    _principal.set(principal)


def log_principal(principal: Principal | None) -> None:
    """Add a principal to the following log lines of the request."""
    if principal is not None:
        add_log_keys(tenant=principal.tenant, subject=principal.subject, key_id=principal.key_id or None)


@contextmanager
def acting_as(principal: Principal | None) -> Iterator[None]:
    """Run the body, and the tasks that it starts, for another principal than the current one. Log lines name it."""
    log_principal(principal)
    current = _principal.set(principal)
    try:
        yield
    finally:
        _principal.reset(current)


def set_end_user(user: str | None) -> None:
    """Set the end user for whom the following code acts, as `set_principal`."""
    _end_user.set(user)


def find_end_user() -> str | None:
    """Return the end user that the request's header names."""
    return _end_user.get()


def end_users_of(*named: str | None) -> list[str]:
    """Return the end users that the request's body and its header name, each once."""
    return list(dict.fromkeys(filter(None, (*named, find_end_user()))))


def hash_end_user(user: str) -> str:
    """Return a hash of an end user of the current tenant, which names them outside of the table."""
    return sha256(f"{find_tenant()}:{user}".encode(errors="surrogatepass")).hexdigest()[:USER_HASH_DIGITS]


def record_owners(hashes: Iterable[str]) -> None:
    """Note to whom an object belongs that the current request uses, so that its stored answer belongs to them, too."""
    attempt = find_attempt()
    if attempt.object_id:
        attempt.owners.update(hashes)


def record_end(expires_at: int | None) -> None:
    """Note when an object expires that the answer of the current request shows, so that the stored answer does, too."""
    attempt = find_attempt()
    if attempt.object_id and expires_at is not None:
        attempt.ends.add(expires_at)


def set_attempt(attempt: RequestAttempt) -> None:
    """Set the attempt that the current request is, as `set_principal`."""
    _attempt.set(attempt)


def find_attempt() -> RequestAttempt:
    """Return the attempt that the current request is. One without a fingerprint is not compared with others."""
    return _attempt.get()


def next_object_id() -> str:
    """Return the id of what the current request creates: that of its idempotency key, or a new one."""
    return find_attempt().object_id or new_id()


def next_object_ids(count: int) -> list[str]:
    """Return the ids of several objects that the current request creates, in their order, as `next_object_id`."""
    object_id = find_attempt().object_id
    return derive_ids(object_id, count) if object_id else [new_id() for _ in range(count)]


async def create_once(find: Callable[[str], Awaitable[T]], create: Callable[[str], Awaitable[T]]) -> T:
    """Return what an earlier request with the current idempotency key created, or create it.

    `create` gets the id that the key's record has, or a new one without a key. `find` returns the object with an id,
    and raises NotFound if there is none. Raises as both do, and Interrupted if another process runs the request by now.
    """
    attempt = find_attempt()
    if not attempt.repeated:
        return await create(next_object_id())
    try:
        return await find(attempt.object_id)
    except NotFound:
        renewed = await attempt.renewed()
        set_attempt(renewed)
        return await create(renewed.object_id)


def find_principal() -> Principal | None:
    """Return the principal of the current request, or None outside of a request."""
    return _principal.get()


def require_principal() -> Principal:
    """Return the principal of the current request. Raises Unauthenticated outside of one."""
    principal = _principal.get()
    if principal is None:
        raise Unauthenticated("The request has no authenticated caller.")
    return principal


def set_tenant(tenant: str) -> None:
    """Set the tenant of the following code in this context, which has no caller. Empty: none."""
    _tenant.set(tenant)


def find_tenant() -> str:
    """Return the tenant whose data the current code may use: the caller's, or else that of the task. Empty: none."""
    principal = _principal.get()
    return principal.tenant if principal is not None else _tenant.get()


def find_call_depth() -> int:
    """Return how many calls of agents have led to the current code (`domain/call_depth.py`)."""
    principal = _principal.get()
    return principal.call_depth if principal is not None else 0


def raise_call_depth(depth: int) -> None:
    """Raise the depth of the following code in this context to `depth`, unless it is larger already.

    Nothing lowers it: one request may name several, and a turn keeps the one with which it began.
    """
    principal = _principal.get()
    if principal is not None and depth > principal.call_depth:
        _principal.set(replace(principal, call_depth=depth))


def require_tenant() -> str:
    """Return the tenant as `find_tenant`. Raises RuntimeError if there is none."""
    tenant = find_tenant()
    if not tenant:
        raise RuntimeError("A tenant's data is used by code that has neither a caller nor a task.")
    return tenant


def require_scope(scope: Scope) -> None:
    """Check that the caller of the current request has a scope.

    Raises:
        Unauthenticated: this is not part of a request.
        Forbidden: the caller lacks the scope.
    """
    if not require_principal().has_scope(scope):
        message = f"This request needs the scope {scope!r}. Use a key or token that has it."
        raise Forbidden(message, code="insufficient_scope", scope=scope)


def require_any_scope() -> None:
    """Check that the caller of the current request has a scope, as `require_scope`."""
    if not require_principal().scopes:
        raise Forbidden(
            "This request needs a scope of this API. Use a key or token that has one.", code="insufficient_scope"
        )


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """The models that a tenant may use, and its current caller. `patterns` are the tenant's own; empty: all."""

    patterns: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Return whether there are models that the tenant or the caller may not use."""
        principal = _principal.get()
        return bool(self.patterns) or (principal is not None and bool(principal.models))

    def allows(self, model_id: str) -> bool:
        """Return whether tenant and caller may use a model, by its full id. Without a caller, the tenant decides."""
        principal = _principal.get()
        of_caller = principal is None or principal.may_use_model(model_id)
        return of_caller and matches_model(self.patterns, model_id)

    def require(self, model_id: str) -> None:
        """Check that tenant and caller may use a model, by its full id. Raises Forbidden."""
        if not self.allows(model_id):
            message = f"The caller may not use the model {model_id!r}. GET /v1/models lists the models of the caller."
            raise Forbidden(message, code="model_not_allowed", param="model")


ALL_MODELS = ModelAccess()
