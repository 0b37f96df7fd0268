"""Cost and first token of a turn by the memory of its function.

`python -m infra.bench.cost CPU_MS TOKEN_MS START_MS COLD_MS` has milliseconds of CPU time on a whole core: of a turn
(`make bench`), of a warm process until the first token and of a new one with its start (`python -m
infra.bench.first_token --base COMMIT`), and of a start (`python -m infra.bench starts`). A function of 1769 MB has one
core, and smaller ones have their share of it, but a whole one while they start
(https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html). The price is that of arm64 in us-east-1.
"""

import sys

CORE_MB = 1769
PRICE = 0.0000133334
"""US dollars per GB-second."""

SIZES = (128, 176, 256, 512, 1024, 1769)
WAITS = (3, 30)
"""Seconds that a turn waits for its model."""


def cpu_seconds_at(cpu_ms: float, memory: int) -> float:
    """Return the seconds that CPU time takes with the share of a core of a function."""
    return cpu_ms / 1000 * max(1.0, CORE_MB / memory)


def dollars(cpu_ms: float, wait: float, memory: int) -> float:
    """Return the price of a turn's GB-seconds."""
    return (wait + cpu_seconds_at(cpu_ms, memory)) * memory / 1024 * PRICE


def table(cpu_ms: float, token_ms: float, start_ms: float, cold_ms: float) -> str:
    """Return a table in Markdown: the CPU time until the first token, and the price of a million turns, by memory."""
    rows = [
        "| MB | first token | of a new process | a million turns of 3 s | of 30 s |",
        "|---|---|---|---|---|",
    ]
    for memory in SIZES:
        warm = cpu_seconds_at(token_ms, memory) * 1000
        cold = start_ms + cpu_seconds_at(cold_ms - start_ms, memory) * 1000
        prices = " | ".join(f"${dollars(cpu_ms, wait, memory) * 1_000_000:.2f}" for wait in WAITS)
        rows.append(f"| {memory} | {warm:.0f} ms | {cold:,.0f} ms | {prices} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table(*map(float, sys.argv[1:5])))
