"""Ids and times of the use cases that make the samples."""

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Iterator
from unittest.mock import patch
from uuid import UUID

from infra.local.errors import LocalCloudError

from stint.domain import ids

SECONDS = 60.0


def deadline() -> float:
    """Return the time of the event loop's clock until which a sample may take."""
    return asyncio.get_running_loop().time() + SECONDS


@contextlib.contextmanager
def fixed_ids(*names: str) -> Iterator[None]:
    """Use the ids in `names`, which the events contain, for the next ids that are made."""
    left, make_id = deque(names), ids._id_at

    def next_id(ticks: int) -> str:
        return str(UUID(re.split("file-|_", left.popleft())[-1])) if left else make_id(ticks)

    with patch.object(ids, "_id_at", next_id):
        yield
    if left:
        raise LocalCloudError(f"the samples did not use the ids {', '.join(left)}")
