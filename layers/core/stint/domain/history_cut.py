"""Where a history that is too long for a model is cut.

Providers cache a history by its beginning, so the cut must not move with each entry that is added. It is also chosen
anew by each process, from the newest entries only. So each entry has a fixed rank, and the cut is before the entry of
the highest rank among those that leave between half and all of the space used: it moves only when that entry leaves
this range, or one of a higher rank comes into it, which happens about twice while half of the space is filled.

docs/decisions.md, entry 32, has the reasons.
"""

from collections.abc import Sequence
from itertools import accumulate
from zlib import crc32


def choose_first(ids: Sequence[str], sizes: Sequence[int], max_size: int) -> int:
    """Return the place of the first entry to keep, oldest first; the last entry is always kept.

    The newest entries of a history that begins at an earlier cut have the same cut as the whole history.
    """
    left = [*accumulate(reversed(sizes))][::-1]
    fitting = [place for place, size in enumerate(left) if size <= max_size]
    if not fitting:
        return max(len(left) - 1, 0)
    ranged = [place for place in fitting if 2 * left[place] >= max_size]
    return max(ranged, key=lambda place: (crc32(ids[place].encode()), place)) if ranged else fitting[0]
