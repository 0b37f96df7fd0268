"""Retries as in the standard mode of AWS's SDKs: exponential backoff with full jitter, and a quota.

https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
"""

import random
import threading
from collections.abc import Callable, Mapping

BASE_SECONDS = 0.025
"""Backoff before the first retry at most, doubled for each further one."""
THROTTLED_BASE_SECONDS = 1.0
"""The same after throttling."""
MAX_SECONDS = 20.0
"""Longest backoff before the server prolongs it."""
MAX_ADDED_SECONDS = 5.0
"""Time by which a server can prolong the backoff."""

RETRY_COST = 14
"""Tokens of the quota that a retry takes. With 500, about 35 retries fail before calls are not retried."""
THROTTLED_RETRY_COST = 5
"""Tokens of the quota that a retry after throttling takes."""
CAPACITY = 500
"""Tokens of the quota."""

THROTTLED = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
TRANSIENT = frozenset(
    {
        "InternalServerError",
        "ReplicatedWriteConflictException",
        "RequestTimeout",
        # A single write of a record that a transaction is writing at this moment. Nothing was written.
        "TransactionConflictException",
    }
)
TRANSIENT_STATUSES = frozenset({500, 502, 503, 504})


def is_throttled(code: str, status: int) -> bool:
    return code in THROTTLED or status == 429


def is_transient(code: str, status: int) -> bool:
    """Return whether a retry of an error response may succeed, other than a throttled one."""
    return code in TRANSIENT or code == "RequestTimeoutException" or status in TRANSIENT_STATUSES


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a response asks the client to wait, or 0."""
    for name, divisor in (("x-amz-retry-after", 1000), ("retry-after", 1)):
        value = headers.get(name, "")
        if value.isascii() and value.isdigit() and len(value) < 10:
            return int(value) / divisor
    return 0.0


def backoff(attempt: int, *, throttled: bool = False, after: float = 0, jitter: float) -> float:
    """Return the seconds to wait after an attempt, counted from 1. `jitter` is between 0 and 1."""
    base = THROTTLED_BASE_SECONDS if throttled else BASE_SECONDS
    delay = jitter * min(base * float(2 ** (attempt - 1)), MAX_SECONDS)
    # A server can prolong the backoff, but not shorten it, and by a bounded time only.
    return max(delay, min(after, delay + MAX_ADDED_SECONDS))


class RetryQuota:
    """Tokens that retries cost, so that a client does not retry much while a service is down. Thread-safe."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = self._left = capacity
        self._lock = threading.Lock()

    def acquire(self, cost: int) -> bool:
        """Take tokens, and return whether there were enough."""
        with self._lock:
            if cost > self._left:
                return False
            self._left -= cost
            return True

    def release(self, tokens: int) -> None:
        """Put tokens back, up to the capacity."""
        # Read without the lock, because nearly all calls succeed with a full quota.
        if self._left != self._capacity:
            with self._lock:
                self._left = min(self._left + tokens, self._capacity)


class Retries:
    """The decisions for one client."""

    def __init__(self, max_attempts: int = 3, jitter: Callable[[], float] = random.random) -> None:
        self.max_attempts = max_attempts
        self._quota = RetryQuota()
        self._jitter = jitter

    def delay(self, attempt: int, *, throttled: bool = False, after: float = 0) -> tuple[float, int] | None:
        """Return the backoff after a failed attempt and the cost of the retry, or None if there is to be no retry."""
        cost = THROTTLED_RETRY_COST if throttled else RETRY_COST
        if attempt >= self.max_attempts or not self._quota.acquire(cost):
            return None
        return backoff(attempt, throttled=throttled, after=after, jitter=self._jitter()), cost

    def succeed(self, cost: int) -> None:
        """Put the cost of the last retry back after a success; one token without a retry."""
        self._quota.release(cost or 1)
