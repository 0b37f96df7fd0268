"""The memory that a hostile request may take, from the default memory of the streaming functions."""

import os
import re
from pathlib import Path

TEMPLATE = Path(__file__).parents[2] / "template.yaml"

SPARE = 0.15
"""Share of the default memory that is left at the peak of the most hostile request."""

PROCESS_BYTES = 64_000_000
"""A warm process of `responses`, the largest one, as `test_small_function` measures it."""


def default_megabytes() -> int:
    """Return the default of StreamMemorySize."""
    declared = r"^  StreamMemorySize:\n    Type: Number\n    Default: (\d+)$"
    found = re.search(declared, TEMPLATE.read_text(), re.MULTILINE)
    assert found
    return int(found[1])


def bytes_of(megabytes: int) -> int:
    """Return the bytes of a function's memory."""
    return megabytes * 1024 * 1024


SMALL_GROWN = 60_000_000
"""A function of 128 MB has this much left, besides the process itself and its caches."""

DEFAULT_GROWN = round(bytes_of(default_megabytes()) * (1 - SPARE)) - PROCESS_BYTES
"""A function of the default memory has this much left for a request and the caches, and SPARE besides."""

IS_SMALL = bool(os.environ.get("STINT_MAX_REQUEST_BYTES"))
MOST_GROWN = SMALL_GROWN if IS_SMALL else DEFAULT_GROWN
MEGABYTES = 128 if IS_SMALL else default_megabytes()
