"""Credentials for the data of one tenant each."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from stint.aws.credentials import Credentials, CredentialsProvider, RefreshedCredentials

MOST_TENANTS = 100
"""Maximum tenants whose credentials a process keeps."""


class TenantCredentials:
    """The credentials of the tenant for which the current code runs.

    `require_tenant` returns it, or raises an error if there is none. `make_provider` is called once per tenant, whose
    credentials are refreshed before they expire. `now` is the time of their expiry.
    """

    def __init__(
        self,
        require_tenant: Callable[[], str],
        make_provider: Callable[[str], CredentialsProvider],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._require_tenant, self._make_provider, self._now = require_tenant, make_provider, now
        self._tenants: OrderedDict[str, RefreshedCredentials] = OrderedDict()
        self._lock = threading.Lock()

    async def get(self) -> Credentials:
        """Return valid credentials. Raises CredentialsError."""
        return await self._of_tenant().get()

    async def renew(self, refused: Credentials) -> bool:
        """Replace credentials that AWS refused. Return whether there are others."""
        return await self._of_tenant().renew(refused)

    def forget(self) -> None:
        """Load all credentials again for their next calls."""
        with self._lock:
            self._tenants.clear()

    def _of_tenant(self) -> RefreshedCredentials:
        # Outside of the lock, because it raises for code without a tenant.
        tenant = self._require_tenant()
        with self._lock:
            found = self._tenants.get(tenant)
            if found is None:
                found = self._tenants[tenant] = RefreshedCredentials(self._make_provider(tenant), self._now)
                if len(self._tenants) > MOST_TENANTS:
                    self._tenants.popitem(last=False)
            self._tenants.move_to_end(tenant)
        return found
