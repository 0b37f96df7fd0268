"""Cost of a turn by the memory of its function: `python -m infra.bench.cost CPU_MS WAIT_SECONDS`.

CPU_MS is the CPU time of a turn on a whole core (`make bench`), WAIT_SECONDS the time that it waits for its model. A
function of 1769 MB has one core, and smaller ones have their share of it
(https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html). The price is that of arm64 in us-east-1.
"""

import sys

CORE_MB = 1769
PRICE = 0.0000133334
"""US dollars per GB-second."""

SIZES = (128, 256, 512, 1024, 1769)


def seconds(cpu_ms: float, wait: float, memory: int) -> float:
    """Return the duration of a turn."""
    return wait + cpu_ms / 1000 * max(1.0, CORE_MB / memory)


def dollars(cpu_ms: float, wait: float, memory: int) -> float:
    """Return the price of a turn's GB-seconds."""
    return seconds(cpu_ms, wait, memory) * memory / 1024 * PRICE


def table(cpu_ms: float, wait: float) -> str:
    """Return the rows of a table in Markdown: memory, duration of the CPU time, price of a million turns."""
    rows = ["| MB | CPU time takes | a million turns |", "|---|---|---|"]
    for memory in SIZES:
        busy = (seconds(cpu_ms, wait, memory) - wait) * 1000
        rows.append(f"| {memory} | {busy:.0f} ms | ${dollars(cpu_ms, wait, memory) * 1_000_000:.2f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table(float(sys.argv[1]), float(sys.argv[2])))
