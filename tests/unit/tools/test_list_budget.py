import asyncio

import pytest

from stint.domain.errors import InvalidRequest
from stint.tools.list_budget import MAX_LISTS_BYTES, list_budget, shared_list_budget


async def test_lists_that_are_read_side_by_side_share_a_budget() -> None:
    async def read() -> None:
        list_budget().count(MAX_LISTS_BYTES // 2)

    with shared_list_budget():
        await asyncio.gather(read(), read())
        with pytest.raises(InvalidRequest, match="Name fewer servers"):
            await asyncio.create_task(read())

    await read()
