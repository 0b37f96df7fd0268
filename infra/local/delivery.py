"""An event that a Runtime API delivers to its process."""

import asyncio
import time
from dataclasses import dataclass, field

from infra.local.invocation import Invocation


@dataclass
class Delivery:
    """An invocation and the metadata that /next returns with it.

    `answered` is true once its response has begun. `returned` is set if the process withdrew its request or died before
    it read the event.
    """

    invocation: Invocation
    deadline_ms: int
    arn: str
    answered: bool = False
    returned: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, invocation: Invocation, timeout: float, arn: str) -> "Delivery":
        """Return the delivery of an invocation that has `timeout` seconds from here."""
        return cls(invocation, int((time.time() + timeout) * 1000), arn)

    @property
    def unread(self) -> bool:
        """Return whether the process never read the event."""
        return self.returned.is_set()

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of /next (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html)."""
        request_id = self.invocation.request_id
        root = f"1-{int(time.time()):08x}-{request_id.replace('-', '')[:24]}"
        headers = {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": request_id,
            "Lambda-Runtime-Deadline-Ms": str(self.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": self.arn,
            "Lambda-Runtime-Trace-Id": f"Root={root};Sampled=0",
        }
        if self.invocation.client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = self.invocation.client_context
        return headers
