"""The meters of runs."""

from dataclasses import dataclass

from stint.domain.prices import Prices
from stint.domain.receipts import Consumption
from stint.metering import Meter, set_meter


@dataclass(frozen=True, slots=True)
class Meters:
    """Begins the meters of a tenant's runs. `memory_mb` is that of the function."""

    prices: Prices
    memory_mb: int

    def begin(self, earlier: Consumption | None = None) -> Meter:
        """Begin the meter of a run, which the following code and its tasks share."""
        meter = Meter(self.prices, self.memory_mb, earlier=earlier)
        set_meter(meter)
        return meter
