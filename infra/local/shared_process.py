"""One function process that runs many invocations at once, as on Lambda Managed Instances."""

import asyncio

from infra.local.delivery import Delivery
from infra.local.function_process import FunctionProcess, timed_out
from infra.local.invocation import Invocation

# Seconds for the connections of a dead process to end.
_LEAVE_TIMEOUT = 1.0


class SharedProcess(FunctionProcess):
    """A started process that takes an event for each of its requests.

    A timeout fails only its invocation: the others run to their ends, and the process gets no further events.
    """

    in_flight = 0
    _timed_out = False

    @property
    def usable(self) -> bool:
        """Return whether the process may request further events."""
        return self.alive and not self._timed_out and not self._api.leaving

    @property
    def available(self) -> bool:
        """Return whether the process waits for an event."""
        return self.usable and self._api.ready.is_set()

    @property
    def full(self) -> bool:
        """Return whether the process runs as many invocations as it may."""
        return self.in_flight >= self._spec.at_once

    def begin(self, invocation: Invocation) -> Delivery:
        """Send the event of an invocation to the process, which must be available."""
        self.in_flight += 1
        return self._api.dispatch(invocation, timeout=self._spec.timeout, arn=self._spec.arn)

    async def finish(self, delivery: Delivery) -> bool:
        """Wait for the response. Returns False if the process died or withdrew its request before it read the event."""
        invocation = delivery.invocation
        ends = {asyncio.create_task(event.wait()) for event in (invocation.done, delivery.returned)}
        try:
            await asyncio.wait({*ends, self._exited}, timeout=self._spec.timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            self.in_flight -= 1
        if self._exited.done():
            await self._api.wait_until_left(_LEAVE_TIMEOUT)
        if delivery.unread:
            return False
        if self._exited.done():
            invocation.finish(self._exit_error(invocation))
        elif not invocation.ended:
            self._timed_out = True
            invocation.finish(timed_out(invocation, self._spec.timeout))
        return True
