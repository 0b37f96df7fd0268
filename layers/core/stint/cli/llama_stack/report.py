"""The report of an import."""

from typing import Literal

from stint.dataclasses import dataclass, field
from stint.domain.schema import Schema

ImportedKind = Literal["agents", "sessions", "turns", "steps"]


class RowCounts(Schema):
    """Rows of a kind: in the file, written now, and stored by an earlier import."""

    found: int = 0
    imported: int = 0
    present: int = 0


class BadRow(Schema):
    """A row that was not imported."""

    key: str
    reason: str


class ImportNote(Schema):
    """A part of an imported row that this server cannot hold."""

    key: str
    note: str


class ImportReport(Schema):
    """The result of an import."""

    dry_run: bool
    agents: RowCounts
    sessions: RowCounts
    turns: RowCounts
    steps: RowCounts
    ignored: int = 0
    """Rows that are counters of the original server."""
    changed: list[ImportNote]
    """Agents without some of their tools."""
    without_memory: list[str]
    """Sessions whose memory bank or vector db is not in the file."""
    bad: list[BadRow]
    """Rows that were not imported."""


@dataclass(slots=True)
class ImportTally:
    """The growing report of an import."""

    counts: dict[ImportedKind, RowCounts] = field(
        default_factory=lambda: {kind: RowCounts() for kind in ("agents", "sessions", "turns", "steps")}
    )
    ignored: int = 0
    changed: list[ImportNote] = field(default_factory=list)
    without_memory: list[str] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    def refuse(self, key: str, reason: str) -> None:
        """Note a row that is not imported."""
        self.bad.append(BadRow(key=key, reason=reason))

    def count(self, kind: ImportedKind, *, new: bool, number: int = 1) -> None:
        """Count rows that are stored now, or that an earlier import stored."""
        counts = self.counts[kind]
        if new:
            counts.imported += number
        else:
            counts.present += number

    def make_report(self, *, dry_run: bool) -> ImportReport:
        return ImportReport(
            dry_run=dry_run,
            **self.counts,
            ignored=self.ignored,
            changed=self.changed,
            without_memory=self.without_memory,
            bad=self.bad,
        )
