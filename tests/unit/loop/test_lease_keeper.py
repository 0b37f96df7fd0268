"""The keeper of a lease says why the lease was lost."""

import asyncio

import pytest
from tests.clock import CLOCK
from tests.script_model import until

from stint.domain.errors import Interrupted
from stint.loop.lease_keeper import LeaseKeeper


class RefusedLease:
    """A lease of a session that was deleted."""

    async def renew(self, _: float) -> None:
        raise Interrupted("Session 's1' was deleted.")

    async def release(self) -> None:
        raise NotImplementedError


async def keep() -> LeaseKeeper[RefusedLease]:
    now = asyncio.get_running_loop().time()
    return LeaseKeeper(RefusedLease(), 30, now + 900, now + 30)


async def test_a_lease_whose_renewal_was_refused_is_lost_for_that_reason() -> None:
    keeper = await keep()
    CLOCK.move(11)
    await until(lambda: keeper.renewal and keeper.renewal.done())

    with pytest.raises(Interrupted, match=r"lost its lease: Session 's1' was deleted\. Finished"):
        keeper.check()


async def test_a_lease_that_was_not_renewed_is_lost_in_time() -> None:
    keeper = await keep()
    keeper.check()
    keeper.stop()
    CLOCK.move(31)

    with pytest.raises(Interrupted, match="could not renew it in time"):
        keeper.check()
