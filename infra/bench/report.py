"""The result table of a run: Stint and its baselines."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Row:
    """Results of one benchmark, several runs of each side; `unit` is printed after the medians.

    `most` is the ratio that is required. The runs of a `paired` row follow each other, one of each side.
    """

    name: str
    unit: str
    ours: list[float]
    theirs: list[float]
    most: float | None = None
    paired: bool = False

    def ratio(self) -> str:
        """Return the ratio of the medians; for pairs, the median of their ratios.

        Both of a pair suffer alike from what else runs on the machine.
        """
        if self.paired:
            return f"{median(left / right for left, right in zip(self.ours, self.theirs, strict=True)):.2f}"
        left, right = median(self.ours), median(self.theirs)
        return f"{left / right:.2f}" if right else "-"


def render(title: str, ours: str, theirs: str, rows: list[Row]) -> str:
    """Return a table of the medians and their ratios, with the required ones."""
    required = f"{'at most':>10}" if any(row.most for row in rows) else ""
    lines = ["", f"{title:40}{ours:>12}{theirs:>12}{'ratio':>8}{required}"]
    for row in rows:
        left, right = median(row.ours), median(row.theirs)
        line = f"  {row.name:38}{figure(left, row.unit):>12}{figure(right, row.unit):>12}{row.ratio():>8}"
        lines.append(line + (f"{row.most:10.2f}" if row.most else ""))
    return "\n".join(lines)


def figure(value: float, unit: str) -> str:
    """Return a rounded value with its unit; a value without a unit is a count."""
    places = 0 if value >= 100 else 1 if value >= 1 else 2
    return f"{value:.{places}f} {unit}" if unit else f"{value:.0f}"
