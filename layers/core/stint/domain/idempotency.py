"""The answers of requests with an idempotency key."""

from stint.domain.schema import Schema


class StoredAnswer(Schema):
    """The answer of a request, which its repetitions get. `headers` are those that its body needs."""

    status: int
    headers: dict[str, str]
    body: str
