"""One load in a process of its own."""

import gc
import logging
import random
import resource
import time
from functools import partial

from infra.bench.scale.load import Load, run_load
from infra.bench.scale.report import render
from infra.bench.scale.virtual_time import run_virtually


def measure(title: str, load: Load) -> str:
    """Run a load in this process, and return its report."""
    # The services log each failed read of the watch; the report counts them.
    logging.disable(logging.CRITICAL)
    random.seed(1)
    # The environments stay, and there is no garbage among them to be found.
    gc.set_threshold(200_000, 50, 1_000)
    began = time.process_time()
    outcome = run_virtually(partial(run_load, load=load))
    cpu, memory = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{render(title, outcome)}\n  {cpu:.0f} s of CPU, {memory:,.0f} MB"
