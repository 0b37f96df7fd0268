"""Signature Version 4 of AWS.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from functools import lru_cache

from stint.aws.credentials import Credentials
from stint.dataclasses import dataclass

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The hash of a body of no bytes."""

SKEWED = frozenset(
    {
        "InvalidSignatureException",
        "RequestExpired",
        "RequestInTheFuture",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)
"""The codes with which AWS refuses a signature for its time, and some of them for other reasons, too."""
MIN_SKEW_SECONDS = 240
"""Differences between the clocks below this are not the reason why AWS refused a signature."""


class SignatureClock:
    """The time for signatures: that of this process, and after a refusal that of AWS. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now, self._skew = now, 0.0

    def __call__(self) -> float:
        return self._now() + self._skew

    def correct(self, code: str, headers: Mapping[str, str], signed_at: float) -> bool:
        """Take over the time of an error response if its request was refused for the time of its signature.

        Return whether it was. Another call may have taken over the time since the request was signed.
        """
        if code not in SKEWED:
            return False
        from email.utils import parsedate_to_datetime  # noqa: PLC0415 - only for this error

        try:
            # The header Date is the server's clock.
            date = parsedate_to_datetime(headers.get("date", "")).timestamp()
        except (ValueError, OverflowError):
            return False
        # Compared with the time of the signature, not with the clock: another call may have corrected the clock
        # meanwhile, and a process may have been suspended between its signature and its request.
        if abs(date - signed_at) < MIN_SKEW_SECONDS:
            return False
        self._skew = date - self._now()
        return True


def amz_date(timestamp: float) -> str:
    """Return a time in the form of the header X-Amz-Date."""
    return _amz_date_of(int(timestamp))


@lru_cache(maxsize=1)  # the calls of a request are mostly made in one second
def _amz_date_of(second: int) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))


@dataclass(frozen=True)
class Target:
    """The method, path and query of a request. Neither path nor query has characters that must be encoded."""

    method: str = "POST"
    path: str = "/"
    query: str = ""

    @property
    def text(self) -> str:
        """Return the path with the query."""
        return f"{self.path}?{self.query}" if self.query else self.path


ROOT = Target()


def authorize(
    credentials: Credentials,
    headers: Mapping[str, str],
    body: bytes,
    *,
    region: str,
    service: str = "dynamodb",
    target: Target = ROOT,
) -> str:
    """Return the header Authorization of a request with headers, which must have names in lower case, sorted.

    They must contain `host` and `x-amz-date`, and `x-amz-security-token` if the credentials have a token.
    """
    date = headers["x-amz-date"]
    names = ";".join(headers)
    lines = "\n".join([f"{name}:{value}" for name, value in headers.items()])
    # The order and the line breaks are those of the canonical request; each byte of it counts.
    start = f"{target.method}\n{target.path}\n{target.query}"
    canonical = f"{start}\n{lines}\n\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    text = f"{ALGORITHM}\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signer = _signer(credentials.secret_key, date[:8], region, service).copy()
    signer.update(text.encode())
    signed = f"SignedHeaders={names}, Signature={signer.hexdigest()}"
    return f"{ALGORITHM} Credential={credentials.access_key}/{scope}, {signed}"


@lru_cache(maxsize=64)
def _signer(secret_key: str, day: str, region: str, service: str) -> hmac.HMAC:
    """Return an HMAC with the signing key of a day. Each signature is made with a copy of it."""
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, digestmod="sha256")
