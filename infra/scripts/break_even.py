"""`python -m infra.scripts.break_even`: from how many open streams on Managed Instances cost less than on demand.

The prices are examples of us-east-1 in US dollars. Options set those of today and of another region.
"""

import argparse
import sys
from dataclasses import dataclass, fields

SECONDS = 3600


@dataclass(frozen=True)
class Prices:
    """Prices of both ways. The price per request is the same, so it is left out."""

    gb_second: float = 0.0000133334
    memory_gb: float = 176 / 1024
    instance_hour: float = 0.0816
    instances: float = 3
    fee: float = 0.15
    discount: float = 0.0
    """Share of the instances' price that a Savings Plan saves. The fee is on the price before it."""

    @property
    def stream_hour(self) -> float:
        """Return the price on demand of a stream that is open for an hour."""
        return self.gb_second * self.memory_gb * SECONDS

    @property
    def managed_hour(self) -> float:
        """Return the price of the instances for an hour."""
        return self.instances * self.instance_hour * (1 - self.discount + self.fee)

    @property
    def streams(self) -> float:
        """Return the average number of open streams at which both cost the same."""
        return self.managed_hour / self.stream_hour

    def turns(self, seconds: float) -> float:
        """Return the turns per second at that point, if each takes these seconds."""
        return self.streams / seconds


def report(prices: Prices) -> str:
    """Return the result as text."""
    return "\n".join(
        (
            f"one stream for an hour, on demand   ${prices.stream_hour:.4f}",
            f"the instances for an hour           ${prices.managed_hour:.4f}",
            f"break-even, streams open on average {prices.streams:.1f}",
            f"  with turns of 5 s                 {prices.turns(5):.1f} turns a second",
            f"  with turns of 20 s                {prices.turns(20):.1f} turns a second",
        )
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.scripts.break_even")
    for each in fields(Prices):
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=float, default=each.default)
    print(report(Prices(**vars(parser.parse_args(arguments)))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
