"""The limit on the results of the server's tools in one run."""

from stint.dataclasses import dataclass
from stint.domain.limits import MAX_RESULT_BYTES

SPENT = (
    f"The tool did not run: the tools have returned {MAX_RESULT_BYTES // 1_000_000} MB in this run, the maximum. "
    "Answer with the results so far."
)


@dataclass(slots=True)
class ResultBudget:
    """Counts the bytes of results. A call that is running when they are used up may exceed them."""

    left: int = MAX_RESULT_BYTES

    @property
    def spent(self) -> bool:
        return self.left <= 0

    def count(self, size: int) -> None:
        self.left -= size
