"""`python -m infra.bench.console_price`: what requests without a credential cost at most, in us-east-1.

The requests are those of the console's largest file, by clients that accept gzip only. Their CPU time on a whole core
is an assumption above what was measured (1.4 ms). API Gateway does not charge requests above its limits.
"""

import sys

from infra.bench.cost import cpu_seconds_at

from stint.domain.prices import InfrastructurePrices

MILLION = 1_000_000
MEMORY_MB, CPU_MS = 128, 2.0
LARGEST = 90_000
"""Most bytes of a file compressed by gzip, which `make test-console` checks."""
GATEWAY = 3.50
"""Dollars per million requests of a REST API: https://aws.amazon.com/api-gateway/pricing/"""
TRANSFER = 0.09
"""Dollars per GB to the internet: https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer"""
ROUTES = 6
"""Methods of the paths of the console, which have a limit each."""


def parts() -> dict[str, float]:
    """Return the dollars of a million requests."""
    prices = InfrastructurePrices()
    return {
        "API Gateway": GATEWAY,
        "invocations": prices.invocations,
        "function": cpu_seconds_at(CPU_MS, MEMORY_MB) * MEMORY_MB / 1024 * prices.gb_seconds * MILLION,
        "data transfer": LARGEST * MILLION / 1e9 * TRANSFER,
    }


def most_in_a_day(rate: int) -> float:
    """Return the dollars of a day in which each route gets its limit, in requests per second."""
    return sum(parts().values()) * rate * ROUTES * 86_400 / MILLION


def table(rate: int) -> str:
    rows = ["| a million requests of the console | |", "|---|---|"]
    rows += [f"| {name} | ${dollars:.2f} |" for name, dollars in parts().items()]
    rows.append(f"| sum | ${sum(parts().values()):.2f} |")
    rows.append(f"| a day at {rate} requests per second and route | ${most_in_a_day(rate):.2f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table(rate=5))
    sys.exit(0)
