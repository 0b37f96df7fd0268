"""The ages of blocks, which distinguish those of killed writers from those that are being written.

A block is written before a manifest names it, so one without a manifest is either new or left behind, and nothing but
its age tells which. Its name has the time at which its writer began.

    age            its writer                                            others
    below 600 s    may add it to a manifest                              leave it
    up to 900 s    gives up: `refuse_late`, at each attempt to add it    leave it
    from 900 s     gives up                                              delete it, if no manifest has it

The 300 s between the two limits are for differences of clocks, and for a replacement of the manifest that was sent just
in time.
"""

import re
import secrets
import time
from collections.abc import Iterable, Sequence

from stint.domain.errors import Conflict
from stint.retrieval.packed.manifest import BlockInfo

WRITE_SECONDS = 600
"""Longest time from the name of a block to the manifest that has it. After that, its writer gives up."""

UNUSED_SECONDS = 900
"""Age from which a block that is in no manifest will never be in one."""

NAME = re.compile(r"[0-9a-f]{32}")


def block_name() -> str:
    """Return a new name. It begins with the time."""
    return f"{int(time.time()):08x}{secrets.token_hex(12)}"


def age_of(name: str) -> float:
    return time.time() - int(name[:8], 16)


def unused_names(names: Iterable[str], used: Iterable[str]) -> list[str]:
    """Return the names of blocks that killed writers left behind.

    `used` are those of a manifest that was read after `names` were listed.
    """
    kept = set(used)
    return [each for each in names if NAME.fullmatch(each) and each not in kept and age_of(each) >= UNUSED_SECONDS]


def refuse_late(index: str, written: Sequence[BlockInfo]) -> None:
    """Raise Conflict if another process may have deleted one of the blocks, because writing them took so long."""
    if any(age_of(block.name) >= WRITE_SECONDS for block in written):
        raise Conflict(f"A write to vector index {index!r} took more than {WRITE_SECONDS} seconds. Try again.")
