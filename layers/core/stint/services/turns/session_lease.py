"""The lease on a session, renewed while a turn runs."""

from stint.loop.lease_keeper import Hold
from stint.store.leases import Lease, Leases


class SessionHold(Hold):
    """A hold on a session; `last` is where its history ends, as far as the holder knows."""

    def __init__(self, leases: Leases, lease: Lease, seconds: float, deadline: float, valid_until: float) -> None:
        self.leases = leases
        self.lease = lease
        self.last = lease.last
        super().__init__(
            lambda span: leases.renew(lease, span),
            lambda: leases.release(lease, self.last),
            seconds,
            deadline,
            valid_until,
        )
